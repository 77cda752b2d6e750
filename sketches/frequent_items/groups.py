"""Frequent-items sketches by group number."""

from __future__ import annotations

from .arrays import FrequentItemsArrays
from .sketch import FrequentItems


class FrequentItemsGroups(FrequentItemsArrays[FrequentItems]):
    """`FrequentItems` for many groups, all counters in one arena; a group of few items takes 100 bytes.

    >>> tags = FrequentItemsGroups(2)
    >>> tags.update([0, 1, 0], ["a", "b", "a"])
    >>> tags[0].top(1)
    [Item(item='a', estimate=2, lower=2, upper=2)]
    """

    _single = FrequentItems
