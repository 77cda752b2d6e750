"""Tables of sketches in, one out: by coarser windows, by fewer keys, from any engine, in any order."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa

from ..sketches.protocol import SketchError
from .durations import Duration, microseconds, written
from .grouping import GroupIndex
from .table import END, START, aggregates_of, assemble, keys_of, table_schema


def merge(
    tables: pa.Table | Iterable[pa.Table], by: Sequence[str] | None = None, every: Duration | None = None
) -> pa.Table:
    """One table with the rows of the same window and keys merged.

    `by` names the keys to keep (all of them if None, none if empty); `every` makes windows of that length,
    of which the tables' own must be parts. Raises `SketchError` for tables of different definitions and for
    windows that don't fit. Merging adds nothing to a sketch's error.
    """
    found = [tables] if isinstance(tables, pa.Table) else list(tables)
    if not found:
        raise ValueError("merge: no tables were given, so their columns aren't known")
    return _merged(_one(found), by, every)


def _one(tables: list[pa.Table]) -> pa.Table:
    """All rows in one table, their definitions checked against the first's."""
    first = tables[0].schema
    keys, aggregates = keys_of(first), aggregates_of(first)
    columns = []
    for table in tables:
        if keys_of(table.schema) != keys or aggregates_of(table.schema) != aggregates:
            raise SketchError(
                f"tables of different definitions can't be merged: {_told(first)} and {_told(table.schema)}"
            )
        columns.append(table.cast(_loose(first)) if table.schema != first else table)
    return pa.concat_tables(columns)


def _merged(table: pa.Table, by: Sequence[str] | None, every: Duration | None) -> pa.Table:
    own = keys_of(table.schema)
    unknown = [key for key in by or () if key not in own]
    if unknown:
        raise ValueError(f"merge: {', '.join(unknown)} is no key of this table; its keys are {own}")
    keys = own if by is None else list(by)
    aggregates = aggregates_of(table.schema)
    schema = table_schema({key: table.schema.field(key).type for key in keys}, aggregates)
    starts, lengths = _windows(table, every)
    index = GroupIndex()
    columns = [_whole(table, key) for key in keys]
    # Windows of different lengths may start together: the length is one more key.
    numbers = index.number(starts, [*columns, pa.array(lengths)])
    merged = {}
    for name, asked in aggregates.items():
        groups = asked.groups(len(index), seed=zlib.crc32(index.starts().tobytes()))
        groups.merge(numbers, _whole(table, name))
        merged[name] = groups
    types = [schema.field(key).type for key in keys]
    *values, length = index.keys([*types, pa.int64()])
    return assemble(schema, index.starts(), length.to_numpy(), values, merged)


def _windows(table: pa.Table, every: Duration | None) -> tuple[np.ndarray, np.ndarray]:
    """The start and length of the window that each row goes to, in microseconds."""
    starts = _whole(table, START).view(pa.int64()).to_numpy()
    ends = _whole(table, END).view(pa.int64()).to_numpy()
    if every is None:
        return starts, ends - starts
    size = microseconds(every)
    wider = starts - starts % np.int64(max(size, 1))
    if size < 1 or (len(ends) and bool((ends > wider + size).any())):
        longest = int((ends - starts).max()) if len(ends) else 0
        raise SketchError(
            f"merge: windows of {written(longest)} don't fit into windows of {every}; choose a multiple"
        )
    return wider, np.full(len(starts), size, np.int64)


def _whole(table: pa.Table, name: str) -> pa.Array:
    column = table.column(name)
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _loose(schema: pa.Schema) -> pa.Schema:
    """The schema with every field nullable: Parquet and Spark don't keep that."""
    return pa.schema([field.with_nullable(True) for field in schema], metadata=schema.metadata)


def _told(schema: pa.Schema) -> str:
    told = {name: asked.to_json() for name, asked in aggregates_of(schema).items()}
    return f"keys {keys_of(schema)}, aggregates {told}"
