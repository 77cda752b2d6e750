"""Merge tables of sketches into one, by coarser windows or fewer keys, from any engine, in any order."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from ...sketches.core.lazy import pl
from ...sketches.core.memory_size import held_bytes
from ...sketches.core.protocol import Groups, SketchError
from ..definition.definition_diff import differences
from ..grouping.group_index import GroupIndex
from ..windows.calendar import calendar_windows
from ..windows.durations import Duration, calendar_length
from ..windows.paned import Paned
from ..windows.tumbling import Tumbling
from .row_sets import RowSets
from .schema import (
    END,
    START,
    aggregates_of,
    definition_of,
    in_current_form,
    keys_of,
    order_of,
    repeats_in_order,
    table_schema,
    window_columns,
    with_sketches,
)
from .window_groups import WindowGroups
from .windows import TableWindows, edges, windows_in, within, zone_of

_ROWS_A_GROUP = 1.5
"""Up to this average, a `RowAccumulator` stores its rows."""


def rows_without(table: pa.Table, other: pa.Table, names: Sequence[str]) -> pa.Table:
    """The rows of a table whose values in these columns occur in no row of `other`, in their order.

    >>> few, more = pa.table({"a": [3]}), pa.table({"a": [1, 3, None], "b": [7, 8, 9]})
    >>> rows_without(more, few, ["a"])["b"].to_pylist()
    [7, 9]
    """
    here, there = (pl.DataFrame(pl.from_arrow(one.select(names))) for one in (table, other))
    rows = here.with_row_index("row").join(there, on=names, how="anti", nulls_equal=True)
    return table.take(rows["row"].sort().to_arrow())


class Accumulator:
    """Merges tables into one as they arrive, holding the groups as live sketches.

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
        self._seed = 0

    def __len__(self) -> int:
        """The number of groups."""
        return len(self._index)

    def merge(self, table: pa.Table) -> None:
        """Merge in a table's rows. Raises `SketchError` for bytes that are not sketches."""
        starts, ends = edges(table)
        self.merge_as(table, starts, ends - starts)

    def merge_as(self, table: pa.Table, starts: np.ndarray, lengths: np.ndarray) -> None:
        """Merge a table's rows into windows with these starts and lengths (int64 microseconds)."""
        if not len(starts):
            return
        # Windows of different lengths may start together, so the length is an additional key.
        keys = [*(_whole(table, key) for key in self._keys), pa.array(lengths)]
        if not len(self._index):
            self._seed = zlib.crc32(starts.tobytes())
        self._merge_rows(table, self._index.number(starts, keys))

    def _merge_rows(self, table: pa.Table, numbers: np.ndarray) -> None:
        """Merge a table's rows into the groups with these numbers."""
        if self._groups is None:
            self._groups = {
                name: aggregate.groups(seed=self._seed) for name, aggregate in self._aggregates.items()
            }
        for name, groups in self._groups.items():
            groups.resize(len(self._index))
            groups.merge(numbers, _whole(table, name))

    def keys_table(self) -> pa.Table:
        """The keys of all groups so far, in order of arrival."""
        types = [self.schema.field(key).type for key in self._keys]
        columns = self._index.keys([*types, pa.int64()])[: len(types)]
        return pa.table(columns, schema=pa.schema(list(zip(self._keys, types))))

    def answers(self, name: str) -> Any:
        """A column's answers, in the same order, as `query` returns them."""
        aggregate = self._aggregates[name]
        return [] if self._groups is None else self._groups[name].answers(**aggregate.answer)

    def groups(self) -> WindowGroups:
        """All groups so far, live, ordered by window and keys; nothing may be merged in after that."""
        if self._groups is None:
            return WindowGroups.of_table(self.schema.empty_table())
        return WindowGroups.live(self.schema, *self._places(), self._groups)

    def table(self) -> pa.Table:
        """All groups so far, ordered by window and keys."""
        return self.groups().table

    def _places(self) -> tuple[np.ndarray, np.ndarray, list[pa.Array]]:
        """The windows' starts and lengths, and the keys, of all groups."""
        types = [self.schema.field(key).type for key in self._keys]
        *keys, length = self._index.keys([*types, pa.int64()])
        return self._index.starts(), length.to_numpy(), keys


