"""Streams that run together in one query: their partial rows are in one table, and merged in one state.

Spark has one watermark per query, but each stream closes its windows by its own. So Spark's watermark is not
used: a row that announces a stream's watermark goes to each of its buckets, which then close their windows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from ...operators.definition.stream import Stream
from ...operators.sketching.account import Account
from ...operators.sketching.delta import Delta
from ...operators.table.final import with_final
from ...operators.table.schema import from_ipc, schema_of
from ...operators.windows.count import ByCount
from ...operators.windows.window import EARLIEST, LATEST
from ..gc_freeze import freeze_imports
from .buckets import BucketedPartials, as_part, check_state_store, joined_parts, same_definition
from .counted import CountedPartials, CountMerge
from .merge_plan import OBSERVED
from .open_windows import OpenWindowsMerge, OpenWindowsPartials, PanesMerge, SessionsMerge
from .partials import ACCOUNT, PROGRESS

BUCKETS = 8
"""The number of buckets of a stream. It must never change: a checkpoint's state is stored by bucket."""
STREAM, TABLE, FINAL = "stream", "table", "final"
"""The columns of merged rows: a stream's number, a serialised table of sketches, whether it is final."""

_KEYS = "__stream", "__bucket", "__input"
_NUMBERS = (*ACCOUNT, *PROGRESS)


class StreamPart(NamedTuple):
    """One of the streams: how its partial rows are made and merged."""

    partials: BucketedPartials
    merging: OpenWindowsMerge | CountMerge


def _counted(schema: pa.Schema, window: Any) -> StreamPart:
    return StreamPart(counted := CountedPartials(schema, window), counted.merging)


def _open_windows(
    merge: Callable[[pa.Schema, Any], OpenWindowsMerge],
) -> Callable[[pa.Schema, Any], StreamPart]:
    def part(schema: pa.Schema, window: Any) -> StreamPart:
        merging = merge(schema, window)
        return StreamPart(OpenWindowsPartials(schema, merging, BUCKETS), merging)

    return part


_PARTS: dict[str, Callable[[pa.Schema, Any], StreamPart]] = {
    ByCount.kind: _counted,
    "session": _open_windows(SessionsMerge),
}
"""How streams with these kinds of windows are merged; all other windows are composed of panes."""


def _part_of(stream: Stream) -> StreamPart:
    assert stream.window is not None
    return _PARTS.get(stream.window.kind, _open_windows(PanesMerge))(schema_of(stream), stream.window)


