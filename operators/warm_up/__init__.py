"""Kernels compiled ahead of time: what there is to compile, and processes that do it side by side."""
