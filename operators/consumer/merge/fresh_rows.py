"""Rows of tumbling windows as deltas brought them, until the watermark has moved on.

A log that is caught up with brings windows by the thousand that begin and close with the same deltas. These
are never put into panes: their rows are merged at once, as columns, and they are one batch from there on.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pyarrow as pa

from ...table.merge import Accumulator
from ...table.window_groups import WindowGroups
from ...table.windows import edges
from .open_windows import Beginning

_TOGETHER_ROWS = 10_000
"""Rows of windows that are merged at once: what is made of them is held for all until the last is gone."""


class FreshRows:
    """A delta's rows, ordered by pane and first window, and where its merger was before them."""

    def __init__(self, table: pa.Table, origin: Callable[[], Beginning], offset: int) -> None:
        self.table = table
        self.starts, self.ends = edges(table)
        self.origin = origin
        self.offset = offset

    def __len__(self) -> int:
        return len(self.starts)

    def panes(self) -> Iterator[tuple[int, int, pa.Table]]:
        """The rows of each pane and first window, with both."""
        if not len(self):
            return
        new = (np.diff(self.starts) != 0) | (np.diff(self.ends) != 0)
        cuts = [0, *(np.flatnonzero(new) + 1).tolist(), len(self)]
        for low, high in itertools.pairwise(cuts):
            yield int(self.starts[low]), int(self.ends[low]), self.table.slice(low, high - low)

    def over(self, end_us: int) -> int:
        """How many of the first rows are of windows that end by then, if each window is one pane."""
        return int(np.searchsorted(self.ends, end_us, "right"))

    def slice(self, low: int, high: int | None = None) -> FreshRows:
        """The rows from one number up to, not including, another."""
        high = len(self) if high is None else high
        return self if (low, high) == (0, len(self)) else self._of(self.table.slice(low, high - low))

    def filter(self, mask: np.ndarray) -> FreshRows:
        """The rows that a mask has."""
        return self if mask.all() else self._of(self.table.filter(pa.array(mask)))

    def _of(self, table: pa.Table) -> FreshRows:
        return FreshRows(table, self.origin, self.offset)


class RowsTogether:
    """Rows of several windows that are merged at once, when somebody wants the groups."""

    def __init__(self, rows: pa.Table) -> None:
        self._rows: pa.Table | None = rows
        self._groups: WindowGroups | None = None

    def groups(self) -> WindowGroups:
        """The groups of the windows; the same, whoever asks."""
        if self._groups is None:
            assert self._rows is not None
            accumulator = Accumulator(self._rows.schema)
            accumulator.merge(self._rows)
            self._groups, self._rows = accumulator.groups(), None
        return self._groups


def in_batches(parts: Sequence[FreshRows], breaks: Sequence[int]) -> Iterator[tuple[int, RowsTogether]]:
    """Rows of whole windows as batches, earliest first: the start of each one's last window, and its rows.

    No batch has windows on both sides of a break, and none more than some thousand rows, unless a window
    alone has more.
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
