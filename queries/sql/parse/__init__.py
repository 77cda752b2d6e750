"""Statements of SQL, parsed by sqlglot with their positions."""
