"""For each group, windows that end where it has rows."""

from .definition import Sliding, SlidingTable

__all__ = ["Sliding", "SlidingTable"]
