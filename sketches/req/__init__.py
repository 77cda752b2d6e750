"""Quantiles by REQ: the rank error shrinks towards one end."""

from .groups import REQGroups
from .sketch import REQ

__all__ = ["REQ", "REQGroups"]
