"""A DataFrame with a declared schema, which Spark never has to analyse.

Functions of Spark Declarative Pipelines must not analyse anything, because their inputs don't exist yet. So
the caller declares what a table of sketches needs to know: the schema, and whether it is a stream.
"""

from __future__ import annotations

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.types import DataType, StringType, StructField, StructType, TimestampType

from .columns import Term, name_parts, term_of

_CASTS = {"CAST({} AS TIMESTAMP)": TimestampType(), "CAST({} AS STRING)": StringType()}


class DeclaredFrame:
    """The part of a `DataFrame` that `sketch` needs, answered without asking Spark.

    The only expressions it supports are columns, their fields and casts; for any other, Spark would have to
    find the type by analysis.
    """

    storageLevel = StorageLevel.NONE

    def __init__(self, frame: DataFrame, schema: StructType, streaming: bool) -> None:
        self.frame = frame
        self.schema = schema
        self.isStreaming = streaming

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return self.schema.fieldNames()

    @property
    def sparkSession(self) -> SparkSession:
        """The DataFrame's session."""
        return self.frame.sparkSession

    def select(self, *columns: str | Column) -> DeclaredFrame:
        """See `DataFrame.select`. Raises `ValueError` for an expression whose type isn't declared."""
        fields = [_field(self.schema, column) for column in columns]
        return DeclaredFrame(self.frame.select(*columns), StructType(fields), self.isStreaming)

    def toDF(self, *names: str) -> DeclaredFrame:
        """See `DataFrame.toDF`."""
        fields = [StructField(name, field.dataType) for name, field in zip(names, self.schema)]
        return DeclaredFrame(self.frame.toDF(*names), StructType(fields), self.isStreaming)


def _field(schema: StructType, column: str | Column) -> StructField:
    term = Term("name", column) if isinstance(column, str) else term_of(column)
    kind, name = _type_of(schema, term), str(term)
    if term.kind == "name":
        name = name_parts(term.value)[-1]
    return StructField(name, kind)


def _type_of(schema: StructType, term: Term) -> DataType:
    if term.kind == "name" and (kind := _named(schema, name_parts(term.value) or [term.value])) is not None:
        return kind
    if term.kind == "other" and term.value in _CASTS:
        return _CASTS[term.value]
    raise ValueError(
        f"sketch: the type of {term} isn't in the declared schema ({', '.join(schema.fieldNames())}), and "
        "Spark isn't asked for types if a schema is declared; make it a column of the DataFrame first, by "
        "withColumn, and declare that"
    )


def _named(kind: DataType, parts: list[str]) -> DataType | None:
    """Return the type of a column or of a field within one; None if it doesn't exist."""
    for part in parts:
        if not isinstance(kind, StructType) or part not in kind.fieldNames():
            return None
        kind = kind[part].dataType
    return kind
