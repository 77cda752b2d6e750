"""The table of sketches: one row for each window and group, one column for each aggregate.

Columns: `window_start` and `window_end` (timestamp[us, UTC]), the keys, the aggregates. A table without
windows, such as one of a Spark DataFrame grouped only by keys, has the first two only while it is merged,
with all rows in one window (`ALL_TIME`). The metadata of each aggregate's field contains its definition as
JSON, and the schema's metadata names the keys and the kind of windows, so a reader needs nothing else to
merge and query the table. It exists in memory, as Parquet and as an Arrow IPC stream, and is the same
whichever engine wrote it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ...sketches.core.columns.columns import as_array
from ...sketches.core.compilation.jit import lean
from ...sketches.core.groups.group_numbers import frozen
from ...sketches.core.protocol import SketchError
from ..definition.aggregate import METADATA, Aggregate
from ..definition.definition_diff import aggregate_text
from ..definition.description import sketch_of
from ..definition.stream import Stream
from ..windows.count import WINDOW_ID
from ..windows.table import ALL_TIME, TableWindows
from .spark_footer import DEFINED, FOOTER, footer_contents, to_footer, type_text, without_definition
from .windows import END, START, declared_windows

TIME_TYPE = pa.timestamp("us", "UTC")

_GROUP_ROWS = 1 << 18
"""The rows of a row group: several cores read one each, and a reader holds few whole ones."""

DAY = "window_date"
"""The name in the folders of a table that is partitioned by time; not a column of the table."""

BATCH = "streamgauge_batch"
"""The column of a stored table with the micro-batch that a row came with; not part of the table either."""

BARRIER = "streamgauge_barrier"
"""The column of partial sessions that says which others they may join (`sketching.session_rows`)."""
BEGUN, UPTO = "streamgauge_begun", "streamgauge_upto"
"""The columns of parts of count windows: the row that began the window, and its number of rows so far
(`sketching.count_rows`)."""
_INNER = b"streamgauge.inner"
"""The metadata key that marks columns that are neither keys nor aggregates."""


class ArrowStream(Protocol):
    """Anything that exports its rows as Arrow: a `SketchTable`, a ``pyarrow.Table``, and many frames."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """A capsule with an Arrow stream."""


def schema_of(stream: Stream) -> pa.Schema:
    """The schema of a stream's table of sketches.

    A stream that forwards its rows has one as well, without any rows. So a reader that follows the log of its
    deltas, which only contain positions and the outcome of messages, can treat it like any other.

    >>> import polars as pl
    >>> from streamgauge.operators.definition.aggregates import count, distinct
    >>> rows = Stream.from_schema({"user": pl.String, "at": pl.Datetime("us")}, time="at")
    >>> schema_of(rows.tumbling("1m").agg(posts=count(), users=distinct("user"))).names
    ['window_start', 'window_end', 'posts', 'users']
    """
    window = stream.complete().window
    assert window is not None
    types = stream.reading.arrow_types()
    keys = {key: key_type(types[key]) for key in stream.keys}
    aggregates = {"rows": Aggregate("count")} if stream.sending is not None else stream.aggregates
    keys |= window.added_keys
    return table_schema(keys, aggregates, window.of_table())


def table_schema(
    keys: Mapping[str, pa.DataType],
    aggregates: Mapping[str, Aggregate],
    windows: TableWindows | None,
) -> pa.Schema:
    """The schema of a table with these keys, typed aggregates and windows (None if unknown)."""
    fields = [pa.field(START, TIME_TYPE, nullable=False), pa.field(END, TIME_TYPE, nullable=False)]
    fields += [pa.field(key, kind) for key, kind in keys.items()]
    fields += [_field_of(name, aggregate.to_json()) for name, aggregate in aggregates.items()]
    about: dict[str, Any] = {"keys": list(keys)}
    if windows is not None:
        about["windows"] = windows.definition()
    return pa.schema(fields, metadata={METADATA: json.dumps(about)})


@lru_cache(1_000)
def _field_of(name: str, definition: str) -> pa.Field:
    """The column of an aggregate with this definition."""
    kind = Aggregate.from_json(definition).groups().to_arrow().type
    return pa.field(name, kind, metadata={METADATA: definition})


def arrow_table(table: ArrowStream) -> pa.Table:
    """A table of sketches in the form for merging. Raises `TypeError` without an Arrow stream."""
    if not isinstance(table, pa.Table):
        if not hasattr(table, "__arrow_c_stream__"):
            raise TypeError(
                "a table must be a SketchTable, a pyarrow.Table or another object with __arrow_c_stream__, "
                f"got {table!r}"
            )
        table = pa.table(table)
    return add_all_time(table)


def add_all_time(table: pa.Table) -> pa.Table:
    """Add the window columns that a table without windows omits."""
    if START in table.schema.names or END in table.schema.names:
        return table
    windows = declared_windows(table.schema)
    return _with_times(table) if windows is not None and windows.all_time else table


def drop_all_time(table: pa.Table) -> pa.Table:
    """Remove the window columns of a table without windows."""
    windows = declared_windows(table.schema)
    if windows is None or not windows.all_time or START not in table.column_names:
        return table
    return table.drop_columns([START, END])


def _with_times(table: pa.Table) -> pa.Table:
    """The table with all its rows in one window."""
    for at, name in enumerate((START, END)):
        edge = pa.array([ALL_TIME[at]]).view(TIME_TYPE)[0]
        table = table.add_column(at, pa.field(name, TIME_TYPE, nullable=False), pa.repeat(edge, len(table)))
    return table


def with_barrier(schema: pa.Schema) -> pa.Schema:
    """The schema of partial sessions: their table's, with each session's barrier after the keys."""
    field = pa.field(BARRIER, pa.int64(), nullable=False, metadata={_INNER: b"barrier"})
    return schema.insert(2 + len(keys_of(schema)), field)


def with_parts(schema: pa.Schema) -> pa.Schema:
    """The schema of parts of count windows: their table's, with the window that each belongs to."""
    at = schema.get_field_index(WINDOW_ID)
    schema = schema.remove(at)
    for name in (UPTO, BEGUN):
        schema = schema.insert(at, pa.field(name, pa.int64(), nullable=False, metadata={_INNER: b"part"}))
    return schema


