"""The most frequent items, for strings and longs: counters with bounds."""

from .groups import FrequentItemsGroups
from .sketch import FrequentItems

__all__ = ["FrequentItems", "FrequentItemsGroups"]
