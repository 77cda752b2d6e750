"""Recordings as files: lines, CSV records and archives, compressed or not, read in batches."""
