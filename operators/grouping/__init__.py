"""Rows get the number of their group: by window and keys, and by keys of any type."""
