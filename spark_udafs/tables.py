"""Tables of sketches between Spark and Arrow."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import StructField

from ..operators.definition.aggregate import METADATA, Aggregate, arrow_type
from ..operators.table.schema import END, START, aggregates_of, key_type, keys_of, table_schema, with_schema
from ..operators.table.spark_footer import KEY_TYPE, notes_of, windows_of
from ..operators.table.windows import windows_told
from ..sketches.core.protocol import SketchError
from .merge.forms import key_column, quoted, spark_type

_KEY = METADATA.decode()


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
    return with_schema(frame.toArrow(), schema)


def schema_of_frame(frame: DataFrame) -> pa.Schema:
    """The Arrow schema of a DataFrame's table of sketches, from its columns' metadata.

    Raises `SketchError` for a DataFrame that isn't a table of sketches.
    """
    columns = frame.schema
    aggregates = {
        field.name: Aggregate.from_json(field.metadata[_KEY]) for field in columns if _KEY in field.metadata
    }
    names = columns.fieldNames()
    if not aggregates or names[:2] != [START, END]:
        raise SketchError(
            f"not a table of sketches: expected {START}, {END}, keys, and aggregates with their definitions "
            f"in their metadata, got {', '.join(names)}"
        )
    keys = {field.name: _key_type(field) for field in columns.fields[2:] if field.name not in aggregates}
    return table_schema(keys, aggregates, windows_of(field.metadata for field in columns))


def _key_type(field: StructField) -> pa.DataType:
    if KEY_TYPE in field.metadata:
        return arrow_type(field.metadata[KEY_TYPE])
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