class RowAccumulator(Accumulator):
    """An accumulator of rows that mostly have a group of their own, such as a table topic's.

    While few groups have several rows, it stores the rows. A sketch that is alone in its group is then copied
    as bytes, which takes a fraction of the time of reading and writing it. So bytes that are not sketches are
    only detected when they are merged or answered. Once there are many rows per group, all are merged: memory
    grows with the groups and not with the rows.

    >>> from .schema import table_schema
    >>> from ..definition.aggregates import count
    >>> posts = RowAccumulator(table_schema({"tag": pa.string()}, {"posts": count()}, None))
    >>> for tag in ("b", "a", "b"):
    ...     posts.merge(pa.table([[0], [60], [tag], [1]], schema=posts.schema))
    >>> posts.table().select(["tag", "posts"]).to_pylist()
    [{'tag': 'a', 'posts': 1}, {'tag': 'b', 'posts': 2}]
    """

    def __init__(self, schema: pa.Schema) -> None:
        super().__init__(schema)
        self._rows: list[tuple[pa.Table, np.ndarray]] = []
        self._count = 0

    def _merge_rows(self, table: pa.Table, numbers: np.ndarray) -> None:
        if self._groups is not None:
            super()._merge_rows(table, numbers)
            return
        self._rows.append((table, numbers))
        self._count += len(numbers)
        if self._count > len(self) * _ROWS_A_GROUP or not self._is_current(table):
            self._merge_all()

    @property
    def nbytes(self) -> int:
        """Bytes of memory; of rows that share the memory of a larger table, only their own."""
        return held_bytes(self._index, self._groups) + sum(table.nbytes for table, _ in self._rows)

    def _is_current(self, table: pa.Table) -> bool:
        """Whether columns have the types of this version, in which they can be copied."""
        return all(table.schema.field(name).type == self.schema.field(name).type for name in self._aggregates)

    def _merge_all(self) -> None:
        rows, self._rows = self._rows, []
        for table, numbers in rows:
            super()._merge_rows(table, numbers)

    def answers(self, name: str) -> Any:
        """See `Accumulator`."""
        self._merge_all()
        return super().answers(name)

    def groups(self) -> WindowGroups:
        """See `Accumulator`; they are in a table if rows were copied."""
        if not self._rows:
            return super().groups()
        columns = window_columns(self.schema, *self._places())
        order, numbers = order_of(columns), np.concatenate([numbers for _, numbers in self._rows])
        if order is not None:
            place = np.empty(len(self), np.int64)
            place[order.to_numpy()] = np.arange(len(self))
            columns, numbers = columns.take(order), place[numbers]
        sets = RowSets(numbers)

        def merged(name: str) -> pa.Array:
            chunks = [chunk for table, _ in self._rows for chunk in table.column(name).chunks]
            return sets.merge(self._aggregates[name], pa.chunked_array(chunks), self._seed)

        return WindowGroups.of_table(with_sketches(self.schema, columns, None, merged))


def larger_windows(
    verb: str,
    every: Duration,
    offset: Duration | None = None,
    zone: str | None = None,
    schema: pa.Schema | None = None,
) -> Paned:
    """The adjacent windows into which those of a table with this schema are merged.

    They begin by the clock of `zone`, or of the zone of the table's own windows.

    Raises `ValueError`, which begins with `verb`, for invalid lengths.
    """
    if calendar_length(every).mean_us < 1:
        raise ValueError(f'{verb}: {every!r} is not a length for windows; write one such as "1h"')
    zone = zone_of(schema) if zone is None and schema is not None else zone
    try:
        return calendar_windows("tumbling", every, None, offset, zone) or Tumbling.every(every)
    except ValueError as error:
        raise ValueError(f"{verb}: {str(error).removeprefix('tumbling: ')}") from None


def windows_of_rollup(
    verb: str, every: Duration | None, offset: Duration | None, zone: str | None, schema: pa.Schema | None
) -> Paned | None:
    """Like `larger_windows`; None without a length, in which case `offset` and `zone` are not allowed."""
    if every is not None:
        return larger_windows(verb, every, offset, zone, schema)
    if offset is not None or zone is not None:
        raise ValueError(
            f"{verb}: offset= and zone= place the windows of every=, which is missing; set it, as in "
            'every="1d"'
        )
    return None


