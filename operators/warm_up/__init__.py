"""Compiling kernels ahead of time: what to compile, and processes that do it in parallel."""
