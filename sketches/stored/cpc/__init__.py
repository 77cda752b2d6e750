"""Distinct values in the fewest bytes: CPC sketches that others stored, by the `datasketches` package."""

from .groups import CPCGroups
from .sketch import CPC

__all__ = ["CPC", "CPCGroups"]
