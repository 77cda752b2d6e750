"""Merge tables of sketches inside Spark by our own merge, in buckets of groups.

This is for tables with an aggregate that Catalyst cannot merge. The hash of its keys assigns each group to
one of `BUCKETS` buckets. A bucket's rows of one window are sent, and stored as state, as one Arrow IPC
stream: a call of Python costs about a millisecond, so there is one call per bucket and not one per group.

Measured (`bench/spark_buckets.py`): a micro-batch that touches 1,000 keys in 10 windows takes 1.1 to 1.4
times as long as one that Catalyst merges, with the same state store on the same machine; `quantiles`,
`frequency` and `membership` of a thousand values take 1.2, 1.7 and 1.6 times as long as `distinct` merged by
Catalyst. In a stream each shuffle partition costs a Python task or two, so Spark's default of 200 is slow on
few cores.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, GroupedData, Row
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from ...operators.grouping.group_index import GroupIndex, hash_keys
from ...operators.kept_form import form_of
from ...operators.table.merge import Accumulator
from ...operators.table.schema import END, START, TIME_TYPE, definition_of, from_ipc, keys_of, to_ipc
from ...operators.table.windows import declared_windows
from ...operators.windows.table import ALL_TIME
from ...operators.windows.window import YEAR_1, YEAR_10000
from ..definitions import check_same, pack
from ..gc_freeze import freeze_imports
from .column_codecs import quoted, spark_type
from .partials import Mode, Partials

BUCKETS = 16
"""The number of buckets per window of a stream. It must never change: checkpoints store state by bucket."""

_DAY_US = 86_400_000_000
_IN_ALL_ZONES = YEAR_1 + _DAY_US, YEAR_10000 - _DAY_US - 1
"""The first and the last time that Python can represent in every time zone; some are 14 hours off UTC."""


class BucketedPartials(Partials):
    """Partial rows that each hold a bucket's part of a window, as a table of sketches."""

    def __init__(self, schema: pa.Schema, buckets: int = BUCKETS) -> None:
        super().__init__(schema)
        self._buckets = np.uint64(buckets)
        self._bucket_keys: Sequence[str] = self.keys

    @property
    def parts(self) -> pa.Schema:
        """The schema of the tables in parts."""
        return self.table

    def own_fields(self) -> list[pa.Field]:
        """Return the columns of the bucket, the length of its window, and the table."""
        kinds = {"__bucket": pa.int32(), "__length": pa.int64(), "__table": pa.binary()}
        return [pa.field(name, kind) for name, kind in kinds.items()]

    def batches(self, table: pa.Table) -> Iterator[pa.RecordBatch]:
        """See `Partials.batches`."""
        if not table.num_rows:
            return
        starts, ends = (
            table.column(name).combine_chunks().view(pa.int64()).to_numpy() for name in (START, END)
        )
        keys = [table.column(key).combine_chunks() for key in self._bucket_keys]
        buckets = (hash_keys(keys, len(starts))[1] % self._buckets).astype(np.int64)
        ends = self.together(ends)
        order = np.lexsort((starts, buckets, ends))
        starts, ends, buckets = starts[order], ends[order], buckets[order]
        table = table.take(pa.array(order)).combine_chunks().cast(self.parts)
        apart = (np.diff(ends) != 0) | (np.diff(buckets) != 0)
        borders = np.flatnonzero(apart) + 1
        firsts, after = np.append(0, borders), np.append(borders, len(order))
        # If rows of one window start at different times (see `frames`), the latest start counts.
        start, end = starts[after - 1], ends[after - 1]
        columns = {
            START: pa.array(start).view(TIME_TYPE),
            # Spark only compares this with its watermark, but PySpark reads it as a date in the session's
            # time zone, which must be in the years 1 to 9999. The table has the real end.
            END: pa.array(np.clip(end, *_IN_ALL_ZONES)).view(TIME_TYPE),
            "__bucket": pa.array(buckets[firsts]),
            "__length": pa.array(end - start),
            "__table": pa.array([as_part(table[a:b]) for a, b in zip(firsts, after)], pa.binary()),
        }
        yield self._batch(columns, len(firsts))

    def together(self, ends: np.ndarray) -> np.ndarray:
        """Return a time for each row; rows with equal times may share a part: same window, late together."""
        return ends

    def merged(self, rows: DataFrame, windows: list[Column], mode: Mode | None) -> DataFrame:
        """See `Partials.merged`. Raises `ValueError` for a stream whose state isn't stored in RocksDB."""
        # The column that carries the watermark must not change: Spark drops late rows by it.
        if len(windows) == 2:
            rows = rows.withColumn("__timed", F.col(END))
            start = F.unix_micros(windows[0])
            end = start + F.col("__length")
        elif windows:
            rows = rows.select(windows[0].alias("__timed"), "__bucket", "__table")
            start, end = (F.unix_micros(f"__timed.{edge}") for edge in ("start", "end"))
        else:
            rows = rows.withColumn("__timed", F.lit(None))
            start, end = map(F.lit, ALL_TIME)
        rows = rows.select("__timed", "__bucket", start.alias("__start"), end.alias("__end"), "__table")
        if not windows and not self.keys and mode is None:
            rows = rows.unionAll(self._without_rows(rows))
        return self.in_groups(rows, WindowMerge(self.table, mode, bool(windows)), mode)

    def _without_rows(self, like: DataFrame) -> DataFrame:
        """Return an empty part for the group of all rows, which exists even without rows, as in Spark."""
        start, end = (pa.array([edge]).view(TIME_TYPE) for edge in ALL_TIME)
        sketches = [aggregate.groups(1).to_arrow() for aggregate in self.aggregates.values()]
        (part,) = self.batches(pa.Table.from_arrays([start, end, *sketches], schema=self.table))
        (bucket,), (table,) = part.column("__bucket").to_pylist(), part.column("__table").to_pylist()
        values = [None, bucket, *ALL_TIME, table]
        return like.sparkSession.range(1).select(
            *(
                F.lit(value).cast(field.dataType).alias(field.name)
                for value, field in zip(values, like.schema)
            )
        )

    def in_groups(self, rows: DataFrame, merging: BucketMerge, mode: Mode | None) -> DataFrame:
        """Merge parts by their bucket and the other columns that `merging` names."""
        groups = rows.groupBy(*merging.by)
        if mode is None:
            columns = self._spark_columns()
            merged = groups.applyInArrow(_merging(merging, columns), from_arrow_schema(columns))
            return self._of_columns(merged)
        if mode == "complete":
            return self.listed(groups, merging)
        check_state_store(rows)
        time = "EventTime" if merging.timed else "None"
        return self._of_tables(groups.transformWithState(merging, _STATE, mode, time))

    def listed(self, groups: GroupedData, merging: BucketMerge) -> DataFrame:
        """Return all groups of a stream at each micro-batch.

        Spark's own aggregate has no watermark in this mode. It stores the parts of all micro-batches.
        """
        parts = groups.agg(F.collect_list("__table").alias("__tables"))
        columns = self._spark_columns()
        merged = parts.mapInArrow(_merging_lists(merging, columns), from_arrow_schema(columns))
        return self._of_columns(merged)

    def _spark_columns(self) -> pa.Schema:
        """Return the table's columns in Spark's types."""
        return pa.schema([pa.field(f.name, spark_type(f.type, f.name)) for f in self.table])

    def _of_tables(self, tables: DataFrame) -> DataFrame:
        columns = self._spark_columns()
        return self._of_columns(
            tables.mapInArrow(_unpacking(self.table, columns), from_arrow_schema(columns))
        )

    def _of_columns(self, merged: DataFrame) -> DataFrame:
        edges = [F.col(START), F.col(END)]
        return self._named(merged, edges, {name: F.col(quoted(name)) for name in self.aggregates})


