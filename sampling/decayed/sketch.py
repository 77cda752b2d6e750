"""A sample in which a row's chance halves with every half-life: mostly recent rows, and some old ones."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Self

from ..core.skip_reservoir import Jumping
from .groups import DecayedReservoirGroups


class DecayedReservoir(Jumping):
    """k rows, each with a chance in proportion to 2^(−age / half_life), without a cut-off.

    It shows what a stream is like now without forgetting what it was. At any time, `values` is distributed
    like k draws without replacement, each in proportion to the decayed weights of the remaining rows; if rows
    arrive at an even rate, about half of the sample is from the last half-life.

    A row's weight is 2^(time / half_life), fixed on arrival (forward decay, see `decay`), so samples need no
    clock, rows may be late, and merging is exact, associative and commutative. `half_life` is a timedelta or
    seconds, times are timestamps or int64 microseconds since 1970; priorities are doubles, which distinguish
    times up to 2100 that are 10^−6 of a half-life apart if it is a second or more. Memory is k items and 16
    bytes each. `seed` is as in `Reservoir`. Raises `SketchError` for parameters out of range, samples of
    another half-life, and bytes that aren't a decayed reservoir.

    Source: Cormode, Shkapenyuk, Srivastava, Xu, "Forward Decay", ICDE 2009, section IV-B; Efraimidis,
    Spirakis, "Weighted Random Sampling with a Reservoir", IPL 2006.

    >>> import streamgauge as sg
    >>> sample = sg.DecayedReservoir(3, half_life=60.0, seed=2)
    >>> sample.update(range(1000), time=[second * 1_000_000 for second in range(1000)]).n
    1000
    >>> min(sample.values().to_pylist()) > 500
    True
    """

    family = "DecayedReservoir"

    def __init__(self, k: int = 100, half_life: timedelta | float = 3600.0, seed: int | None = None) -> None:
        self._groups = DecayedReservoirGroups(1, k, half_life, seed)

    @classmethod
    def _empty(cls, k: int, parameter: float) -> Self:
        return cls(k, parameter)

    def update(self, values: Any, time: Any = None) -> Self:
        """Add values with their event times, one per row or one for all."""
        return self._update(values, time=time)
