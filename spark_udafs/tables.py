"""Tables of sketches between Spark and Arrow."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema, to_arrow_type
from pyspark.sql.types import StructField

from ..operators.definition.aggregate import METADATA, Aggregate, arrow_type
from ..operators.definition.change import differences
from ..operators.table.schema import (
    BATCH,
    END,
    START,
    aggregates_of,
    definition_of,
    key_type,
    keys_of,
    table_schema,
    with_schema,
)
from ..operators.table.spark_footer import KEY_TYPE, notes_of, windows_of
from ..operators.table.windows import windows_told
from ..sketches.core.protocol import SketchError
from .merge.forms import key_column, quoted, spark_type

_KEY = METADATA.decode()
_COMMENT = "comment"
"""The key under which Spark has a column's comment in its metadata."""


def as_table(frame: DataFrame) -> pa.Table:
    """Bring a DataFrame's table of sketches to the driver, for `query`, `merge` and `compare`.

    Its rows are in no particular order. Raises `SketchError` for a DataFrame that isn't a table of sketches.

    >>> from streamgauge import distinct, query, sketch
    >>> table = sketch(spark.range(1000)).agg(users=distinct("id"))
    >>> (users,) = query(as_table(table))["users"]
    >>> users["lower"] <= 1000 <= users["upper"]
    True
    """
    schema = schema_of_frame(frame)
    if frame.columns != schema.names:
        frame = frame.select(*map(quoted, schema.names))
    return with_schema(frame.toArrow(), schema)


def schema_of_frame(frame: DataFrame) -> pa.Schema:
    """The Arrow schema of a DataFrame's table of sketches, from its columns' metadata.

    Raises `SketchError` for a DataFrame that isn't a table of sketches.
    """
    columns = frame.schema
    notes = {field.name: _notes(field) for field in columns}
    aggregates = {name: Aggregate.from_json(note[_KEY]) for name, note in notes.items() if _KEY in note}
    names = columns.fieldNames()
    if not aggregates or START not in names or END not in names:
        raise SketchError(
            f"not a table of sketches: expected {START}, {END}, keys, and aggregates with their definitions "
            f"in their metadata, got {', '.join(names)}. Where Spark SQL computed a column it dropped the "
            "definition, and so do catalogs that keep only comments, as Iceberg's do: rollup(table, ...) and "
            "TableSink keep it, and with_definitions(frame, like=table) puts it back"
        )
    no_keys = {START, END, BATCH, *aggregates}
    keys = {field.name: _key_type(field) for field in columns if field.name not in no_keys}
    return table_schema(keys, aggregates, windows_of(notes.values()))


def is_described(frame: DataFrame) -> bool:
    """Whether any column of a DataFrame says that it is an aggregate's."""
    return any(_KEY in _notes(field) for field in frame.schema)


def comments_of(schema: pa.Schema) -> dict[str, str]:
    """What a table of sketches has to say of its columns, as comments in catalogs that keep nothing else.

    Keys say their own type as well, since such a catalog may hold them as a wider one.
    """
    windows = windows_told(schema)
    notes = {name: notes_of(schema.field(name), windows) for name in schema.names[2:]}
    for key in keys_of(schema):
        notes[key] = {KEY_TYPE: str(schema.field(key).type)}
    return {name: json.dumps(note) for name, note in notes.items()}


def _notes(field: StructField) -> Mapping[str, str]:
    """What a Spark column says of itself in its metadata, or in its comment."""
    comment = field.metadata.get(_COMMENT, "")
    if comment.startswith(f'{{"{_KEY}'):
        with suppress(json.JSONDecodeError):
            return {**json.loads(comment), **field.metadata}
    return dict(field.metadata)


def one_schema(tables: Sequence[DataFrame], where: str) -> pa.Schema:
    """The schema of tables of sketches of one definition.

    Raises `SketchError`, which begins with `where`, if their definitions or windows differ.
    """
    schemas = [schema_of_frame(one) for one in tables]
    first = schemas[0]
    for other in schemas[1:]:
        found = differences(_definition(first), _definition(other))
        one, two = windows_told(first), windows_told(other)
        if not found and one != two:
            found = [f"the windows changed from {one} to {two}"]
        if found:
            raise SketchError(
                f"{where}: the tables have different definitions; from the first to another one "
                f"{', '.join(found)}"
            )
    return first


