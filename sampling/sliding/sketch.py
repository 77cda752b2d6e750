"""A uniform sample of the last hour, or of any shorter span, at any time."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, Self

import numpy as np
import pyarrow as pa

from ...sketches.core.parameters import seconds
from ..core.bottom_k import BottomK
from ..core.decay import as_moment
from ..core.images import Parts
from ..core.uniform import share_error
from .groups import SlidingWindowSampleGroups


class SlidingWindowSample(BottomK):
    """A uniform sample of k rows from the last time span: each set of k rows of any span up to now is equally
    likely.

    The span ends with the latest row seen, or at a given time, and is `window` long or shorter: one sample
    answers for the last minute, ten minutes and hour. Rows may be late and in any order.

    Every row has a random priority and its time. The sample stores the rows that are among the k greatest of
    some span that ends now, k·(1 + ln(rows in the window / k)) of them on average, at 24 bytes each in
    addition to the item (a priority sample for k items). Merging is exact, associative and commutative; if
    two differ in k, the smaller k wins. `window` is a timedelta or seconds, times are timestamps or int64
    microseconds since 1970; `seed` is as in `Reservoir`. Raises `SketchError` for parameters out of range,
    samples of another window, and bytes that aren't a sliding sample.

    Source: Babcock, Datar, Motwani, "Sampling from a Moving Window over Streaming Data", SODA 2002.

    >>> import streamgauge as sg
    >>> sample = sg.SlidingWindowSample(3, window=60.0, seed=5)
    >>> sample = sample.update(range(1000), time=[second * 1_000_000 for second in range(1000)])
    >>> all(second >= 940 for second in sample.values().to_pylist())
    True
    >>> all(second >= 995 for second in sample.values(window=5.0).to_pylist())
    True
    """

    family = "SlidingWindowSample"

    def __init__(self, k: int = 100, window: timedelta | float = 3600.0, seed: int | None = None) -> None:
        self._groups = SlidingWindowSampleGroups(1, k, window, seed)

    @classmethod
    def _empty(cls, k: int, parameter: float) -> Self:
        return cls(k, parameter)

    @property
    def window(self) -> float:
        """The longest span that can be queried, in seconds."""
        return self._groups._format.parameter

    def update(self, values: Any, time: Any = None) -> Self:
        """Add values with their event times, one per row or one for all."""
        return self._update(values, time=time)

    def values(self, window: timedelta | float | None = None, now: datetime | int | None = None) -> pa.Array:
        """A uniform sample of the rows later than `now` − `window`, in random order.

        `now` is the latest time seen unless given (a datetime or microseconds since 1970). Raises
        `ValueError` for a span longer than the sample's own, or a `now` before the latest row, whose rows may
        be gone.
        """
        parts = self._parts()
        if not len(parts.times):
            return parts.items
        latest = int(parts.times.max())
        end = latest if now is None else as_moment(now, self.family)
        span = self.window if window is None else seconds(self.family, "window", window)
        if span > self.window:
            raise ValueError(
                f"{self.family}: rows are kept for {self.window} s, a span of {span} s is too long"
            )
        if end < latest:
            raise ValueError(f"{self.family}: a row of {latest} µs was seen, so {end} µs can't be now")
        inside = np.flatnonzero(parts.times > end - round(span * 1e6))[: self.k]
        return parts.items.take(pa.array(inside))

    def error(self, confidence: float = 0.95) -> float:
        """The largest error of a share estimated from `values` for the last window; 0 if all its rows are
        there.

        Hoeffding's bound sqrt(ln(2 / (1 − confidence)) / 2m) for m items.
        """
        error, items = share_error(self.k, confidence), len(self.values())
        return error if items == self.k < self.n else 0.0

    def to_columns(self) -> pa.Table:
        """All stored rows: `priority` (double, greatest first), `time` (int64 microseconds) and `item`."""
        parts = self._parts()
        return pa.table({"priority": parts.priority, "time": parts.times, "item": parts.items})

    def _parts(self) -> Parts:
        parts: Parts = self._groups._pool.parts(np.zeros(1, np.int64))
        return parts
