"""Merge windows that depend on a group's rows inside Spark by our own merge, a bucket at a time.

Which windows exist, and what belongs to each, depends on all parts of a bucket's groups: which pieces of
sessions join, which groups have a row in the last pane of a sliding window. So a stream stores the parts of a
bucket's open windows as one table, and closes windows by the consumer's own rules. Hopping and cumulating
windows are merged this way as well: a bucket's panes cost less than as many parts of windows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle

from ...operators.consumer.log.merger_state import EmittedWindows, LogState
from ...operators.consumer.merge.open_windows import Beginning, OpenWindows
from ...operators.consumer.merge.partial_windows import PartialWindows
from ...operators.consumer.merge.window_kinds import open_windows_class
from ...operators.grouping.group_index import GroupIndex
from ...operators.sketching.delta import Delta
from ...operators.sketching.session_rows import Stretches
from ...operators.table.merge import Accumulator
from ...operators.table.schema import BARRIER, END, keys_of, with_barrier
from ...operators.table.windows import edges
from ...operators.windows.paned import Paned
from ...operators.windows.session import Session
from ...operators.windows.window import EARLIEST, LATEST
from ..gc_freeze import freeze_imports
from .buckets import BUCKETS, BucketedPartials, BucketMerge, as_part, joined_parts
from .partials import Mode

_STATE = "table binary, closed long, timer long"
_NEVER = 2**53


class OpenWindowsPartials(BucketedPartials):
    """Partial rows that each hold a bucket's parts of windows; `merging` composes the windows."""

    def __init__(self, schema: pa.Schema, merging: OpenWindowsMerge, buckets: int = BUCKETS) -> None:
        super().__init__(schema, buckets)
        self._merging = merging
        self._bucket_keys = merging.bucket_keys

    @property
    def parts(self) -> pa.Schema:
        """See `BucketedPartials.parts`."""
        return self._merging.parts

    def together(self, ends: np.ndarray) -> np.ndarray:
        """See `BucketedPartials.together`; workers drop late rows, so Spark never has to."""
        return np.full_like(ends, LATEST)

    def merged(self, rows: DataFrame, windows: list[Column], mode: Mode | None) -> DataFrame:
        """See `Partials.merged`."""
        parts = rows.select(F.col(END).alias("__timed"), "__bucket", "__table")
        return self.in_groups(parts, self._merging, mode)


class ClosingSplit(NamedTuple):
    """The windows that close, as a table of sketches; the parts of the others, and when the next closes."""

    closed: pa.Table
    parts: pa.Table
    next_us: int


