"""For each group, so many of its rows, whenever they come."""

from .definition import WINDOW_ID, ByCount, ByCountTable

__all__ = ["WINDOW_ID", "ByCount", "ByCountTable"]
