"""Rows in, a table of sketches out, the same on every engine."""