def key_type(kind: pa.DataType) -> pa.DataType:
    """The type in which a key is stored: a plain type that every engine has."""
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind) or pa.types.is_dictionary(kind):
        return pa.string()
    if pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind):
        return pa.binary()
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", kind.tz)
    return kind


def keys_of(schema: pa.Schema) -> list[str]:
    """The key columns. Raises `SketchError` if the schema isn't one of a table of sketches."""
    aggregates = aggregates_of(schema)
    if schema.names[:2] != [START, END] or schema.types[:2] != [TIME_TYPE, TIME_TYPE]:
        raise SketchError(
            f"not a table of sketches: expected {START} and {END} as {TIME_TYPE} first, "
            f"got {schema.names[:2]}"
        )
    inner = {field.name for field in schema if field.metadata and _INNER in field.metadata}
    inner.add(DEFINED)
    return [name for name in schema.names[2:] if name not in aggregates and name not in inner]


def aggregates_of(schema: pa.Schema) -> dict[str, Aggregate]:
    """The aggregates by column, from the fields' metadata. Raises `SketchError` if there are none."""
    aggregates = {
        field.name: Aggregate.from_json(field.metadata[METADATA])
        for field in schema
        if field.metadata and METADATA in field.metadata
    }
    if not aggregates:
        raise SketchError(
            f"not a table of sketches: no column of {schema.names} holds an aggregate's definition"
        )
    return aggregates