def merge_tables(
    tables: Iterable[pa.Table], by: Sequence[str] | None = None, larger: Paned | None = None
) -> pa.Table:
    """Implements `sketch_table.merge`, which documents parameters and errors."""
    parts = list(tables)
    if not parts:
        raise ValueError("merge: no tables were given; give at least one, which may be empty")
    parts = _alike(parts)
    own = keys_of(parts[0].schema)
    unknown = [key for key in by or () if key not in own]
    if unknown:
        raise ValueError(f"merge: {', '.join(unknown)} is not a key of this table; its keys are {own}")
    keys = own if by is None else list(by)
    if larger is None:
        table, windows = pa.concat_tables(parts), _windows_of_all(parts)
        starts, ends = edges(table)
        lengths = ends - starts
    else:
        table, windows = _fitting(parts, own, larger), larger.of_table()
        starts, _ = edges(table)
        starts = larger.pane_starts(starts)
        lengths = larger.first_ends(starts) - starts
    types = {key: table.schema.field(key).type for key in keys}
    merged = Accumulator(table_schema(types, aggregates_of(table.schema), windows))
    merged.merge_as(table, starts, lengths)
    return merged.table()


def group_rows(tables: Sequence[pa.Table]) -> pa.Table:
    """Like `merge_tables`, but reads sketches only if several rows belong to one group.

    So invalid sketches are only detected when they are used. Raises `SketchError` for tables that differ.
    """
    parts = _alike(list(tables))
    table = pa.concat_tables(parts)
    keys = keys_of(table.schema)
    for at, name in enumerate(table.column_names):
        if name in (START, END, *keys):  # contiguous, because each step below needs that
            table = table.set_column(at, table.schema.field(name), _whole(table, name))
    parts = [table] if len(parts) == 1 else parts
    columns = table.select([START, END, *keys])
    repeats = repeats_in_order(columns)
    if repeats is None:
        order = order_of(columns)
        rows = pl.DataFrame(columns if order is None else columns.take(order))
        some = rows.select(pl.all_horizontal(pl.all().eq_missing(pl.all().shift())).slice(1).any()).item()
    else:
        order, some = None, repeats.any()
    if some:
        return merge_tables(parts)
    types = {key: table.schema.field(key).type for key in keys}
    schema = table_schema(types, aggregates_of(table.schema), _windows_of_all(parts))
    table = table.select(schema.names)
    return (table if order is None else table.take(order)).cast(schema)


def _windows_of_all(tables: Sequence[pa.Table]) -> TableWindows | None:
    """The windows that all tables have; None if they differ, or are undeclared."""
    kinds = {windows_in(table) for table in tables if table.num_rows} or {windows_in(tables[0])}
    return kinds.pop() if len(kinds) == 1 else None


def _fitting(tables: list[pa.Table], keys: Sequence[str], larger: Paned) -> pa.Table:
    """The rows that make up larger windows, with each row of the stream in exactly one of them."""
    # Tables that don't declare their windows may be parts of one table, so they are checked together.
    known = [table for table in tables if windows_in(table) is not None]
    if len(known) < len(tables):
        known.append(pa.concat_tables(table for table in tables if windows_in(table) is None))
    masks = [within(table, keys, larger) for table in known]
    return pa.concat_tables(
        table if mask is None else table.filter(pa.array(mask)) for table, mask in zip(known, masks)
    )


def _alike(tables: list[pa.Table]) -> list[pa.Table]:
    """The tables in a common schema. Raises `SketchError` if their definitions differ."""
    tables = [in_current_form(table) for table in tables]
    first = tables[0].schema
    columns = []
    for table in tables:
        check_alike(first, table.schema)
        if table.schema != first:
            own = table.schema.metadata
            table = table.select(first.names).cast(_loose(first)).replace_schema_metadata(own)
        columns.append(table)
    return columns


def check_alike(first: pa.Schema, other: pa.Schema, verb: str = "merge") -> None:
    """Raise `SketchError`, which begins with `verb`, if two tables' definitions differ."""
    if changes := differences(definition_of(first), definition_of(other)):
        raise SketchError(
            f"{verb}: the tables have different definitions; from the first to another one "
            f"{', and '.join(changes)}"
        )


def _whole(table: pa.Table, name: str) -> pa.Array:
    column = table.column(name)
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _loose(schema: pa.Schema) -> pa.Schema:
    """The schema with all fields nullable, because Parquet and Spark don't preserve that property."""
    return pa.schema([field.with_nullable(True) for field in schema], metadata=schema.metadata)
