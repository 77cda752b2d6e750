"""Samples: which rows represent the whole stream.

Each sample has a folder with the same layout as in `sketches`; `core` has their common base.
"""
