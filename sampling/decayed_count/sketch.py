"""The number of rows, weighted by age: decayed with the weights of `DecayedReservoir`."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, ClassVar, Self

import numpy as np
import pyarrow as pa

from ...sketches.core.protocol import Sketch, SketchError
from ..core.items import as_rows
from .groups import DecayedCountGroups
from .images import read_image


class DecayedCount(Sketch):
    """The number of rows, each weighted by 2^(−age / half_life): the current rate, without a window's edge.

    It has the same weights as `DecayedReservoir` and `DecayedQuantiles` (forward decay, see `decay`): it
    needs no clock, and rows may be late and in any order. `half_life` is a timedelta or seconds, times are
    timestamps or int64 microseconds since 1970, `now` is one of those. Promise: always exact up to rounding,
    a share of at most (n + 8)·2^−52, which `bounds` returns; any batching, order and merging give the same up
    to that. At an even rate of r rows per second the count is r·half_life / ln 2. Raises `SketchError` for
    half-lives out of range, counts of another half-life, and bytes that are not a decayed count.

    Source: Cormode, Shkapenyuk, Srivastava, Xu, "Forward Decay", ICDE 2009, section IV-A.

    >>> import streamgauge as sg
    >>> count = sg.DecayedCount(half_life=60.0).update(["a", "b", "c"], time=[0, 60_000_000, 120_000_000])
    >>> count.estimate(), count.estimate(now=180_000_000)
    (1.75, 0.875)
    """

    family: ClassVar[str] = "DecayedCount"

    def __init__(self, half_life: timedelta | float = 3600.0) -> None:
        self._groups = DecayedCountGroups(1, half_life)

    @property
    def half_life(self) -> float:
        """The half-life in seconds."""
        return self._groups._decay.seconds

    @property
    def n(self) -> int:
        """The number of rows seen, without nulls."""
        return int(self._groups._state["n"][0])

    def update(self, values: Any, time: Any = None) -> Self:
        """Count values by their event times, one per row or one for all; nulls are skipped."""
        rows = as_rows(values)
        self._groups._count(np.zeros(rows.length, np.int64), rows, time)
        return self

    def merge(self, other: Self) -> Self:
        """Add the other's rows. Raises `SketchError` for a different half-life."""
        if not isinstance(other, DecayedCount):
            raise SketchError(f"DecayedCount: can't take in {other!r}")
        self._groups.merge(np.zeros(1, np.int64), other._groups.to_arrow())
        return self

    def to_bytes(self) -> bytes:
        """The half-life, the weight with its epoch, the number of rows and their latest time, in 48 bytes."""
        return self._groups.to_arrow()[0].as_py()

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Read a count from its bytes. Raises `SketchError` for anything else."""
        count = cls(read_image(bytes(data))[0])
        count._groups.merge(np.zeros(1, np.int64), pa.array([bytes(data)], pa.binary()))
        return count

    def estimate(self, now: datetime | int | None = None) -> float:
        """The decayed count as of `now`, by default of the latest row.

        Raises `ValueError` for a `now` before the latest row, whose weight would exceed one.
        """
        return float(self._groups.counts(now)[0])

    def bounds(self, now: datetime | int | None = None) -> tuple[float, float]:
        """(lower, upper) of the decayed count: the certain limits of rounding."""
        count, share = self.estimate(now), (self.n + 8) * 2.0**-52
        # Counts that decayed below the smallest doubles have an error of a few of these instead.
        least = (self.n + 8) * 2.0**-1074 if self.n else 0.0
        return max(count * (1 - share) - least, 0.0), count * (1 + share) + least

    def answer(self) -> dict[str, float]:
        """The decayed count as of the latest row, with its bounds, and the rows seen."""
        lower, upper = self.bounds()
        return {"n": self.n, "estimate": self.estimate(), "lower": lower, "upper": upper}

    def __repr__(self) -> str:
        return f"DecayedCount(half_life={self.half_life:g}): {self.estimate():,.6g} of {self.n:,} rows"
