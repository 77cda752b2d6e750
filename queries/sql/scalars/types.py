"""Types of columns by their names in SQL."""

from __future__ import annotations

from typing import Any

import polars as pl
from sqlglot import exp

from ..errors import error_at

T = exp.DType

_TYPES: dict[Any, Any] = {
    **dict.fromkeys((T.VARCHAR, T.TEXT, T.CHAR, T.NVARCHAR, T.NCHAR), pl.String()),
    **dict.fromkeys(
        (T.TIMESTAMP, T.TIMESTAMPTZ, T.TIMESTAMPLTZ, T.TIMESTAMPNTZ, T.DATETIME), pl.Datetime("us")
    ),
    **dict.fromkeys((T.BINARY, T.VARBINARY), pl.Binary()),
    T.BOOLEAN: pl.Boolean(),
    T.TINYINT: pl.Int8(),
    T.SMALLINT: pl.Int16(),
    T.INT: pl.Int32(),
    T.BIGINT: pl.Int64(),
    T.FLOAT: pl.Float32(),
    T.DOUBLE: pl.Float64(),
    T.DATE: pl.Date(),
    T.TIME: pl.Time(),
}


def column_type(node: exp.DataType) -> pl.DataType:
    """The Polars type that is meant. Raises `SqlError` for one that isn't supported."""
    kind = node.this
    if kind == T.ARRAY or kind == T.LIST:
        (inner,) = node.expressions
        return pl.List(column_type(inner))
    if kind == T.STRUCT:
        return pl.Struct({field.name: column_type(field.args["kind"]) for field in node.expressions})
    if kind == T.DECIMAL:
        raise error_at(node, "DECIMAL: write DOUBLE, or BIGINT of the smallest unit")
    if kind == T.MAP:
        raise error_at(node, "MAP: write a STRUCT of the fields that are needed")
    if kind not in _TYPES:
        raise error_at(
            node,
            "a type must be BOOLEAN, INT, BIGINT, DOUBLE, VARCHAR, TIMESTAMP, DATE, TIME, BYTES, ARRAY<…> or "
            f"STRUCT<…>, got {node.sql()}",
        )
    return _TYPES[kind]