def definition_of(schema: pa.Schema) -> dict[str, Any]:
    """A table's definition for `definition.definition_diff`: its keys, and its aggregates by column."""
    aggregates = {name: aggregate.definition() for name, aggregate in aggregates_of(schema).items()}
    return {"keys": keys_of(schema), "aggregates": aggregates}


def assemble(
    schema: pa.Schema,
    starts: Any,
    length_us: int | pa.Array,
    keys: Sequence[pa.Array],
    sketches: Callable[[str], pa.Array],
) -> pa.Table:
    """A table from window starts (int64 microseconds) and key columns, ordered by window and keys.

    `sketches` returns an aggregate's column by name; it is called for one after the other, to save memory.
    """
    columns = window_columns(schema, starts, length_us, keys)
    order = order_of(columns)
    return with_sketches(schema, columns if order is None else columns.take(order), order, sketches)


def window_columns(
    schema: pa.Schema, starts: Any, length_us: int | pa.Array, keys: Sequence[pa.Array]
) -> pa.Table:
    """The columns of a table other than sketches, from window starts (int64 microseconds) and keys."""
    start = pa.array(starts, pa.int64())
    end = pa.array(starts + length_us, pa.int64())
    columns = [start.view(TIME_TYPE), end.view(TIME_TYPE), *keys]
    fields = list(schema)[: len(columns)]
    return pa.Table.from_arrays(
        [c.cast(f.type) if c.type != f.type else c for c, f in zip(columns, fields)], schema=pa.schema(fields)
    )


def order_of(columns: pa.Table) -> pa.Array | None:
    """The order of the rows of `window_columns` by window and keys; None if they are already sorted."""
    if repeats_in_order(columns) is not None:
        return None
    order = pc.sort_indices(columns, [(name, "ascending") for name in columns.schema.names])
    # Merging sorted tables mostly gives sorted rows, and moving sketches costs more than checking.
    return None if np.array_equal(order, np.arange(len(order))) else order


def repeats_in_order(columns: pa.Table) -> np.ndarray | None:
    """A mask of the rows that equal the row before, for sorted rows; it starts with the second row.

    None if the rows are not sorted, or if finding out takes a sort: with nulls or unusual types. Comparing
    adjacent rows takes a tenth of the time of sorting.

    >>> repeats_in_order(pa.table({"a": [1, 1, 1, 2], "b": ["x", "x", "y", "a"]})).tolist()
    [True, False, False]
    >>> repeats_in_order(pa.table({"a": [1, 1], "b": ["y", "x"]})) is None
    True
    """
    same = np.ones(max(0, columns.num_rows - 1), bool)
    for column in columns.columns:
        kind = column.type
        text = pa.types.is_string(kind) or pa.types.is_binary(kind)
        whole = pa.types.is_integer(kind) and kind != pa.uint64()
        if column.null_count or not (text or whole or pa.types.is_timestamp(kind)):
            return None
        values = as_array(column)
        if not text:
            numbers = values.view(pa.int64()) if pa.types.is_timestamp(kind) else values.cast(pa.int64())
            if not _still_in_order(frozen(numbers.to_numpy()), same):
                return None
            continue
        pair = values[1:], values[:-1]
        falls, equal = (compare(*pair).to_numpy(zero_copy_only=False) for compare in (pc.less, pc.equal))
        if (same & falls).any():
            return None
        same &= equal
    return same


@lean
def _still_in_order(numbers, same):
    """Whether no row that is the `same` so far as the one before falls; which of them are still equal."""
    fine = True
    for i in range(len(same)):
        fine &= not same[i] or numbers[i] <= numbers[i + 1]
        same[i] &= numbers[i] == numbers[i + 1]
    return fine


