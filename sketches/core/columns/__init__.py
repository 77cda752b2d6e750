"""Columns of values in the form that kernels need: arrays, lists, times, gaps and weights."""
