"""Sorting and selection inside kernels."""
