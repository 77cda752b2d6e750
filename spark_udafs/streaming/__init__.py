"""Streams as streaming queries, and where their windows go."""