def with_sketches(
    schema: pa.Schema, columns: pa.Table, order: pa.Array | None, sketches: Callable[[str], pa.Array]
) -> pa.Table:
    """The table with these columns, which are already sorted, and the aggregates' (see `assemble`)."""
    made = list(columns.columns)
    for field in list(schema)[len(made) :]:
        column = sketches(field.name)
        column = column.cast(field.type) if column.type != field.type else column
        made.append(column if order is None else column.take(order))
    return pa.Table.from_arrays(made, schema=schema)


def write_parquet(
    table: pa.Table, path: str | Path, group_rows: int | None = None, notes: Mapping[bytes, str] = {}
) -> None:
    """Write Parquet including definitions, for this package and for ``spark.read.parquet``.

    `group_rows` is the number of rows in a row group, 262,144 by default. `notes` go into the file's own
    metadata.
    """
    text = definition_text(table.schema)
    table = drop_all_time(table)
    # For a string that is the same in all rows, a dictionary stores one copy, in memory and in the file.
    same = pa.DictionaryArray.from_arrays(pa.repeat(pa.scalar(0, pa.int8()), table.num_rows), [text])
    footer = to_footer(table.schema, text)
    table = table.append_column(DEFINED, same)
    nested = any(pa.types.is_nested(kind) for kind in table.schema.types)
    plain = nested or [field.name for field in table.schema if not pa.types.is_binary(field.type)]
    # Sketches are nearly all different: dictionary encoding is useless, also for readers.
    with pq.ParquetWriter(path, table.schema, compression="zstd", use_dictionary=plain) as writer:
        writer.write_table(table, group_rows or _GROUP_ROWS)
        if footer is not None:
            writer.add_key_value_metadata({FOOTER: footer})
        if notes:
            writer.add_key_value_metadata(dict(notes))


def read_parquet(
    path: str | Path | Any, where: pc.Expression | None = None, columns: Sequence[str] | None = None
) -> pa.Table:
    """Read what `write_parquet` wrote, or a folder of sketches from Spark or a run; also an open file.

    Only rows for which `where` holds are read, and row groups whose statistics exclude it are skipped.
    `columns` are the columns to read from a file that `write_parquet` wrote. Raises `SketchError` if it
    doesn't contain a table of sketches, or if a folder has files of different definitions.
    """
    if isinstance(path, str | Path) and Path(path).is_dir():
        _check_folder(Path(path))
    names = None if columns is None else list(columns)
    table = pq.read_table(path, columns=names, coerce_int96_timestamp_unit="us", filters=where)
    if DAY in table.column_names and pa.types.is_dictionary(table.schema.field(DAY).type):
        table = table.drop_columns([DAY])  # from the folders' names, not a column of the files
    if BATCH in table.column_names:
        table = table.drop_columns([BATCH])
    table = without_definition(table)
    if not any(METADATA in (field.metadata or {}) for field in table.schema):
        table = _as_spark_wrote(table)
    # If only some files have these columns, only the first one's are known.
    table = add_all_time(drop_all_time(table))
    keys_of(table.schema)
    return table


def _check_folder(folder: Path) -> None:
    """Raise `SketchError` for files of different definitions, which Arrow reads by the first one's."""
    files = sorted(f for f in folder.rglob("*.parquet") if not any(p[0] in "._" for p in f.parts[-1:]))
    first: tuple[Path, dict[str, Any]] | None = None
    for file in files:
        schema = pq.read_schema(file)
        if not any(METADATA in (field.metadata or {}) for field in schema):
            definitions, _, _ = footer_contents(schema.metadata)
        else:
            definitions = {name: aggregate.to_json() for name, aggregate in aggregates_of(schema).items()}
        described = {name: sketch_of(json.loads(text)) for name, text in definitions.items()}
        first = first or (file, described)
        if described != first[1]:
            one, other = (
                ", ".join(f"{name} {aggregate_text(aggregate)}" for name, aggregate in aggregates.items())
                for aggregates in (first[1], described)
            )
            raise SketchError(
                f"{folder}: files of different definitions can't be read as one table: {first[0].name} has "
                f"{one}; {file.name} has {other}"
            )


