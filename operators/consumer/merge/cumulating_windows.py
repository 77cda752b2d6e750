"""Cumulating windows that may still get rows: each consists of the previous one and one more pane."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

import pyarrow as pa

from ...table.merge import Accumulator
from .paned_windows import PanedWindows
from .sliding_aggregation import SlidingAggregation, merge_groups


class RunningTotal(SlidingAggregation):
    """Builds cumulating windows in the order of their ends, and merges each pane only once.

    It holds the sum of the windows so far, and starts over with the first window that begins elsewhere.
    """

    def parts(self, end_us: int, order: Sequence[int]) -> list[pa.Table]:
        """See `SlidingAggregation`."""
        start, last = self._window.start_of(end_us), self._last
        if start != self._block:
            self._block, self._until, self._beginning = start, start, Accumulator(self._schema)
        # All panes before `_until` are merged, except rows that count only in windows after `last`.
        for pane, table in self._panes.fallen_behind(last, end_us):
            if start <= pane < self._until:
                merge_groups(self._beginning, table)
        for pane in order[bisect_left(order, self._until) : bisect_left(order, end_us)]:
            for table in self._panes.of_pane(pane, end_us):
                merge_groups(self._beginning, table)
        self._until = self._last = end_us
        return [self._beginning.table()] if len(self._beginning) else []


class OpenCumulate(PanedWindows):
    """The windows of panes with a common beginning (see `OpenWindows`)."""

    def _aggregation(self) -> SlidingAggregation:
        return RunningTotal(self._schema, self._window, self)