def _definition(schema: pa.Schema) -> dict[str, Any]:
    """What a table is of, with its keys' types: Spark would turn a number into text to unite them."""
    keys = [[key, str(spark_type(schema.field(key).type, key))] for key in keys_of(schema)]
    return {**definition_of(schema), "keys": keys}


def with_definitions(frame: DataFrame, like: DataFrame) -> DataFrame:
    """A table of sketches that has lost its definitions in Spark SQL, with those of the table it came from.

    Spark keeps a column's definition wherever it only moves the column (filters, joins, unions, views,
    tables, Parquet), and drops it where it computes one, as ``hll_union_agg(users) AS users`` does. `like`
    has the columns that `frame` has, and perhaps more. What windows the rows are in is not taken from `like`,
    since a query by hand may have changed them.

    Raises `SketchError` if `like` isn't a table of sketches or lacks a column, and if a column is of another
    type than its sketches, such as the struct of ``approx_top_k_combine``.

    >>> from streamgauge import as_table, distinct, query, sketch, window
    >>> rows = spark.range(100).selectExpr("id", "id % 2 AS side", "timestamp_seconds(id) AS at")
    >>> table = sketch(rows).groupBy("side", window("at", "1 hour")).agg(ids=distinct("id"))
    >>> table.createOrReplaceTempView("sides")
    >>> both = "SELECT window_start, window_end, hll_union_agg(ids) AS ids FROM sides GROUP BY ALL"
    >>> answers = query(as_table(with_definitions(spark.sql(both), like=table)))
    >>> answers["ids"].struct.field("estimate").round(0).to_list()
    [100.0]
    """
    schema = schema_of_frame(like)
    names, own = frame.columns, keys_of(schema)
    aggregates = [name for name in aggregates_of(schema) if name in names]
    unknown = [name for name in names if name not in schema.names]
    if not aggregates or unknown or START not in names or END not in names:
        raise SketchError(
            f"with_definitions: the columns are {', '.join(names)}; they must be {START}, {END}, and then "
            f"keys and aggregates of {', '.join(schema.names[2:])}, under these names"
        )
    types = {field.name: field for field in to_arrow_schema(frame.schema, timezone="UTC")}
    for name in aggregates:
        wanted, found = spark_type(schema.field(name).type, name), types[name].type
        if found != wanted:
            raise SketchError(f"with_definitions: {name!r} has the type {found}, and its sketches {wanted}")
    keys = [name for name in names if name in own]
    return frame.select(
        START,
        END,
        *(key_column(schema.field(key)) for key in keys),
        *(
            F.col(quoted(name)).alias(name, metadata=notes_of(schema.field(name), None))
            for name in aggregates
        ),
    )


def _key_type(field: StructField) -> pa.DataType:
    if (told := _notes(field).get(KEY_TYPE)) is not None:
        return arrow_type(told)
    return key_type(to_arrow_type(field.dataType, timezone="UTC"))


def as_frame(table: pa.Table, spark: SparkSession) -> DataFrame:
    """A table of sketches as a DataFrame that keeps the definitions of its aggregates.

    Raises `SketchError` for a table of something else, and `TypeError` for keys of types that Spark lacks.

    >>> from datetime import datetime
    >>> import polars as pl
    >>> from streamgauge import Stream, StreamTester, count
    >>> rows = Stream.from_batches({"at": pl.Datetime("us")}, time="at").tumbling("1m").agg(rows=count())
    >>> tester = StreamTester(rows)
    >>> _ = tester.feed([{"at": datetime(2026, 1, 1)}])
    >>> table = tester.finish().tables()
    >>> as_table(as_frame(table, spark)).equals(table)
    True
    """
    keys_of(table.schema)
    types = [(field.name, spark_type(field.type, field.name)) for field in table.schema]
    frame = spark.createDataFrame(table.cast(pa.schema(types)))
    aggregates, windows = aggregates_of(table.schema), windows_told(table.schema)
    return frame.select(
        *(
            F.col(quoted(name)).alias(name, metadata=notes_of(table.schema.field(name), windows))
            if name in aggregates
            else key_column(table.schema.field(name))
            for name in table.schema.names
        )
    )
