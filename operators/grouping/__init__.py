"""Numbering the groups of rows: by window and keys, with keys of any type."""
