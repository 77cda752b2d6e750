"""Tables of sketches between Spark and Arrow."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from ...operators.definition.definition_diff import differences
from ...operators.table.schema import (
    END,
    START,
    ArrowStream,
    aggregates_of,
    arrow_table,
    definition_of,
    definition_text,
    drop_all_time,
    keys_of,
    with_schema,
)
from ...operators.table.sketch_table import SketchTable
from ...operators.table.spark_footer import DEFINED, KEY_TYPE, ROWS, check_rows, notes_of
from ...operators.table.windows import declared_windows
from ...operators.windows.table import ALL_TIME
from ...sketches.core.protocol import SketchError
from ..arrow_schemas import schema_in_arrow
from ..merge.column_codecs import defined_rows, key_column, quoted, spark_type
from ..slow_starts import patiently
from ..table_columns import DEFINITION, notes_of_column, rows_definition, schema_of_columns
from .row_definitions import described


def as_table(frame: DataFrame) -> SketchTable:
    """Bring a DataFrame's table of sketches to the driver, to query, merge and compare it.

    Its rows are in no particular order. ORC, JSON and CSV keep no metadata, so a table from such files gets
    its definition from its rows, and its aggregates answer their default questions. Raises `SketchError` for
    a DataFrame that isn't a table of sketches, and for rows of different definitions, for example from a
    union, which it names.

    >>> import streamgauge as sg
    >>> table = sg.spark.sketch(spark.range(1000)).agg(users=sg.distinct("id"))
    >>> (users,) = sg.spark.as_table(table).answers()["users"]
    >>> users["lower"] <= 1000 <= users["upper"]
    True
    """
    frame = described(frame)
    schema = schema_of_frame(frame)
    if DEFINED in frame.columns:
        selected = frame.select(*timed_columns(frame, schema), others_defined(frame))
        rows = patiently("as_table", selected.toArrow)
        check_rows(rows[DEFINED], defined_by(frame))
        return SketchTable(with_schema(rows.drop_columns([DEFINED]), schema))
    if frame.columns != schema.names:
        frame = frame.select(*timed_columns(frame, schema))
    return SketchTable(with_schema(patiently("as_table", frame.toArrow), schema))


def timed_columns(frame: DataFrame, schema: pa.Schema) -> list[Column]:
    """Cast a DataFrame's columns to the types of `schema`; a table without windows gets a single window."""
    left_out = dict(zip((START, END), ALL_TIME)) if START not in frame.columns else {}
    return [
        F.expr(f"timestamp_micros({left_out[name]})").alias(name) if name in left_out else F.col(quoted(name))
        for name in schema.names
    ]


def defined_by(frame: DataFrame) -> str | None:
    """Return the definition that all rows of a DataFrame's table of sketches must have, if it is known."""
    return rows_definition(frame.schema)


def others_defined(frame: DataFrame) -> Column:
    """Return rows' definitions where they differ from `defined_by`, and null elsewhere.

    This avoids sending the same text with every row.
    """
    if DEFINED not in frame.columns:
        return F.lit(None).cast("string").alias(DEFINED)
    definitions, known = F.col(DEFINED), defined_by(frame)
    return (definitions if known is None else F.when(definitions != F.lit(known), definitions)).alias(DEFINED)


def schema_of_frame(frame: DataFrame) -> pa.Schema:
    """Return the Arrow schema of a DataFrame's table of sketches, from its columns' metadata.

    Raises `SketchError` for a DataFrame that isn't a table of sketches.
    """
    return schema_of_columns(frame.schema)


def is_described(frame: DataFrame) -> bool:
    """Whether any column of a DataFrame is marked as an aggregate's."""
    return any(DEFINITION in notes_of_column(field) for field in frame.schema)


def comments_of(schema: pa.Schema) -> dict[str, str]:
    """Return the definitions of a table's columns as comments, for catalogs that store no other metadata.

    Comments of keys include their type, because such a catalog may store a wider one.
    """
    windows = declared_windows(schema)
    notes = {name: notes_of(schema.field(name), windows) for name in schema.names[2:]}
    for key in keys_of(schema):
        notes[key] = {KEY_TYPE: str(schema.field(key).type)}
    notes[DEFINED] = {ROWS: definition_text(schema)}
    return {name: json.dumps(note) for name, note in notes.items()}


def one_schema(tables: Sequence[DataFrame], where: str) -> pa.Schema:
    """Return the schema that tables of sketches of one definition share.

    Raises `SketchError`, with a message that begins with `where`, if their definitions or windows differ.
    """
    schemas = [schema_of_frame(one) for one in tables]
    first = schemas[0]
    for other in schemas[1:]:
        changes = differences(_definition(first), _definition(other))
        one, two = declared_windows(first), declared_windows(other)
        if not changes and one != two:
            changes = [f"the windows changed from {one} to {two}"]
        if changes:
            raise SketchError(
                f"{where}: the tables have different definitions; from the first to another one "
                f"{', '.join(changes)}"
            )
    return first


