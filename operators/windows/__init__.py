"""The kinds of windows, a module or a folder each, behind one protocol (`window`); `kinds` lists them."""
