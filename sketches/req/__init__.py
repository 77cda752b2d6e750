"""Quantiles whose ranks are the more accurate the nearer to one end: REQ sketches."""

from .groups import REQGroups
from .sketch import REQ

__all__ = ["REQ", "REQGroups"]
