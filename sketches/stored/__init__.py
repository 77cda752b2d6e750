"""Families that exist to read, ask and merge what others stored."""
