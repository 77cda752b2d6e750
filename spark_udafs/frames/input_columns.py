"""The columns of a DataFrame that are sketched: their types, and the rows that contain them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import polars as pl
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, StringType, StructType

from ..arrow_schemas import schema_in_arrow
from ..merge.column_codecs import quoted
from ..merge.partials import EVENT
from .aggregate_request import FrameRequest
from .declared import DeclaredFrame
from .windows import event_times


@dataclass(frozen=True)
class InputColumns:
    """Columns by the names that keys and aggregates use for them, in reading order.

    `of_rows` maps these names to the columns of `rows`; `struct` has their types.
    """

    rows: DataFrame | DeclaredFrame
    of_rows: Mapping[str, str]
    struct: StructType

    @classmethod
    def of(cls, frame: DataFrame | DeclaredFrame, request: FrameRequest, time: str | None) -> InputColumns:
        """Select a DataFrame's requested columns, and EVENT, from the column `time`, if there are windows.

        Raises `ValueError` for a time without a zone, and `TypeError` for a number as a time (`event_times`)
        and for collations.
        """
        names = request.names()
        if time is None and request.own() and not frame.isStreaming:
            # The DataFrame's schema has their types; selecting them would take Spark several milliseconds.
            inputs = cls(frame, {n: n for n in names}, StructType([frame.schema[n] for n in names]))
        else:
            columns = {name: request.columns[name] for name in names}
            if time is not None:
                columns[EVENT] = event_times(frame, request.columns[time])
            elif not columns:
                columns[EVENT] = F.expr("timestamp_micros(0)")  # rows without columns can't be sent to Python
            numbered = _numbered(len(columns))
            rows = frame.select(*columns.values()).toDF(*numbered)
            inputs = cls(rows, dict(zip(columns, numbered)), rows.schema)
        _check_collations(inputs.kinds, request)
        return inputs

    @cached_property
    def kinds(self) -> dict[str, DataType]:
        """The columns' types in Spark."""
        return dict(zip(self.of_rows, (field.dataType for field in self.struct)))

    @cached_property
    def in_arrow(self) -> pa.Schema:
        """The schema of the batches that a worker gets."""
        fields = schema_in_arrow(self.struct)
        return pa.schema([field.with_name(name) for field, name in zip(fields, self.of_rows)])

    @cached_property
    def columns(self) -> pl.Schema:
        """The schema of the columns that are sketched."""
        rows = pl.from_arrow(self.in_arrow.empty_table())
        assert isinstance(rows, pl.DataFrame)
        return rows.schema

    @cached_property
    def types(self) -> dict[str, pa.DataType]:
        """The Arrow types of these columns."""
        return {field.name: field.type for field in self.columns.to_frame().to_arrow().schema}

    def alone(self) -> DataFrame:
        """The rows with only these columns, as they are sent to Python workers.

        PySpark's mapInArrow can't handle column names with dots, so the columns are renamed for the trip.
        """
        assert isinstance(self.rows, DataFrame)
        numbered = _numbered(len(self.of_rows))
        if list(self.of_rows.values()) == numbered:
            return self.rows
        return self.rows.select(*map(quoted, self.of_rows.values())).toDF(*numbered)


def _numbered(columns: int) -> list[str]:
    return [f"c{at}" for at in range(columns)]


def _check_collations(kinds: Mapping[str, DataType], request: FrameRequest) -> None:
    compared = {
        column: name for name, a in request.aggregates.items() for column in a.columns if a.name != "count"
    }
    compared.update({key: f"groupBy({key!r})" for key in request.keys})
    for column, where in compared.items():
        kind = kinds[column]
        while isinstance(kind, ArrayType):
            kind = kind.elementType
        if isinstance(kind, StringType) and not kind.isUTF8BinaryCollation():
            raise TypeError(
                f"{where}: {column!r} has the collation {kind.collation}, under which Spark takes "
                "different strings as equal; a sketch counts them apart. Select lower(...) of it, or "
                "collate(..., 'UTF8_BINARY'), first"
            )
