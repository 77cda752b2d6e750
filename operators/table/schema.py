"""The table of sketches: one row for each window and group, one column for each aggregate.

Columns: `window_start` and `window_end` (timestamp[us, UTC]), the keys, the aggregates. Each aggregate's
field carries its definition as JSON in its metadata, and the schema's metadata names the keys and the kind of
windows, so that a reader needs nothing else to merge and query it. It lives in memory, as Parquet and as an
Arrow IPC stream, and is the same whichever engine made it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ...sketches.core.protocol import Groups, SketchError
from ..definition.aggregate import METADATA, Aggregate
from ..definition.stream import Stream
from ..definition.windows import ByCount
from .spark_footer import FOOTER, to_footer, told_of
from .windows import END, START, TableWindows

TIME_TYPE = pa.timestamp("us", "UTC")

DAY = "window_date"
"""What the folders of a table that is partitioned by time are named after; not a column of the table."""

BATCH = "streamgauge_batch"
"""The column of a stored table that names the micro-batch a row came with; not one of the table either."""

BARRIER = "streamgauge_barrier"
"""The column of partial sessions that says which others they may meet (`sketching.sessions`)."""
BEGUN, UPTO = "streamgauge_begun", "streamgauge_upto"
"""The columns of parts of windows by count: the row that began the window, and how many rows it has so far
(`sketching.counted`)."""
WINDOW_ID = "window_id"
"""The key that tells windows by count apart, behind the stream's own."""
_INNER = b"streamgauge.inner"
"""The key of a mark in the metadata of columns that are neither keys nor aggregates."""


def schema_of(stream: Stream) -> pa.Schema:
    """The schema of a stream's table of sketches.

    A stream that sends its rows on has one all the same, of which no row ever comes: so whoever follows
    the log of its deltas, which then only tell how far it is and what became of messages, takes it like any
    other.

    >>> import polars as pl
    >>> from streamgauge.operators.definition.aggregates import count, distinct
    >>> rows = Stream.from_batches({"user": pl.String, "at": pl.Datetime("us")}, time="at")
    >>> schema_of(rows.tumbling("1m").agg(posts=count(), users=distinct("user"))).names
    ['window_start', 'window_end', 'posts', 'users']
    """
    window = stream.complete().window
    assert window is not None
    types = stream.arrow_types()
    keys = {key: key_type(types[key]) for key in stream.keys}
    asked = {"rows": Aggregate("count")} if stream.sending is not None else stream.aggregates
    if isinstance(window, ByCount):
        keys[WINDOW_ID] = pa.string()
    return table_schema(keys, asked, TableWindows.of_kind(window))


def table_schema(
    keys: Mapping[str, pa.DataType],
    aggregates: Mapping[str, Aggregate],
    windows: TableWindows | None,
) -> pa.Schema:
    """The schema of a table with these keys, typed aggregates and windows (None if they aren't known)."""
    fields = [pa.field(START, TIME_TYPE, nullable=False), pa.field(END, TIME_TYPE, nullable=False)]
    fields += [pa.field(key, kind) for key, kind in keys.items()]
    fields += [_field_of(name, asked.to_json()) for name, asked in aggregates.items()]
    about: dict[str, Any] = {"keys": list(keys)}
    if windows is not None:
        about["windows"] = windows.definition()
    return pa.schema(fields, metadata={METADATA: json.dumps(about)})


@lru_cache(1_000)
def _field_of(name: str, definition: str) -> pa.Field:
    """The column of an aggregate with this definition."""
    kind = Aggregate.from_json(definition).groups().to_arrow().type
    return pa.field(name, kind, metadata={METADATA: definition})


def with_barrier(schema: pa.Schema) -> pa.Schema:
    """The schema of partial sessions: that of their table, and beside the keys the barrier of each."""
    field = pa.field(BARRIER, pa.int64(), nullable=False, metadata={_INNER: b"barrier"})
    return schema.insert(2 + len(keys_of(schema)), field)


def with_parts(schema: pa.Schema) -> pa.Schema:
    """The schema of parts of windows by count: that of their table, with what tells which window it is of."""
    at = schema.get_field_index(WINDOW_ID)
    schema = schema.remove(at)
    for name in (UPTO, BEGUN):
        schema = schema.insert(at, pa.field(name, pa.int64(), nullable=False, metadata={_INNER: b"part"}))
    return schema


def key_type(kind: pa.DataType) -> pa.DataType:
    """The type in which a key is kept: a plain one that every engine has."""
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind) or pa.types.is_dictionary(kind):
        return pa.string()
    if pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind):
        return pa.binary()
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", kind.tz)
    return kind


def keys_of(schema: pa.Schema) -> list[str]:
    """The key columns. Raises `SketchError` if the schema isn't that of a table of sketches."""
    aggregates = aggregates_of(schema)
    if schema.names[:2] != [START, END] or schema.types[:2] != [TIME_TYPE, TIME_TYPE]:
        raise SketchError(
            f"not a table of sketches: expected {START} and {END} as {TIME_TYPE} first, "
            f"got {schema.names[:2]}"
        )
    inner = {field.name for field in schema if field.metadata and _INNER in field.metadata}
    return [name for name in schema.names[2:] if name not in aggregates and name not in inner]


