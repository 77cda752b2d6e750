"""Rows of tumbling windows as deltas brought them, until the watermark moves on.

While the log is being caught up, thousands of windows begin and close with the same deltas. These are never
put into panes: their rows are merged at once, as columns, and stay one batch from there on.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pyarrow as pa

from ...table.merge import RowAccumulator
from ...table.window_groups import WindowGroups
from ...table.windows import edges
from .open_windows import Beginning

_TOGETHER_ROWS = 10_000
"""The most rows of windows to merge at once: the result is held until its last window is gone."""


class FreshRows:
    """A delta's rows, ordered by pane and first window, and the merger's position before them."""

    def __init__(self, table: pa.Table, origin: Callable[[], Beginning], offset: int) -> None:
        self.table = table
        self.starts, self.ends = edges(table)
        self.origin = origin
        self.offset = offset

    def __len__(self) -> int:
        return len(self.starts)

    def panes(self) -> Iterator[tuple[int, int, pa.Table]]:
        """The rows of each pane and first window."""
        if not len(self):
            return
        new = (np.diff(self.starts) != 0) | (np.diff(self.ends) != 0)
        cuts = [0, *(np.flatnonzero(new) + 1).tolist(), len(self)]
        for low, high in itertools.pairwise(cuts):
            yield int(self.starts[low]), int(self.ends[low]), self.table.slice(low, high - low)

    def over(self, end_us: int) -> int:
        """The number of leading rows whose windows end by then, if each window is one pane."""
        return int(np.searchsorted(self.ends, end_us, "right"))

    def slice(self, low: int, high: int | None = None) -> FreshRows:
        """The rows from `low` up to, not including, `high`."""
        high = len(self) if high is None else high
        return self if (low, high) == (0, len(self)) else self._of(self.table.slice(low, high - low))

    def filter(self, mask: np.ndarray) -> FreshRows:
        """The rows that a mask selects."""
        return self if mask.all() else self._of(self.table.filter(pa.array(mask)))

    def _of(self, table: pa.Table) -> FreshRows:
        return FreshRows(table, self.origin, self.offset)


class RowsTogether:
    """Rows of several windows that are merged at once, when their groups are first requested."""

    def __init__(self, rows: pa.Table) -> None:
        self._rows: pa.Table | None = rows
        self._groups: WindowGroups | None = None

    def groups(self) -> WindowGroups:
        """The groups of the windows; the same for every caller."""
        if self._groups is None:
            assert self._rows is not None
            accumulator = RowAccumulator(self._rows.schema)
            accumulator.merge(self._rows)
            self._groups, self._rows = accumulator.groups(), None
        return self._groups


def in_batches(parts: Sequence[FreshRows], breaks: Sequence[int]) -> Iterator[tuple[int, RowsTogether]]:
    """Divide rows of whole windows into batches; yields each with its last window's start, earliest first.

    No batch has windows on both sides of a break, and none has more than some thousand rows, unless a single
    window does.
    """
    starts = np.concatenate([part.starts for part in parts])
    table = pa.concat_tables([part.table for part in parts])
    if len(parts) > 1:
        order = np.argsort(starts, kind="stable")
        starts, table = starts[order], table.take(pa.array(order))
    firsts = np.concatenate([[0], np.flatnonzero(np.diff(starts)) + 1, [len(starts)]])
    walls = np.searchsorted(starts, np.sort(np.asarray(breaks, np.int64)))
    low = 0
    while low < len(starts):
        most = int(firsts[np.searchsorted(firsts, low + _TOGETHER_ROWS, "right") - 1])
        next_window = int(firsts[np.searchsorted(firsts, low, "right")])
        wall = np.searchsorted(walls, low, "right")
        high = min(max(most, next_window), int(walls[wall]) if wall < len(walls) else len(starts))
        yield int(starts[high - 1]), RowsTogether(table.slice(low, high - low))
        low = high
