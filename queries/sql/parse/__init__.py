"""Parsing SQL statements with sqlglot, with positions."""
