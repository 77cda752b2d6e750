"""Tables of sketches in, one out: by coarser windows, by fewer keys, from any engine, in any order."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa

from ..sketches.protocol import Groups, SketchError
from .durations import Duration, microseconds, written
from .grouping import GroupIndex
from .table import END, START, aggregates_of, assemble, keys_of, table_schema


class Accumulator:
    """Tables folded into one another as they come, held open as live sketches.

    Windows keep their length; the tables must be of the given schema, their fields nullable or not.

    >>> from .table import table_schema
    >>> from .aggregates import count
    >>> posts = table_schema({}, {"posts": count()})
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
        """Groups held."""
        return len(self._index)

    def fold(self, table: pa.Table) -> None:
        """Merge a table's rows in. Raises `SketchError` for bytes that are no sketches."""
        starts, ends = (_micros(table, name) for name in (START, END))
        self.fold_as(table, starts, ends - starts)

    def fold_as(self, table: pa.Table, starts: np.ndarray, lengths: np.ndarray) -> None:
        """Merge a table's rows into windows of these starts and lengths (int64 microseconds)."""
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
    types = {key: table.schema.field(key).type for key in keys}
    merged = Accumulator(table_schema(types, aggregates_of(table.schema)))
    merged.fold_as(table, *_windows(table, every))
    return merged.table()


def _windows(table: pa.Table, every: Duration | None) -> tuple[np.ndarray, np.ndarray]:
    """The start and length of the window that each row goes to, in microseconds."""
    starts, ends = _micros(table, START), _micros(table, END)
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


def _micros(table: pa.Table, name: str) -> np.ndarray:
    return _whole(table, name).view(pa.int64()).to_numpy()


def _whole(table: pa.Table, name: str) -> pa.Array:
    column = table.column(name)
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _loose(schema: pa.Schema) -> pa.Schema:
    """The schema with every field nullable: Parquet and Spark don't keep that."""
    return pa.schema([field.with_nullable(True) for field in schema], metadata=schema.metadata)


def _told(schema: pa.Schema) -> str:
    told = {name: asked.to_json() for name, asked in aggregates_of(schema).items()}
    return f"keys {keys_of(schema)}, aggregates {told}"
