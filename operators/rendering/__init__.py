"""Answers and names as people read them."""
