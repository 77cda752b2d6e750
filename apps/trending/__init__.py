"""Trending tags on social streams."""
