"""Samples of recent rows of many groups at once, by group number."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from ...sketches.core.aggregated import Aggregated
from ...sketches.core.parameters import seconds
from ..core.bottom_k import BottomKGroups, checked_k
from ..core.decay import as_times
from ..core.images import Format
from ..core.items import Rows
from .skyline_store import Skylines


class SlidingWindowSampleGroups(BottomKGroups):
    """A sample of the last time span for each of many groups; `SlidingWindowSample` states the promise.

    >>> groups = SlidingWindowSampleGroups(2, k=2, window=60.0, seed=1)
    >>> groups.update([0, 1, 1], ["a", "b", "c"], time=[0, 0, 90_000_000])
    >>> groups[1].values().to_pylist()
    ['c']
    """

    aggregate: ClassVar = Aggregated({"k": 100, "window": 3600.0}, inputs=("time",), seeded=True)

    _pool: Skylines

    def __init__(
        self, n: int = 0, k: int = 100, window: timedelta | float = 3600.0, seed: int | None = None
    ) -> None:
        span = seconds("SlidingWindowSample", "window", window)
        self._format = Format("SlidingWindowSample", 4, span, timed=True, beyond_k=True)
        self._pool = Skylines(n, checked_k(k, self._format.name), seed, round(span * 1e6))

    def update(self, groups: Any, values: Any, time: Any = None) -> None:
        """Add values with an event time per row. Raises what `SlidingWindowSample.update` raises."""
        self._update_groups(groups, values, time=time)

    def _update(self, groups: np.ndarray | None, rows: Rows, inputs: dict[str, Any]) -> None:
        times = as_times(inputs["time"], rows, self._format.name)
        if len(rows.items):
            items = self._pool.accept(rows.items, self._format.name)
            kept = self._pool.add(np.zeros(len(times), np.int64) if groups is None else groups, times)
            self._pool.keep(items.take(pa.array(kept)))
