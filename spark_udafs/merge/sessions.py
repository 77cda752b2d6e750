"""Merge sessions inside Spark by our own merge, a bucket of groups at a time, since sessions may join.

A part holds pieces of sessions (`windows.Sessions`). Pieces of a group that overlap or touch are one session,
as in Spark's own `session_window`. A stream stores a bucket's open sessions as one table.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, Row

from ...operators.grouping.group_index import GroupIndex
from ...operators.sketching.session_rows import Stretches
from ...operators.table.merge import Accumulator
from ...operators.table.schema import END, keys_of
from ...operators.table.windows import edges
from .buckets import BucketedPartials, BucketMerge, as_part, joined_parts
from .partials import Mode

_MS = np.int64(1_000)


class BucketedSessions(BucketedPartials):
    """Partial rows that each hold a bucket's pieces of sessions, as a table of sketches."""

    def __init__(self, schema: pa.Schema, gap_us: int, streaming: bool) -> None:
        super().__init__(schema)
        self._gap_us = gap_us
        self._streaming = streaming

    def together(self, ends: np.ndarray) -> np.ndarray:
        """See `BucketedPartials.together`; Spark's watermark, which decides what is late, counts in ms."""
        return -(-ends // _MS) * _MS if self._streaming else np.full_like(ends, ends.max())

    def merged(self, rows: DataFrame, windows: list[Column], mode: Mode | None) -> DataFrame:
        """See `Partials.merged`."""
        merging = SessionMerge(self.table, mode, self._gap_us)
        if mode == "complete":
            # Sessions over a bucket contain the sessions of its groups whole, and make Spark drop late rows,
            # which it does for sessions even in this mode.
            return self.listed(rows.groupBy("__bucket", *windows), merging)
        # The column that carries the watermark must not change: Spark drops late rows by it.
        return self.in_groups(rows.select(windows[0].alias("__timed"), "__bucket", "__table"), merging, mode)


class SessionMerge(BucketMerge):
    """The open sessions of a bucket; emits those whose end the watermark has reached."""

    by = ("__bucket",)

    def __init__(self, schema: pa.Schema, mode: Mode | None, gap_us: int) -> None:
        super().__init__(schema, mode, timed=True)
        self._gap_us = gap_us

    def fold(self, parts: Iterable[bytes], key: Any) -> pa.Table:
        """See `BucketMerge.fold`."""
        table = joined_parts(self.schema, parts)
        starts, ends = edges(table)
        keys = [table.column(name).combine_chunks() for name in keys_of(self.schema)]
        own = GroupIndex().number(np.zeros(len(starts), np.int64), keys)
        pieces = Stretches(own, starts, ends - np.int64(self._gap_us), starts)
        # Sessions that touch are joined, as in Spark.
        sessions, part = pieces.joined(self._gap_us)
        merged = Accumulator(self.schema)
        lengths = sessions.last + np.int64(self._gap_us) - sessions.first
        merged.merge_as(table, sessions.first[part], lengths[part])
        return merged.table()

    # Spark passes the arguments of both by name.
    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        """Merge a micro-batch's parts into the state."""
        parts = [row["__table"] for row in rows]
        held = self._table.get()
        if held is not None:
            parts.append(held[0])
        self._keep(self.fold(parts, key))
        return iter(())

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Row]:
        """Emit the complete sessions. A timer is stale if its session has been extended."""
        held = self._table.get()
        if held is None:
            return iter(())
        table = joined_parts(self.schema, [held[0]])
        over = table.column(END).cast(pa.int64()).to_numpy() <= timerValues.getCurrentWatermarkInMs() * 1_000
        self._keep(table.filter(pa.array(~over)))
        return iter([Row(table=as_part(table.filter(pa.array(over))))] if over.any() else [])

    def _keep(self, table: pa.Table) -> None:
        if not table.num_rows:
            self._table.clear()
            return
        self._table.update((as_part(table),))
        _, ends = edges(table)
        self._handle.registerTimer(-(-int(ends.min()) // 1000))
