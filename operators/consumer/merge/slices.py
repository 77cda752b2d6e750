"""Whole windows from panes: each pane is merged three times, however many windows it is part of.

Time is cut into blocks of a window's length. A window is the end of one block and the beginning of the next:
of a block's ends all are made at once, from its last pane to its first, when the first window needs one; the
beginning of the next block grows by a pane at a time. This is van Herk's and Gil and Werman's way to running
maxima, which needs no more of a sketch than that it merges. Other ways to sliding aggregates (two stacks)
turn their stacks over wherever they happen to be; here the blocks lie fixed in time, so that a merger that
reads the log again merges the same sketches in the same order, and gives the same bytes.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from ...definition.windows import EARLIEST, Paned
from ...table.merge import Accumulator
from ...table.schema import END, START, TIME_TYPE


class Slices:
    """Makes windows of one kind, in the order of their ends, of panes that don't change any more.

    `pane` gives the table of the pane that begins at a time.
    """

    def __init__(self, schema: pa.Schema, window: Paned, pane: Callable[[int], pa.Table]) -> None:
        self._schema = schema
        self._window = window
        self._pane = pane
        self._block: int | None = None
        self._ends: dict[int, pa.Table] = {}
        self._starts: list[int] = []
        self._beginning = Accumulator(schema)
        self._until = 0
        self._last = EARLIEST

    def goes_on(self, end_us: int) -> bool:
        """Whether the window that ends then comes after those already made."""
        return end_us > self._last

    def parts(self, end_us: int, order: Sequence[int]) -> list[pa.Table]:
        """Tables that together are the window that ends at `end_us`; `order` has the panes' starts in order.

        The rows' own windows mean nothing: see `whole`.
        """
        size = self._window.size_us
        start, self._last = end_us - size, end_us
        block = start - start % size
        if block != self._block:
            self._enter(block, start, order)
        at = bisect_left(self._starts, start)
        for done in self._starts[:at]:
            del self._ends[done]
        del self._starts[:at]
        for pane in order[bisect_left(order, self._until) : bisect_left(order, end_us)]:
            fold(self._beginning, self._pane(pane))
        self._until = max(self._until, end_us)
        found = [self._ends[self._starts[0]]] if self._starts else []
        return found + ([self._beginning.table()] if len(self._beginning) else [])

    def _enter(self, block: int, start: int, order: Sequence[int]) -> None:
        following = block + self._window.size_us
        end, self._ends = Accumulator(self._schema), {}
        self._starts = list(order[bisect_left(order, start) : bisect_left(order, following)])
        for pane in reversed(self._starts):
            fold(end, self._pane(pane))
            self._ends[pane] = end.table()
        self._block, self._until, self._beginning = block, following, Accumulator(self._schema)


def fold(into: Accumulator, table: pa.Table) -> None:
    """Merge a table's groups in, whatever windows they are of."""
    zeros = np.zeros(table.num_rows, np.int64)
    into.fold_as(table, zeros, zeros)


def whole(schema: pa.Schema, parts: Sequence[pa.Table], start_us: int, end_us: int) -> pa.Table:
    """The table of one window, made of these."""
    if len(parts) == 1:
        table = parts[0]
    else:
        merged = Accumulator(schema)
        for part in parts:
            fold(merged, part)
        table = merged.table()
    for at, (name, time) in enumerate(((START, start_us), (END, end_us))):
        column = pa.array(np.full(table.num_rows, time, np.int64)).view(TIME_TYPE)
        table = table.set_column(at, schema.field(name), column)
    return table