def _definition(schema: pa.Schema) -> dict[str, Any]:
    """Return a table's definition with its keys' types: a union in Spark would turn numbers into text."""
    keys = [[key, str(spark_type(schema.field(key).type, key))] for key in keys_of(schema)]
    return {**definition_of(schema), "keys": keys}


def with_definitions(frame: DataFrame, like: DataFrame) -> DataFrame:
    """Restore the definitions that a table of sketches has lost in Spark SQL, from its original table.

    Spark preserves a column's definition when it only moves the column (filters, joins, unions, views,
    tables, Parquet), and drops it when it computes one, as in ``hll_union_agg(users) AS users``. `like` has
    the columns of `frame`, and perhaps more. The rows' windows are not derived from `like`, because a query
    may have changed them.

    Raises `SketchError` if `like` isn't a table of sketches or lacks a column, and if a column's type is not
    that of its sketches, such as the struct of ``approx_top_k_combine``.

    >>> import streamgauge as sg
    >>> rows = spark.range(100).selectExpr("id", "id % 2 AS side", "timestamp_seconds(id) AS at")
    >>> by_hour = sg.spark.sketch(rows).groupBy("side", sg.spark.window("at", "1 hour"))
    >>> table = by_hour.agg(ids=sg.distinct("id"))
    >>> table.createOrReplaceTempView("sides")
    >>> both = "SELECT window_start, window_end, hll_union_agg(ids) AS ids FROM sides GROUP BY ALL"
    >>> answers = sg.spark.as_table(sg.spark.with_definitions(spark.sql(both), like=table)).answers()
    >>> answers["ids"].struct.field("estimate").round(0).to_list()
    [100.0]
    """
    schema = schema_of_frame(like)
    names, own = frame.columns, keys_of(schema)
    aggregates = [name for name in aggregates_of(schema) if name in names]
    unknown = [name for name in names if name not in (*schema.names, DEFINED)]
    windows = declared_windows(schema)
    said = windows if windows is not None and windows.all_time else None
    times = [START, END] if said is None else []
    if not aggregates or unknown or not {*times} <= {*names}:
        raise SketchError(
            f"with_definitions: the columns are {', '.join(names)}; they must be "
            f"{''.join(f'{time}, ' for time in times)}and then keys and aggregates of "
            f"{', '.join(schema.names[2:])}, under these names"
        )
    types = {field.name: field for field in schema_in_arrow(frame.schema)}
    for name in aggregates:
        wanted, actual = spark_type(schema.field(name).type, name), types[name].type
        if actual != wanted:
            raise SketchError(f"with_definitions: {name!r} has the type {actual}, and its sketches {wanted}")
    keys = [name for name in names if name in own]
    defined = [F.col(DEFINED)] if DEFINED in names else []
    return frame.select(
        *times,
        *(key_column(schema.field(key)) for key in keys),
        *(
            F.col(quoted(name)).alias(name, metadata=notes_of(schema.field(name), said))
            for name in aggregates
        ),
        *defined,
    )


def as_frame(table: ArrowStream, spark: SparkSession) -> DataFrame:
    """Convert a table of sketches into a DataFrame with the definitions of its aggregates.

    Raises `SketchError` for a table of anything but sketches, and `TypeError` for keys of types that Spark
    lacks.

    >>> from datetime import datetime
    >>> import polars as pl
    >>> import streamgauge as sg
    >>> rows = sg.Stream.from_schema({"at": pl.Datetime("us")}, time="at").tumbling("1m").agg(rows=sg.count())
    >>> tester = sg.StreamTester(rows)
    >>> _ = tester.feed([{"at": datetime(2026, 1, 1)}])
    >>> table = tester.finish().tables()
    >>> sg.spark.as_table(sg.spark.as_frame(table, spark)) == table
    True
    """
    timed = arrow_table(table)
    keys_of(timed.schema)
    aggregates, windows = aggregates_of(timed.schema), declared_windows(timed.schema)
    rows = drop_all_time(timed)
    types = [(field.name, spark_type(field.type, field.name)) for field in rows.schema]
    frame = spark.createDataFrame(rows.cast(pa.schema(types)))
    return frame.select(
        *(
            F.col(quoted(field.name)).alias(field.name, metadata=notes_of(field, windows))
            if field.name in aggregates
            else key_column(field)
            for field in rows.schema
        ),
        defined_rows(timed.schema),
    )