def aggregates_of(schema: pa.Schema) -> dict[str, Aggregate]:
    """The aggregates by column, from the fields' metadata. Raises `SketchError` if there are none."""
    found = {
        field.name: Aggregate.from_json(field.metadata[METADATA])
        for field in schema
        if field.metadata and METADATA in field.metadata
    }
    if not found:
        raise SketchError(
            f"not a table of sketches: no column of {schema.names} holds an aggregate's definition"
        )
    return found


def definition_of(schema: pa.Schema) -> dict[str, Any]:
    """What a table is of, for `definition.change`: its keys, and its aggregates by column."""
    aggregates = {name: asked.definition() for name, asked in aggregates_of(schema).items()}
    return {"keys": keys_of(schema), "aggregates": aggregates}


def assemble(
    schema: pa.Schema,
    starts: Any,
    length_us: int | pa.Array,
    keys: Sequence[pa.Array],
    groups: Mapping[str, Groups],
) -> pa.Table:
    """A table from window starts (int64 microseconds), key columns and groups, ordered by window and keys."""
    start = pa.array(starts, pa.int64())
    end = pa.array(starts + length_us, pa.int64())
    columns = [start.view(TIME_TYPE), end.view(TIME_TYPE), *keys]
    columns += [groups[name].to_arrow() for name in schema.names[2 + len(keys) :]]
    table = pa.Table.from_arrays(
        [column.cast(kind) if column.type != kind else column for column, kind in zip(columns, schema.types)],
        schema=schema,
    )
    order = pc.sort_indices(table, [(name, "ascending") for name in schema.names[: 2 + len(keys)]])
    # Merging tables in order mostly gives them in order, and moving sketches costs more than looking.
    return table if np.array_equal(order, np.arange(len(order))) else table.take(order)


def write_parquet(table: pa.Table, path: str | Path, group_rows: int | None = None) -> None:
    """Write as Parquet, definitions included, for this package and for ``spark.read.parquet``.

    `group_rows` is how many rows a row group has, as many as Arrow takes unless given.
    """
    aggregates_of(table.schema)
    with pq.ParquetWriter(path, table.schema, compression="zstd") as writer:
        writer.write_table(table, group_rows)
        if (told := to_footer(table.schema)) is not None:
            writer.add_key_value_metadata({FOOTER: told})


def read_parquet(path: str | Path | Any, where: pc.Expression | None = None) -> pa.Table:
    """Read what `write_parquet` wrote, or a folder of sketches that Spark or a run wrote; also an open file.

    Only rows for which `where` holds are read, and row groups whose statistics exclude it are not. Raises
    `SketchError` if it doesn't hold a table of sketches.
    """
    table = pq.read_table(path, coerce_int96_timestamp_unit="us", filters=where)
    if DAY in table.column_names and pa.types.is_dictionary(table.schema.field(DAY).type):
        table = table.drop_columns([DAY])  # of the folders' names; a column of the files is none of these
    if BATCH in table.column_names:
        table = table.drop_columns([BATCH])
    if not any(METADATA in (field.metadata or {}) for field in table.schema):
        table = _as_spark_wrote(table)
    keys_of(table.schema)
    return table


def in_current_form(table: pa.Table) -> pa.Table:
    """The table with its exact aggregates in the types of this version, whichever version wrote it."""
    for name, asked in aggregates_of(table.schema).items():
        field = table.schema.field(name)
        if not asked.family.exact or field.type == asked.groups().to_arrow().type:
            continue
        groups = asked.groups(table.num_rows)
        groups.merge(np.arange(table.num_rows), table.column(name))
        column = groups.to_arrow()
        table = table.set_column(table.schema.get_field_index(name), field.with_type(column.type), column)
    return table


def _as_spark_wrote(table: pa.Table) -> pa.Table:
    definitions, widened, windows = told_of(table.schema.metadata)
    if not definitions:
        return table
    keys = {
        field.name: widened.get(field.name, key_type(field.type))
        for field in table.schema
        if field.name not in (START, END, *definitions)
    }
    aggregates = {name: Aggregate.from_json(told) for name, told in definitions.items()}
    schema = table_schema(keys, aggregates, windows)
    return with_schema(table, schema)


def with_schema(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """A table as Spark holds it, with wider keys and nullable columns, cast to this schema."""
    noted = [field.with_metadata(schema.field(field.name).metadata) for field in table.schema]
    table = in_current_form(table.cast(pa.schema(noted)).select(schema.names))
    return table.cast(pa.schema([pa.field(field.name, field.type) for field in schema])).cast(schema)


def to_ipc(table: pa.Table, compression: str | None = "zstd") -> bytes:
    """The table as an Arrow IPC stream."""
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def from_ipc(data: bytes) -> pa.Table:
    """The table of an Arrow IPC stream. Raises `SketchError` for bytes of anything else."""
    try:
        table = pa.ipc.open_stream(data).read_all()
        table.validate(full=True)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise SketchError(f"not a table of sketches: {error}") from None
    keys_of(table.schema)
    return table
