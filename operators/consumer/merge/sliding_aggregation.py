"""Whole windows from panes: each pane is merged three times, however many windows it is part of.

Time is divided into blocks of a window's length. A window is the end of one block and the beginning of the
next: all ends of a block are computed at once, from its last pane to its first, when the first window needs
one; the beginning of the next block grows by a pane at a time. This is the van Herk/Gil-Werman algorithm for
running maxima, which only requires that sketches can be merged. Other algorithms for sliding aggregates (two
stacks) flip their stacks wherever they happen to be; here the blocks are fixed in time, so that a merger that
rereads the log merges the same sketches in the same order. Rows that were late for some windows of their pane
join the block's beginning when the first window that counts them is computed.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol

import numpy as np
import pyarrow as pa

from ....sketches.core.memory_size import held_bytes
from ...table.merge import Accumulator
from ...table.schema import END, START, TIME_TYPE
from ...table.window_groups import WindowGroups
from ...windows.paned import Paned
from ...windows.window import EARLIEST
from .on_disk import on_disk

_TOGETHER_BYTES = 8 * 1024 * 1024
"""The memory limit for the parts of windows that are computed at once, beyond a single window."""


class PaneTables(Protocol):
    """Panes, as `SlidingAggregation` requests them."""

    def of_pane(self, pane_us: int, until_us: int) -> list[pa.Table]:
        """The rows of a pane that count from a window on that ends by `until_us`."""

    def fallen_behind(self, after_us: int, until_us: int) -> list[tuple[int, pa.Table]]:
        """The rows, with their panes, whose first window ends between these times.

        Rows that count in all windows of their pane are excluded.
        """


class SlidingAggregation:
    """Computes windows of one kind, in the order of their ends, from rows that no longer change."""

    def __init__(self, schema: pa.Schema, window: Paned, panes: PaneTables) -> None:
        self._schema = schema
        self._window = window
        self._panes = panes
        self._block: int | None = None
        self._ends: dict[int, pa.Table] = {}
        self._starts: list[int] = []
        self._odd: list[tuple[int, pa.Table]] = []
        self._stored = False
        self._beginning = Accumulator(schema)
        self._until = 0
        self._last = EARLIEST

    def goes_on(self, end_us: int) -> bool:
        """Whether the window that ends at `end_us` follows those already computed."""
        return end_us > self._last

    @property
    def nbytes(self) -> int:
        """Bytes of memory that it takes."""
        return held_bytes(self._beginning, self._odd) + (0 if self._stored else held_bytes(self._ends))

    def spill(self) -> None:
        """Move the ends of blocks to disk."""
        self._ends, self._stored = on_disk(self._ends), True

    def parts(self, end_us: int, order: Sequence[int]) -> list[pa.Table]:
        """Tables that together form the window that ends at `end_us`; `order` has the panes' sorted starts.

        The rows' own window columns are meaningless: see `wholes`.
        """
        start, last, until = self._window.start_of(end_us), self._last, self._until
        self._last = end_us
        block, following = self._window.block_of(start)
        if block != self._block:
            self._enter(block, following, end_us, order)
            last, until = end_us, self._until
        at = bisect_left(self._starts, start)
        for done in self._starts[:at]:
            del self._ends[done]
        del self._starts[:at]
        for pane in order[bisect_left(order, self._until) : bisect_left(order, end_us)]:
            for table in self._panes.of_pane(pane, end_us):
                merge_groups(self._beginning, table)
        self._until = max(self._until, end_us)
        for pane, table in self._panes.fallen_behind(last, end_us):
            if pane < following:
                self._odd.append((pane, table))
            elif pane < until:
                merge_groups(self._beginning, table)
        self._odd = [(pane, table) for pane, table in self._odd if pane >= start]
        tables = [self._ends[self._starts[0]]] if self._starts else []
        tables += [table for _, table in self._odd]
        return tables + ([self._beginning.table()] if len(self._beginning) else [])

    def _enter(self, block: int, following: int, end_us: int, order: Sequence[int]) -> None:
        """Compute the ends of a block, from all rows that count in the window that ends at `end_us`."""
        start = self._window.start_of(end_us)
        end, self._ends, self._stored, self._odd = Accumulator(self._schema), {}, False, []
        self._starts = []
        for pane in reversed(order[bisect_left(order, start) : bisect_left(order, following)]):
            if tables := self._panes.of_pane(pane, end_us):
                for table in tables:
                    merge_groups(end, table)
                self._starts.insert(0, pane)
                self._ends[pane] = end.table()
        self._block, self._until, self._beginning = block, following, Accumulator(self._schema)


def merge_groups(into: Accumulator, table: pa.Table) -> None:
    """Merge a table's groups, ignoring their windows."""
    zeros = np.zeros(table.num_rows, np.int64)
    into.merge_as(table, zeros, zeros)


def wholes(
    schema: pa.Schema, window: Paned, windows: Iterable[tuple[int, Sequence[pa.Table]]]
) -> Iterator[tuple[int, WindowGroups]]:
    """Merge parts into windows; yields their ends and groups, many small windows at once.

    Windows of several parts must not begin together.

    Merging has a cost per call and a cost per row, and a log that is being caught up closes windows by the
    hundred.
    """
    together: dict[int, Sequence[pa.Table]] = {}
    nbytes = 0
    for end, parts in windows:
        together[end] = parts
        nbytes += sum(part.nbytes for part in parts)
        if nbytes > _TOGETHER_BYTES:
            yield from _merged(schema, window, together)
            together, nbytes = {}, 0
    yield from _merged(schema, window, together)


def _merged(
    schema: pa.Schema, window: Paned, windows: Mapping[int, Sequence[pa.Table]]
) -> Iterator[tuple[int, WindowGroups]]:
    several = [(end, part) for end, parts in windows.items() if len(parts) > 1 for part in parts]
    merged = Accumulator(schema)
    if several:
        rows_of = [part.num_rows for _, part in several]
        starts = np.repeat([window.start_of(end) for end, _ in several], rows_of)
        rows = pa.concat_tables([part for _, part in several])
        merged.merge_as(rows, starts, np.repeat([end for end, _ in several], rows_of) - starts)
    groups = merged.groups()
    for end, parts in windows.items():
        start = window.start_of(end)
        if len(parts) == 1:
            yield end, WindowGroups.of_table(_stamped(schema, parts[0], start, end))
        else:
            low, high = np.searchsorted(groups.starts, [start, start + 1]).tolist()
            yield end, groups.slice(low, high)


def _stamped(schema: pa.Schema, table: pa.Table, start_us: int, end_us: int) -> pa.Table:
    """The table with the window columns set to one window."""
    for at, (name, time) in enumerate(((START, start_us), (END, end_us))):
        column = pa.array(np.full(table.num_rows, time, np.int64)).view(TIME_TYPE)
        table = table.set_column(at, schema.field(name), column)
    return table
