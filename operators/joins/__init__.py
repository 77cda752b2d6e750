"""Rows beside other rows: those of the same id that came before, and those of a table."""
