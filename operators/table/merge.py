"""Merge tables of sketches into one, by coarser windows or fewer keys, from any engine, in any order."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from ...sketches.core.protocol import Groups, SketchError
from ..definition.change import differences
from ..definition.durations import Duration, microseconds
from ..sketching.grouping import GroupIndex
from .schema import aggregates_of, assemble, definition_of, in_current_form, keys_of, table_schema
from .windows import TableWindows, edges, windows_in, within


class Accumulator:
    """Folds tables into one as they come, and holds the groups as live sketches.

    Windows keep their length; the tables must be of the given schema, their fields nullable or not.

    >>> from .schema import table_schema
    >>> from ..definition.aggregates import count
    >>> posts = table_schema({}, {"posts": count()}, None)
    >>> Accumulator(posts).table().num_rows
    0
    """

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        self._keys = keys_of(schema)
        self._aggregates = aggregates_of(schema)
        self._index = GroupIndex()
        self._groups: dict[str, Groups] | None = None

    def __len__(self) -> int:
        """The number of groups."""
        return len(self._index)

    def fold(self, table: pa.Table) -> None:
        """Merge a table's rows in. Raises `SketchError` for bytes that are not sketches."""
        starts, ends = edges(table)
        self.fold_as(table, starts, ends - starts)

    def fold_as(self, table: pa.Table, starts: np.ndarray, lengths: np.ndarray) -> None:
        """Merge a table's rows into windows with these starts and lengths (int64 microseconds)."""
        if not len(starts):
            return
        # Windows of different lengths may start together: the length is one more key.
        keys = [*(_whole(table, key) for key in self._keys), pa.array(lengths)]
        numbers = self._index.number(starts, keys)
        if self._groups is None:
            seed = zlib.crc32(starts.tobytes())
            self._groups = {name: asked.groups(seed=seed) for name, asked in self._aggregates.items()}
        for name, groups in self._groups.items():
            groups.resize(len(self._index))
            groups.merge(numbers, _whole(table, name))

    def keys_table(self) -> pa.Table:
        """The keys of all groups so far, in the order in which they came."""
        types = [self.schema.field(key).type for key in self._keys]
        columns = self._index.keys([*types, pa.int64()])[: len(types)]
        return pa.table(columns, schema=pa.schema(list(zip(self._keys, types))))

    def answers(self, name: str) -> Any:
        """A column's answers, in the same order; as `query` has them of a table."""
        asked = self._aggregates[name]
        return [] if self._groups is None else self._groups[name].answers(**asked.answer)

    def table(self) -> pa.Table:
        """All groups so far, ordered by window and keys."""
        if self._groups is None:
            return self.schema.empty_table()
        types = [self.schema.field(key).type for key in self._keys]
        *keys, length = self._index.keys([*types, pa.int64()])
        return assemble(self.schema, self._index.starts(), length.to_numpy(), keys, self._groups)


def merge(
    tables: pa.Table | Iterable[pa.Table], by: Sequence[str] | None = None, every: Duration | None = None
) -> pa.Table:
    """Merge the rows that have the same window and keys into one table.

    `by` names the keys to keep (all of them if None, none if empty). `every` makes windows of that length;
    the tables' own windows must fit into them. Overlapping windows hold rows twice, so `every` takes those
    that lie end to end, and a new window is as complete as they are. Merging adds nothing to a sketch's
    error.

    Raises `ValueError` without tables, for keys that the tables don't have, and for an empty length; raises
    `SketchError` for tables of different definitions, for windows that don't fit, and for overlapping
    windows in a table that doesn't say how they overlap.

    >>> import polars as pl
    >>> from streamgauge import Stream, StreamTester, count, distinct, query
    >>> rows = Stream.from_batches({"at": pl.Int64, "user": pl.String}, time=pl.from_epoch("at"))
    >>> tester = StreamTester(rows.tumbling("1m").agg(rows=count(), users=distinct("user")))
    >>> start = 1_767_225_600    # the year 2026
    >>> _ = tester.feed([{"at": start + second, "user": f"user {second % 7}"} for second in range(600)])
    >>> minutes = tester.finish().tables()
    >>> hour = query(merge(minutes, every="1h"))
    >>> minutes.num_rows, hour["rows"].to_list(), hour["users"].struct.field("estimate").round(1).to_list()
    (10, [600], [7.0])
    """
    found = [tables] if isinstance(tables, pa.Table) else list(tables)
    if not found:
        raise ValueError("merge: no tables were given; give at least one, which may be empty")
    found = _alike(found)
    own = keys_of(found[0].schema)
    unknown = [key for key in by or () if key not in own]
    if unknown:
        raise ValueError(f"merge: {', '.join(unknown)} is not a key of this table; its keys are {own}")
    keys = own if by is None else list(by)
    if every is None:
        table = pa.concat_tables(found)
        kinds = {windows_in(part) for part in found if part.num_rows} or {windows_in(found[0])}
        windows = kinds.pop() if len(kinds) == 1 else None
        starts, ends = edges(table)
        lengths = ends - starts
    else:
        size = microseconds(every)
        if size < 1:
            raise ValueError(f'merge: {every!r} is not a length for windows; write one such as "1h"')
        table, windows = _fitting(found, own, size), TableWindows.of(size)
        starts, _ = edges(table)
        starts, lengths = starts - starts % np.int64(size), np.full(len(starts), size, np.int64)
    types = {key: table.schema.field(key).type for key in keys}
    merged = Accumulator(table_schema(types, aggregates_of(table.schema), windows))
    merged.fold_as(table, starts, lengths)
    return merged.table()


def _fitting(tables: list[pa.Table], keys: Sequence[str], size_us: int) -> pa.Table:
    """The rows that make up windows of this size, with each row of the stream in exactly one of them."""
    # Tables that don't say what windows they have may be parts of one table, so they are judged together.
    known = [table for table in tables if windows_in(table) is not None]
    if len(known) < len(tables):
        known.append(pa.concat_tables(table for table in tables if windows_in(table) is None))
    masks = [within(table, keys, size_us) for table in known]
    return pa.concat_tables(
        table if mask is None else table.filter(pa.array(mask)) for table, mask in zip(known, masks)
    )


def _alike(tables: list[pa.Table]) -> list[pa.Table]:
    """The tables in one schema. Raises `SketchError` if their definitions differ."""
    tables = [in_current_form(table) for table in tables]
    first = tables[0].schema
    columns = []
    for table in tables:
        if found := differences(definition_of(first), definition_of(table.schema)):
            raise SketchError(
                f"merge: the tables have different definitions; from the first to another one "
                f"{', and '.join(found)}"
            )
        if table.schema != first:
            own = table.schema.metadata
            table = table.select(first.names).cast(_loose(first)).replace_schema_metadata(own)
        columns.append(table)
    return columns


def _whole(table: pa.Table, name: str) -> pa.Array:
    column = table.column(name)
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _loose(schema: pa.Schema) -> pa.Schema:
    """The schema with every field nullable, since Parquet and Spark don't keep that property."""
    return pa.schema([field.with_nullable(True) for field in schema], metadata=schema.metadata)
