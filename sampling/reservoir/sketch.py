"""A uniform sample of a stream: every set of k rows is equally likely, however the stream was split."""

from __future__ import annotations

from typing import Self

from ..core.skip_reservoir import Jumping
from ..core.uniform import Uniform
from .groups import ReservoirGroups


class Reservoir(Uniform, Jumping):
    """A uniform sample of k rows: each set of k rows of the stream is equally likely to be the sample.

    Use it to look at rows, and to estimate anything that can be computed from rows: a share estimated from
    the sample is within ``error(confidence)`` of the stream's, 0.043 at 95 % for k = 1,000 (Hoeffding 1963;
    sampling without replacement is no worse). Items may be of any Arrow type, records included. Memory is k
    items and 16 bytes each.

    Every row has a random priority and the k greatest are stored. Merging takes the k greatest of both, so it
    is exact, associative and commutative, and merged parts are distributed like one sample of the whole. Once
    full it skips the rows that would not enter (A-ExpJ with equal weights).

    `seed` makes a run repeatable; the random state is then stored in the bytes. Without a seed every sample
    draws its own. Give the parts of one stream different seeds, or none. Raises `SketchError` for a k out of
    range, items that don't fit earlier ones, and bytes that aren't a reservoir.

    Source: Efraimidis, Spirakis, "Weighted Random Sampling with a Reservoir", IPL 2006; Hoeffding,
    "Probability Inequalities for Sums of Bounded Random Variables", JASA 1963.

    >>> import streamgauge as sg
    >>> sample = sg.Reservoir(3, seed=7).update(range(1000))
    >>> sample.n, len(sample.values())
    (1000, 3)
    >>> sample == sg.Reservoir.from_bytes(sample.to_bytes())
    True
    >>> both = sample | sg.Reservoir(3, seed=8).update(range(1000, 3000))
    >>> both.n, len(both)
    (3000, 3)
    """

    family = "Reservoir"

    def __init__(self, k: int = 100, seed: int | None = None) -> None:
        self._groups = ReservoirGroups(1, k, seed)

    @classmethod
    def _empty(cls, k: int, parameter: float) -> Self:
        return cls(k)
