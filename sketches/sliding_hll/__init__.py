"""Distinct values of the last hour, or of any shorter span, at any time: sliding HyperLogLog."""

from .groups import SlidingHLLGroups
from .sketch import SlidingHLL

__all__ = ["SlidingHLL", "SlidingHLLGroups"]
