"""Families that exist to read, query and merge sketches that other systems stored."""
