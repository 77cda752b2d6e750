"""Quantiles by KLL: the value at a rank, and the rank of a value, with a fixed rank error."""

from .groups import KLLGroups
from .sketch import KLL

__all__ = ["KLL", "KLLGroups"]
