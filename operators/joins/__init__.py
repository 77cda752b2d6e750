"""Rows beside other rows: those of the same id that came before, of a table, of another stream."""