class TogetherPartials:
    """The partial rows of streams, by name; `schema` is their Arrow schema.

    Raises `TypeError` for columns of types that Spark doesn't have.
    """

    def __init__(self, streams: Mapping[str, Stream]) -> None:
        self._names = list(streams)
        self._parts = {name: _part_of(stream) for name, stream in streams.items()}
        kinds = {"__stream": pa.int32(), "__bucket": pa.int32(), "__input": pa.string()}
        kinds |= {"__table": pa.binary(), "__closed": pa.int64()}
        self.schema = pa.schema({**kinds, **dict.fromkeys((f"__{name}" for name in _NUMBERS), pa.int64())})

    def batches_of(self, name: str, delta: Delta) -> Iterator[pa.RecordBatch]:
        """Return the partial rows of a delta."""
        for batch in self._parts[name].partials.batches_of(delta):
            inputs = batch.column("__input") if "__input" in batch.schema.names else _all("", batch.num_rows)
            own = {
                "__bucket": batch.column("__bucket"),
                "__input": inputs,
                "__table": batch.column("__table"),
            }
            yield self._batch(name, own, batch.num_rows)

    def announcement(
        self, name: str, account: Account, messages: int, lag: int, closed_us: int | None
    ) -> Iterator[pa.RecordBatch]:
        """Return the row with an account and progress; one row per bucket if a watermark is announced."""
        numbers = {name: getattr(account, name) for name in ACCOUNT} | {"messages": messages, "lag": lag}
        yield self._batch(name, {f"__{one}": pa.array([number]) for one, number in numbers.items()}, 1)
        if closed_us is not None and isinstance(self._parts[name].merging, OpenWindowsMerge):
            closed = _all(closed_us, BUCKETS)
            own = {"__bucket": pa.array(range(BUCKETS)), "__input": _all("", BUCKETS), "__closed": closed}
            yield self._batch(name, own, BUCKETS)

    def _batch(self, name: str, columns: Mapping[str, pa.Array], rows: int) -> pa.RecordBatch:
        given = {"__stream": _all(self._names.index(name), rows), **columns}
        arrays = [
            given[field.name].cast(field.type) if field.name in given else pa.nulls(rows, field.type)
            for field in self.schema
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def merged(self, partials: DataFrame, filling: bool = False) -> DataFrame:
        """Return the tables of sketches that micro-batches close, as `STREAM`, `TABLE` and `FINAL`.

        With `filling`, also the current state of open windows whenever a row announces a watermark. Accounts
        and progress are among the query's observed metrics, prefixed with the stream's name and a colon.
        Raises `ValueError` if state isn't stored in RocksDB.
        """
        check_state_store(partials)
        observed = [
            F.sum(F.when(F.col("__stream") == number, F.col(f"__{column}"))).alias(f"{name}:{column}")
            for number, name in enumerate(self._names)
            for column in _NUMBERS
        ]
        rows = partials.observe(OBSERVED, *observed).filter(F.col("__bucket").isNotNull())
        merging = TogetherMerge([part.merging for part in self._parts.values()], filling)
        return (
            rows.select(*_KEYS, "__table", "__closed")
            .groupBy(*_KEYS)
            .transformWithState(merging, f"{STREAM} int, {TABLE} binary, {FINAL} boolean", "append", "None")
        )

    def table_of(self, name: str, rows: pa.Table, final: bool) -> pa.Table:
        """Return a stream's windows among merged rows: closed ones if `final`, else open ones.

        Raises `DefinitionChanged` for windows of another definition.
        """
        schema = self._parts[name].partials.table
        mask = pc.and_(
            pc.equal(rows.column(STREAM), self._names.index(name)), pc.equal(rows.column(FINAL), final)
        )
        own = rows.filter(mask)
        tables = [same_definition(from_ipc(image.as_buffer()), schema) for image in own.column(TABLE)]
        return with_final(pa.concat_tables([schema.empty_table(), *tables]).combine_chunks(), final)


class TogetherMerge(StatefulProcessor):
    """The open windows of one bucket of one stream; for count windows, of one input partition as well."""

    def __init__(self, merges: list[OpenWindowsMerge | CountMerge], filling: bool) -> None:
        self._merges = merges
        self._filling = filling

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Called by Spark with the handle to the state."""
        freeze_imports()
        self._state = handle.getValueState("open", "table binary, closed long")

    # Spark passes the arguments by name.
    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        """Merge a micro-batch's parts into the state, and emit what is complete."""
        stream, *own_key = key
        parts, announced = [], []
        for row in rows:
            if row["__table"] is not None:
                parts.append(row["__table"])
            else:
                announced.append(row["__closed"])
        merging = self._merges[stream]
        if isinstance(merging, CountMerge):
            tables = self._counted(merging, own_key, parts)
        else:
            tables = self._closed(merging, parts, announced)
        return (
            Row(stream=stream, table=as_part(table), final=final) for table, final in tables if table.num_rows
        )

    def _closed(
        self, merging: OpenWindowsMerge, parts: list[bytes], announced: list[int]
    ) -> Iterator[tuple[pa.Table, bool]]:
        table, closed = self._state.get() or (None, EARLIEST)
        if table is not None:
            parts.append(table)
        if not parts:
            return
        # Workers use the same watermark, so no more rows arrive for windows that it has passed.
        until = max(closed, *announced, EARLIEST)
        split = merging.split(joined_parts(merging.parts, parts), closed, until)
        self._keep(split.parts, until)
        yield split.closed, True
        # All buckets are called in this case, so the open windows are emitted completely.
        if self._filling and announced and split.parts.num_rows:
            yield merging.split(split.parts, until, LATEST).closed, False

    def _counted(
        self, merging: CountMerge, key: list[Any], parts: list[bytes]
    ) -> Iterator[tuple[pa.Table, bool]]:
        held = self._state.get()
        if parts:
            full, others = merging.filled(parts, key, None if held is None else held[0])
            self._keep(others, EARLIEST)
            yield full, True

    def _keep(self, table: pa.Table, closed_us: int) -> None:
        if table.num_rows:
            self._state.update((as_part(table), closed_us))
        else:
            self._state.clear()


def _all(value: Any, rows: int) -> pa.Array:
    return pa.array([value] * rows)