def definition_text(schema: pa.Schema) -> str:
    """A table's definition in one line: windows, keys and aggregates, without parameters of answers.

    >>> import streamgauge as sg
    >>> definition_text(table_schema({"lang": pa.string()}, {"users": sg.distinct("user")}, None))
    'lang string; users distinct("user", lg_k=12)'
    """
    windows = declared_windows(schema)
    # Sorted by name, because Spark's unions change the order of columns.
    keys = sorted((key, type_text(schema.field(key).type)) for key in keys_of(schema))
    aggregates = sorted(
        (name, aggregate_text(sketch_of(a.definition()))) for name, a in aggregates_of(schema).items()
    )
    parts = ([] if windows is None else [str(windows)]) + [" ".join(pair) for pair in (*keys, *aggregates)]
    return "; ".join(parts)


def in_current_form(table: pa.Table) -> pa.Table:
    """The table with its exact aggregates in the types of this version, whichever version wrote it."""
    for name, aggregate in aggregates_of(table.schema).items():
        field = table.schema.field(name)
        if not aggregate.family.exact or field.type == aggregate.groups().to_arrow().type:
            continue
        groups = aggregate.groups(table.num_rows)
        groups.merge(np.arange(table.num_rows), table.column(name))
        column = groups.to_arrow()
        table = table.set_column(table.schema.get_field_index(name), field.with_type(column.type), column)
    return table


def _as_spark_wrote(table: pa.Table) -> pa.Table:
    definitions, widened, windows = footer_contents(table.schema.metadata)
    if not definitions:
        return table
    keys = {
        field.name: widened.get(field.name, key_type(field.type))
        for field in table.schema
        if field.name not in (START, END, *definitions)
    }
    aggregates = {name: Aggregate.from_json(definition) for name, definition in definitions.items()}
    schema = table_schema(keys, aggregates, windows)
    if windows is not None and windows.all_time:
        table = _with_times(table.drop_columns([name for name in (START, END) if name in table.column_names]))
    return with_schema(table, schema)


def with_schema(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """A table from Spark, with wider keys and nullable columns, cast to this schema."""
    noted = []
    for field in table.schema:
        like = schema.field(field.name)
        noted.append(pa.field(field.name, _in_zones(field.type, like.type), metadata=like.metadata))
    table = in_current_form(table.cast(pa.schema(noted)).select(schema.names))
    return table.cast(pa.schema([pa.field(field.name, field.type) for field in schema])).cast(schema)


def _in_zones(kind: pa.DataType, like: pa.DataType) -> pa.DataType:
    """A type whose instants have the zone that they have in `like`.

    Spark gives instants to Python in its session's zone, and Parquet's INT96, its default, has no zone.
    """
    if pa.types.is_timestamp(kind) and pa.types.is_timestamp(like) and like.tz is not None:
        return pa.timestamp(kind.unit, like.tz)
    if pa.types.is_struct(kind) and pa.types.is_struct(like):
        inner = {field.name: field.type for field in like}
        return pa.struct(
            [field.with_type(_in_zones(field.type, inner.get(field.name, field.type))) for field in kind]
        )
    if pa.types.is_list(kind) and pa.types.is_list(like):
        return pa.list_(kind.value_field.with_type(_in_zones(kind.value_type, like.value_type)))
    return kind


def to_ipc(table: pa.Table, compression: str | None = "zstd") -> bytes:
    """The table as an Arrow IPC stream."""
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def from_ipc(data: bytes) -> pa.Table:
    """The table in an Arrow IPC stream. Raises `SketchError` for bytes of anything else."""
    try:
        table = pa.ipc.open_stream(data).read_all()
        table.validate(full=True)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise SketchError(f"not a table of sketches: {error}") from None
    table = add_all_time(table)
    keys_of(table.schema)
    return table
