"""The kinds of windows, a module for each, behind one protocol (`window`); `kinds` lists them."""
