"""Count windows that are not full: parts of them, merged once the window is full.

A part records its window and the window's number of rows including its own (`rows`). A window is closed by
the part that fills it. A part of a later window of its group and partition also closes it, whatever it lacks:
with "at_most_once" the missing rows may be lost.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa

from ....sketches.core.columns.columns import as_array
from ...grouping.group_index import hash_keys
from ...sketching.delta import Delta
from ...sketching.open_counts import row_text
from ...table.schema import BEGUN, END, START, UPTO
from ...table.window_groups import WindowGroups
from ...table.windows import edges
from ...watermarks.position import Input
from ...windows.count import WINDOW_ID, ByCount
from ..log.merger_state import EmittedWindows
from .open_windows import Beginning, Due
from .partial_windows_base import PartialWindowsBase

_KNOWN = {
    "h1": np.uint64,
    "h2": np.uint64,
    "input": np.int64,
    "begun": np.int64,
    "upto": np.int64,
    "first": np.int64,
    "last": np.int64,
}
"""The columns of a part: its keys' hash, input partition, window, the window's rows so far, and the times of
its earliest and its latest row."""


@dataclass(slots=True)
class _Windows:
    """Windows as arrays: input partition, the row that began each, its times, and its latest delta."""

    group: np.ndarray
    input: np.ndarray
    begun: np.ndarray
    first: np.ndarray
    last: np.ndarray
    full: np.ndarray
    closed: np.ndarray
    arrived: np.ndarray


class OpenByCount(PartialWindowsBase):
    """The count windows of a partition of the table topic (see `OpenWindows`).

    They are emitted by the delta that closed them, all in one table, and `EmittedWindows.until_us` is the
    offset of the last delta whose windows were emitted. Time never closes any of them provisionally, so there
    is nothing to emit again if a merger `confirms`.
    """

    def __init__(self, schema: pa.Schema, window: ByCount, confirms: bool = False) -> None:
        self._schema = schema
        self._of_parts = schema.remove(schema.get_field_index(WINDOW_ID))
        self._size = window.rows
        super().__init__(self._of_parts, _KNOWN)
        self._inputs: dict[Input, int] = {}
        self._parts_seen = 0

    def merge(self, delta: Delta, origin: Callable[[], Beginning], offset: int, closed_us: int) -> None:
        """See `OpenWindows`."""
        table = delta.table
        assert table is not None
        if not table.num_rows:
            return
        starts, ends = edges(table)
        h1, h2 = hash_keys([as_array(table.column(key)) for key in self._parts.keys], len(starts))
        where = self._inputs.setdefault(delta.input, len(self._inputs))
        known = {
            "h1": h1,
            "h2": h2,
            "input": np.full(len(starts), where),
            **{name: as_array(table.column(c)).to_numpy() for name, c in (("begun", BEGUN), ("upto", UPTO))},
            "first": starts,
            "last": ends - np.int64(1),
        }
        self._add(known, table.drop_columns([BEGUN, UPTO]), origin, offset)

    def close(self, closed_us: int, emitted: EmittedWindows) -> None:
        """See `OpenWindows`. Time closes no count window."""

    def due(self, due_us: int, emitted: EmittedWindows) -> Due | None:
        """See `OpenWindows`."""
        self._collect_closed(emitted)
        return self._ready[0].due if self._ready else None

    def mark_emitted(self, due: Due, emitted: EmittedWindows, position: int) -> None:
        """See `OpenWindows`."""
        self._mark_first_emitted(emitted)

    def open_tables(self, emitted: EmittedWindows, since: int = -1) -> list[pa.Table]:
        """See `OpenWindows`."""
        self._collect_closed(emitted)
        closed = [ready.due.groups().table for ready in self._ready]
        everything = np.arange(len(self._parts))
        if not len(everything):
            return closed
        windows, part = self._windows(everything)
        now = (windows.arrived >= since)[part]
        return closed + ([self._window_table(everything[now], part[now], windows)] if now.any() else [])

    def largest(self) -> list[tuple[str, int]]:
        """See `OpenWindows`."""
        count = len(self._parts)
        if not count:
            return []
        begin = np.datetime64(int(self._parts.at["first"].min()), "us")
        return [(f"{count:,} parts of windows that are not full, with rows from {begin} on", self.nbytes)]

    def _collect_closed(self, emitted: EmittedWindows) -> None:
        """Move the windows that were closed since the last call to the emission queue, grouped by delta."""
        count = len(self._parts)
        if count == self._parts_seen:
            return
        at = self._parts.at
        chosen = np.flatnonzero(np.isin(at["h1"], at["h1"][self._parts_seen :]))
        windows, part = self._windows(chosen)
        for offset in np.unique(windows.closed[windows.closed >= 0]).tolist():
            of_delta = (windows.closed == offset)[part]
            if offset > emitted.until_us:
                table = self._window_table(chosen[of_delta], part[of_delta], windows)
                due = Due(offset, True, partial(WindowGroups.of_table, table))
                self._add_ready(due, chosen[of_delta])
        self._drop(chosen[(windows.closed >= 0)[part]])
        if self._many:
            self._join()
        self._parts_seen = len(self._parts)

    def _windows(self, chosen: np.ndarray) -> tuple[_Windows, np.ndarray]:
        """The windows of some parts, ordered by group, partition and beginning; and each part's window."""
        at = {name: column[chosen] for name, column in self._parts.at.items()}
        order = np.lexsort((at["begun"], at["input"], at["h2"], at["h1"]))
        same_group = np.ones(max(0, len(order) - 1), bool)
        for name in ("h1", "h2", "input"):
            same_group &= at[name][order[1:]] == at[name][order[:-1]]
        same = same_group & (at["begun"][order[1:]] == at["begun"][order[:-1]])
        edges = np.concatenate([[0], np.flatnonzero(~same) + 1])
        part = np.empty(len(order), np.int64)
        part[order] = np.cumsum(np.concatenate([[True], ~same])) - 1
        arrived = at["arrived"][order]
        # The earliest delta that filled it, or else that brought part of a later window of the same group.
        filled = np.where(at["upto"][order] == self._size, arrived, np.iinfo(np.int64).max)
        closed = np.minimum.reduceat(filled, edges)
        followed = np.concatenate([same_group[edges[1:] - 1], [False]])
        began = np.minimum.reduceat(arrived, edges)
        following = np.concatenate([began[1:], [0]])
        closed = np.where(followed, np.minimum(closed, following), closed)
        return _Windows(
            group=at["h1"][order][edges],
            input=at["input"][order][edges],
            begun=at["begun"][order][edges],
            first=np.minimum.reduceat(at["first"][order], edges),
            last=np.maximum.reduceat(at["last"][order], edges),
            full=np.maximum.reduceat(at["upto"][order], edges),
            closed=np.where(closed == np.iinfo(np.int64).max, -1, closed),
            arrived=np.maximum.reduceat(arrived, edges),
        ), part

    def _window_table(self, at: np.ndarray, part: np.ndarray, windows: _Windows) -> pa.Table:
        """The table of some windows, ordered by time and keys."""
        table = self._merged(at, part, windows)
        inputs = list(self._inputs)
        chosen = np.unique(part)
        places = zip(windows.input[chosen].tolist(), windows.begun[chosen].tolist())
        ids = pa.array([f"{inputs[where]}:{row_text(begun)}" for where, begun in places], pa.string())
        table = table.add_column(2 + len(self._parts.keys), self._schema.field(WINDOW_ID), ids)
        names = [START, END, *self._parts.keys, WINDOW_ID]
        return table.cast(self._schema).sort_by([(name, "ascending") for name in names])

    def _merged(self, at: np.ndarray, part: np.ndarray, windows: _Windows) -> pa.Table:
        """Merge parts into one row per window, in the order of `windows`."""
        return self._parts.merged(at, part, windows.first, windows.last + np.int64(1))

    def _join(self) -> None:
        """Merge the parts of each window."""
        everything = np.arange(len(self._parts))
        if not len(everything):
            return
        windows, part = self._windows(everything)
        table = self._merged(everything, part, windows)
        known = {"first": windows.first, "last": windows.last, "upto": windows.full}
        self._parts.compact(part, table, known)
        self._parts_seen = len(self._parts)
