"""Theta sketches by group number."""

from __future__ import annotations

from .arrays import ThetaArrays
from .sketch import Theta


class ThetaGroups(ThetaArrays[Theta]):
    """One `Theta` a group, in one set of arrays: see there for the error promised.

    A group of up to 8 distinct values takes 96 bytes, a full one 16 × 2^lg_k, and as much again may lie free
    for groups to grow. Serialised sketches of any lg_k are folded in, and cut to the groups' own.

    >>> groups = ThetaGroups(2)
    >>> groups.update([0, 1, 0, 0], ["ann", "bob", "cat", "ann"])
    >>> groups.estimates().tolist()
    [2.0, 1.0]
    """

    _single = Theta
