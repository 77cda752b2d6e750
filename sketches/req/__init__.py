"""Quantiles that are accurate in the tail: REQ sketches that others stored, by the `datasketches` package."""

from .groups import REQGroups
from .sketch import REQ

__all__ = ["REQ", "REQGroups"]
