"""Tables of sketches between Spark and Arrow."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import StructField

from ..operators.definition.aggregates import METADATA, Aggregate, arrow_type
from ..operators.table.schema import END, START, aggregates_of, key_type, keys_of, table_schema, with_schema
from ..operators.table.spark_footer import KEY_TYPE, notes_of, windows_of
from ..operators.table.windows import windows_told
from ..sketches.core.protocol import SketchError
from .merge.forms import key_column, quoted, spark_type

_KEY = METADATA.decode()


def as_table(frame: DataFrame) -> pa.Table:
    """The table of sketches that a DataFrame holds, brought to the driver.

    Its rows are in no particular order. Raises `SketchError` for a DataFrame of something else.
    """
    schema = schema_of_frame(frame)
    return with_schema(frame.toArrow(), schema)


def schema_of_frame(frame: DataFrame) -> pa.Schema:
    """The Arrow schema of a DataFrame's table of sketches, from its columns' metadata.

    Raises `SketchError` for a DataFrame of something else.
    """
    columns = frame.schema
    aggregates = {
        field.name: Aggregate.from_json(field.metadata[_KEY]) for field in columns if _KEY in field.metadata
    }
    names = columns.fieldNames()
    if not aggregates or names[:2] != [START, END]:
        raise SketchError(
            f"no table of sketches: expected {START}, {END}, keys, and aggregates with their definitions in "
            f"their metadata, got {', '.join(names)}"
        )
    keys = {field.name: _key_type(field) for field in columns.fields[2:] if field.name not in aggregates}
    return table_schema(keys, aggregates, windows_of(field.metadata for field in columns))


def _key_type(field: StructField) -> pa.DataType:
    if KEY_TYPE in field.metadata:
        return arrow_type(field.metadata[KEY_TYPE])
    return key_type(to_arrow_type(field.dataType, timezone="UTC"))


def as_frame(table: pa.Table, spark: SparkSession) -> DataFrame:
    """A table of sketches, from wherever it comes, as a DataFrame that keeps its definitions."""
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
