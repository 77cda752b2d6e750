"""Convert Spark's schemas to Arrow's, with times in UTC, for all supported versions of PySpark."""

from __future__ import annotations

from inspect import signature
from typing import Any

import pyarrow as pa
from pyspark.sql.pandas import types as conversions
from pyspark.sql.types import DataType, StructType

# PySpark 4.1 lacks this parameter: its times are in UTC.
_UTC: dict[str, Any] = (
    {"timezone": "UTC"} if "timezone" in signature(conversions.to_arrow_type).parameters else {}
)


def schema_in_arrow(struct: StructType) -> pa.Schema:
    """Return the schema of Arrow batches with these columns.

    >>> from pyspark.sql.types import StructType, TimestampType
    >>> str(schema_in_arrow(StructType().add("at", TimestampType())).field("at").type)
    'timestamp[us, tz=UTC]'
    """
    return conversions.to_arrow_schema(struct, **_UTC)


def type_in_arrow(kind: DataType) -> pa.DataType:
    """Return the Arrow type for a column of this type.

    >>> from pyspark.sql.types import LongType
    >>> type_in_arrow(LongType())
    DataType(int64)
    """
    return conversions.to_arrow_type(kind, **_UTC)