_STATE = "table binary"
_PROVIDER = "spark.sql.streaming.stateStore.providerClass"


def check_state_store(rows: DataFrame) -> None:
    """Raise `ValueError` without RocksDB; Spark's own error comes late and talks about column families."""
    if "RocksDB" not in (rows.sparkSession.conf.get(_PROVIDER) or ""):
        raise ValueError(
            "an aggregate that Catalyst can't merge needs streaming state in RocksDB; make the session with "
            f"streamgauge.spark.session(), or set {_PROVIDER} to "
            "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
        )


class BucketMerge(StatefulProcessor):
    """One bucket's tables, in the state of a stream or in a batch; subclasses define how they merge.

    Without `timed`, a stream's windows are never complete.
    """

    by: ClassVar[tuple[str, ...]]
    """The columns by which parts are merged."""

    def __init__(self, schema: pa.Schema, mode: Mode | None, timed: bool) -> None:
        self.schema = schema
        self.mode = mode
        self.timed = timed

    def fold(self, parts: Iterable[bytes], key: Any) -> pa.Table:
        """Merge the parts whose columns `by` have the values `key`. Raises `DefinitionChanged`."""
        raise NotImplementedError

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Called by Spark with the handle to the state."""
        freeze_imports()
        self._handle = handle
        self._table = handle.getValueState("table", _STATE)


class WindowMerge(BucketMerge):
    """One bucket of a window: stores its table and emits it when the watermark reaches the window's end.

    In update mode, it emits groups whenever they change.
    """

    by = ("__bucket", "__start", "__end")

    def fold(self, parts: Iterable[bytes], key: Any) -> pa.Table:
        """See `BucketMerge.fold`."""
        _, start, end = key
        return _fold(self.schema, parts, start, end)

    # Spark passes the arguments of both by name.
    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        """Merge a micro-batch's parts into the state."""
        parts = [row["__table"] for row in rows]
        held = self._table.get()
        if held is not None:
            parts.append(held[0])
        elif self.timed:
            self._handle.registerTimer(-(-key[2] // 1000))
        merged = self.fold(parts, key)
        self._table.update((as_part(merged),))
        if self.mode != "update":
            return iter(())
        new = joined_parts(self.schema, parts if held is None else parts[:-1])
        return iter([Row(table=as_part(_of_groups_in(merged, new)))])

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Row]:
        """Emit the table of a complete window, unless its changes were emitted already."""
        held = self._table.get()
        if held is not None:
            check_form(held[0])
        self._table.clear()
        return iter([] if held is None or self.mode == "update" else [Row(table=held[0])])


def _fold(schema: pa.Schema, parts: Iterable[bytes], start: int, end: int) -> pa.Table:
    """Merge the parts of one window. Raises `DefinitionChanged` for parts of another definition."""
    table = joined_parts(schema, parts)
    rows = table.num_rows
    merged = Accumulator(schema)
    merged.merge_as(table, np.full(rows, start, np.int64), np.full(rows, end - start, np.int64))
    return merged.table()


def _of_groups_in(table: pa.Table, other: pa.Table) -> pa.Table:
    """Return the rows of a window's table whose groups are in another table."""
    index = GroupIndex()
    for one in (other, table):
        keys = [one.column(name).combine_chunks() for name in keys_of(table.schema)]
        known = len(index)
        numbers = index.number(np.zeros(one.num_rows, np.int64), keys)
    return table.filter(pa.array(numbers < known))


def as_part(table: pa.Table) -> bytes:
    """Serialise a table for rows between Spark's stages and for its state.

    Spark writes both to disk with lz4; compressing further with zstd would cost more than it saves.
    """
    return to_ipc(table, "lz4")


FORM = 1
"""The version of the state's format. Later versions will begin with `_FORM_MARK` and their number."""

_FORM_MARK = b"form "
"""A prefix that no Arrow stream has."""


def check_form(part: bytes) -> None:
    """Raise `WrittenByNewer` for state in a format that this release doesn't know."""
    beginning = bytes(memoryview(part)[: len(_FORM_MARK) + 4])
    if beginning.startswith(_FORM_MARK):
        number = beginning[len(_FORM_MARK) :].split(b" ")[0]
        form_of({"form": int(number) if number.isdigit() else 0}, FORM, "the state of a streaming query")


def joined_parts(schema: pa.Schema, parts: Iterable[bytes]) -> pa.Table:
    """Concatenate the rows of parts.

    Raises `DefinitionChanged` for parts of another definition, `WrittenByNewer` for a newer format.
    """
    tables = []
    for part in parts:
        check_form(part)
        tables.append(same_definition(from_ipc(part), schema))
    return pa.concat_tables(tables)


def same_definition(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return a table from the state. Raises `DefinitionChanged` if another definition made it."""
    if not table.schema.equals(schema, check_metadata=True):
        check_same(*(pack(_definition(one)) for one in (table.schema, schema)))
    return table.cast(schema)


def _definition(schema: pa.Schema) -> dict[str, Any]:
    """Return a table's columns and windows, as plain JSON."""
    windows = declared_windows(schema)
    return {**definition_of(schema), "window": windows and windows.definition()}


def _merging(merging: BucketMerge, schema: pa.Schema) -> Any:
    def merge(key: tuple[pa.Scalar, ...], rows: pa.Table) -> pa.Table:
        freeze_imports()
        parts = (part.as_buffer() for part in rows.column("__table"))
        return merging.fold(parts, [scalar.as_py() for scalar in key]).cast(schema)

    return merge


def _merging_lists(merging: BucketMerge, schema: pa.Schema) -> Any:
    def merge(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        freeze_imports()
        for batch in batches:
            for row in range(batch.num_rows):
                parts = (part.as_buffer() for part in batch.column("__tables")[row])
                key = [batch.column(name)[row].as_py() for name in merging.by]
                yield from merging.fold(parts, key).cast(schema).to_batches()

    return merge


def _unpacking(own: pa.Schema, schema: pa.Schema) -> Any:
    def unpack(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        freeze_imports()
        for batch in batches:
            for table in batch.column(0):
                yield from same_definition(from_ipc(table.as_buffer()), own).cast(schema).to_batches()

    return unpack
