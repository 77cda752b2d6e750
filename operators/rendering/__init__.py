"""Formatting answers and names for people."""
