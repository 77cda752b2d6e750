"""Which items are the most frequent? Counters with bounds, for strings and longs."""

from .groups import FrequentItemsGroups
from .sketch import FrequentItems

__all__ = ["FrequentItems", "FrequentItemsGroups"]
