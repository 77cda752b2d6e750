"""Parsed statements as streams and as questions."""
