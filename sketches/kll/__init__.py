"""Quantiles by KLL: of any stream, the value at a rank and the rank of a value, to a fixed rank error."""

from .groups import KLLGroups
from .sketch import KLL

__all__ = ["KLL", "KLLGroups"]
