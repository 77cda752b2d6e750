"""Statements run: a session, its broker or memory, and its stored tables."""
