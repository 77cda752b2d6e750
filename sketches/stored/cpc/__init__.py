"""Distinct values in the fewest bytes: stored CPC sketches, through the `datasketches` package."""

from .groups import CPCGroups
from .sketch import CPC

__all__ = ["CPC", "CPCGroups"]
