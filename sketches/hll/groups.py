"""HyperLogLogs by group number."""

from __future__ import annotations

from .arrays import HLLArrays
from .sketch import HLL


class HLLGroups(HLLArrays[HLL]):
    """One `HLL` a group, in one set of arrays: see there for the error promised.

    A group that has seen up to 7 distinct values takes 48 bytes, up to 24 takes 144, and as much again may
    lie free for tables to grow; from about 2^lg_k × 0.09 on it takes 2^lg_k bytes. All groups start with
    `lg_k`; folding in a sketch of a smaller one lowers the group's own, as it does for `HLL`.

    >>> groups = HLLGroups(2)
    >>> groups.update([0, 1, 0, 0], ["ann", "bob", "cat", "ann"])
    >>> [round(float(x)) for x in groups.estimates()]
    [2, 1]
    """

    _single = HLL
