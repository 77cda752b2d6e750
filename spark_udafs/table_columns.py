"""Tables of sketches as DataFrames: the definitions in the columns' metadata."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress

import pyarrow as pa
from pyspark.sql.types import StructField, StructType

from ..operators.definition.aggregate import METADATA, Aggregate, arrow_type
from ..operators.table.schema import BATCH, END, START, key_type, table_schema, with_schema
from ..operators.table.spark_footer import DEFINED, KEY_TYPE, ROWS, check_rows, windows_of
from ..operators.windows.table import ALL_TIME
from ..sketches.core.protocol import SketchError
from .arrow_schemas import type_in_arrow

DEFINITION = METADATA.decode()
"""The key of a column's aggregate in its metadata."""
_COMMENT = "comment"
"""The key of a column's comment in Spark's metadata."""


def schema_of_columns(columns: StructType) -> pa.Schema:
    """Return the Arrow schema of a table of sketches, from its columns' metadata in Spark.

    Raises `SketchError` for columns that aren't those of a table of sketches.
    """
    notes = {field.name: notes_of_column(field) for field in columns}
    aggregates = {
        name: Aggregate.from_json(note[DEFINITION]) for name, note in notes.items() if DEFINITION in note
    }
    names = columns.fieldNames()
    windows = windows_of(notes.values())
    timed = START in names and END in names
    if not aggregates or not (timed or (windows is not None and windows.all_time)):
        raise SketchError(
            f"not a table of sketches: expected {START}, {END}, keys, and aggregates with their definitions "
            f"in their metadata, got {', '.join(names)}. Where Spark SQL computed a column it dropped the "
            "definition, and so do catalogs that keep only comments, as Iceberg's do: rollup(table, ...) and "
            "SketchesToTable keep it, and with_definitions(frame, like=table) puts it back"
        )
    no_keys = {START, END, BATCH, DEFINED, *aggregates}
    keys = {field.name: _key_type(field) for field in columns if field.name not in no_keys}
    return table_schema(keys, aggregates, windows)


def table_of_rows(rows: pa.Table, columns: StructType) -> pa.Table:
    """Convert the rows of a DataFrame with the columns `columns` into the table of sketches that they are.

    Raises `SketchError` as `as_table` does.
    """
    schema = schema_of_columns(columns)
    if DEFINED in rows.column_names:
        check_rows(rows[DEFINED], rows_definition(columns))
    if START not in rows.column_names:
        for at, name in enumerate((START, END)):
            edge = pa.scalar(ALL_TIME[at], pa.int64()).cast(pa.timestamp("us", "UTC"))
            rows = rows.add_column(at, name, pa.repeat(edge, len(rows)))
    return with_schema(rows.select(schema.names), schema)


def rows_definition(columns: StructType) -> str | None:
    """Return the definition that all rows of such a DataFrame must have, if it is known."""
    return next((notes_of_column(field).get(ROWS) for field in columns if field.name == DEFINED), None)


def notes_of_column(field: StructField) -> Mapping[str, str]:
    """Return the notes in a Spark column's metadata, or in its comment."""
    comment = field.metadata.get(_COMMENT, "")
    if comment.startswith(f'{{"{DEFINITION}'):
        with suppress(json.JSONDecodeError):
            return {**json.loads(comment), **field.metadata}
    return dict(field.metadata)


def _key_type(field: StructField) -> pa.DataType:
    if (noted := notes_of_column(field).get(KEY_TYPE)) is not None:
        return arrow_type(noted)
    return key_type(type_in_arrow(field.dataType))