class OpenWindowsMerge(BucketMerge):
    """The open windows of a bucket; emits those whose end the watermark has reached."""

    by = ("__bucket",)

    def __init__(self, schema: pa.Schema, parts: pa.Schema) -> None:
        super().__init__(schema, "append", timed=True)
        self.parts = parts
        self.bucket_keys = keys_of(schema)

    def split(self, parts: pa.Table, closed_us: int, until_us: int) -> ClosingSplit:
        """Close the windows that end after `closed_us` and by `until_us`."""
        raise NotImplementedError

    def fold(self, parts: Iterable[bytes], key: Any) -> pa.Table:
        """See `BucketMerge.fold`; in a batch, all windows close."""
        return self.split(joined_parts(self.parts, parts), EARLIEST, LATEST).closed

    def init(self, handle: StatefulProcessorHandle) -> None:
        """See `BucketMerge.init`."""
        freeze_imports()
        self._handle = handle
        self._state = handle.getValueState("open", _STATE)

    # Spark passes the arguments of both by name.
    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        """Merge a micro-batch's parts into the state, and emit what is complete."""
        return self._step([row["__table"] for row in rows], timerValues)

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Row]:
        """Emit what is complete."""
        return self._step([], timerValues)

    def _step(self, parts: list[bytes], timer_values: Any) -> Iterator[Row]:
        table, closed, timer = self._state.get() or (None, EARLIEST, _NEVER)
        if table is not None:
            parts.append(table)
        if not parts:
            return iter(())
        # Workers use the same watermark, so no more rows arrive for windows that it has passed.
        until = max(closed, timer_values.getCurrentWatermarkInMs() * 1_000)
        split = self.split(joined_parts(self.parts, parts), closed, until)
        following = -(-split.next_us // 1_000) if split.parts.num_rows else _NEVER
        if following != timer:
            if timer != _NEVER:
                self._handle.deleteTimer(timer)
            if following != _NEVER:
                self._handle.registerTimer(following)
        if split.parts.num_rows:
            self._state.update((as_part(split.parts), until, following))
        else:
            self._state.clear()
        return iter([Row(table=as_part(split.closed))] if split.closed.num_rows else [])


class SessionsMerge(OpenWindowsMerge):
    """Sessions, by the consumer's rule for which rows join (`operators.sketching.session_rows`)."""

    def __init__(self, schema: pa.Schema, window: Session) -> None:
        super().__init__(schema, with_barrier(schema))
        self._gap_us = window.gap_us
        self.bucket_keys = keys_of(schema) if window.by is None else list(window.by)

    def split(self, parts: pa.Table, closed_us: int, until_us: int) -> ClosingSplit:
        """See `OpenWindowsMerge.split`."""
        gap = np.int64(self._gap_us)
        starts, ends = edges(parts)
        keys = {name: parts.column(name).combine_chunks() for name in keys_of(self.schema)}
        own = GroupIndex().number(np.zeros(len(starts), np.int64), [keys[name] for name in self.bucket_keys])
        pieces = Stretches(own, starts, ends - gap, parts.column(BARRIER).to_numpy())
        sessions, part = pieces.joined(self._gap_us)
        # A session has one row for each group; there are several if sessions are by only some of the keys.
        row = part if len(keys) == len(self.bucket_keys) else GroupIndex().number(part, list(keys.values()))
        session = np.empty(int(row.max(initial=-1)) + 1, np.int64)
        session[row] = part
        ends = sessions.last[session] + gap
        table = _merged(parts, self.schema, row, sessions.first[session], ends)
        over = ends <= until_us
        at = self.parts.get_field_index(BARRIER)
        barriers = pa.array(sessions.barrier[session])
        left = table.add_column(at, self.parts.field(at), barriers).filter(pa.array(~over))
        following = int(ends[~over].min(initial=LATEST))
        return ClosingSplit(table.filter(pa.array(over)), left.cast(self.parts), following)


def _merged(
    parts: pa.Table, schema: pa.Schema, part: np.ndarray, starts: np.ndarray, ends: np.ndarray
) -> pa.Table:
    """Merge parts into one row for each window, in window order; `part` has each part's window number."""
    held = PartialWindows(schema, {})
    held.add({}, parts.select(schema.names), lambda: Beginning(0, LogState()), 0)
    return held.merged(np.arange(parts.num_rows), part, starts, ends)


class PanesMerge(OpenWindowsMerge):
    """Windows composed of panes, by the consumer's rules for their kind."""

    def __init__(self, schema: pa.Schema, window: Paned) -> None:
        super().__init__(schema, schema)
        self._window = window

    def split(self, parts: pa.Table, closed_us: int, until_us: int) -> ClosingSplit:
        """See `OpenWindowsMerge.split`."""
        panes = Accumulator(self.schema)
        panes.merge(parts)
        table, window = panes.table(), self._window
        starts, ends = edges(table)
        closed = self._closed(table, closed_us, min(until_us, int(window.last_ends(starts).max())))
        left = window.last_ends(starts) > until_us
        # The end of the first window that is still open, even if a pane's own first window ended before.
        ahead = np.maximum(ends[left], window.first_end(until_us) if until_us > EARLIEST else EARLIEST)
        return ClosingSplit(closed, table.filter(pa.array(left)), int(ahead.min(initial=LATEST)))

    def _closed(self, table: pa.Table, closed_us: int, until_us: int) -> pa.Table:
        kind: Any = open_windows_class(self._window)
        made: OpenWindows = kind(self.schema, self._window)
        emitted = EmittedWindows(until_us=closed_us)
        made.merge(Delta("", "", 0, 0, 0, table), lambda: Beginning(0, LogState()), 0, EARLIEST)
        made.close(until_us, emitted)
        tables = [self.schema.empty_table()]
        while (due := made.due(EARLIEST, emitted)) is not None:
            tables.append(due.groups().table)
            made.mark_emitted(due, emitted, 0)
        return pa.concat_tables([one.cast(self.schema) for one in tables])
