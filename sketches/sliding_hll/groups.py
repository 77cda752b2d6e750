"""Sliding HyperLogLogs by group number."""

from __future__ import annotations

from .arrays import SlidingHLLArrays
from .sketch import SlidingHLL


class SlidingHLLGroups(SlidingHLLArrays[SlidingHLL]):
    """One `SlidingHLL` a group, in one set of arrays: see there for the error promised.

    A group takes 12 bytes for each value that may still be a register's greatest in some span, and as much
    again for the places of its hash table that are free; and for each of the values that came most
    recently, 4 √(2^lg_k) of them at most.

    >>> groups = SlidingHLLGroups(2, window=60.0)
    >>> groups.update([0, 1, 1], ["ann", "bob", "cat"], time=[0, 0, 90_000_000])
    >>> groups.estimates().round().tolist()
    [1.0, 1.0]
    """

    _single = SlidingHLL
