"""Samples: which rows represent the whole stream.

Each sample has a folder, laid out as in `sketches`; `core` has their common basis.
"""
