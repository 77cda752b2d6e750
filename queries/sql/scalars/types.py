"""Types of columns by their names in SQL."""

from __future__ import annotations

from typing import Any

import polars as pl
from sqlglot import exp

from ..errors import error_at
from ..parse.grammar import check_arguments

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

_PRECISIONS: dict[Any, str] = {
    pl.String: ", and SUBSTRING(text, 1, 3) for the first 3 characters",
    pl.Datetime: ", which is to the microsecond; DATE_TRUNC('second', time) rounds it down",
}
_WHOLE = ("TIMESTAMP(6)", "TIMESTAMPTZ(6)")
"""Types with the precision that they have anyway."""


def column_type(node: exp.DataType) -> pl.DataType:
    """The Polars type that is meant. Raises `SqlError` for one that isn't supported."""
    check_arguments(node, "type")
    kind = node.this
    if kind in (T.ARRAY, T.LIST):
        if len(node.expressions) != 1:
            raise error_at(node, "an ARRAY must say of what: ARRAY<VARCHAR>")
        return pl.List(column_type(node.expressions[0]))
    if kind == T.STRUCT:
        fields = node.expressions
        if not fields or not all(isinstance(one, exp.ColumnDef) and one.args.get("kind") for one in fields):
            raise error_at(node, "a STRUCT must name its fields with their types: STRUCT<a INT, b VARCHAR>")
        return pl.Struct({field.name: column_type(field.args["kind"]) for field in fields})
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
    if node.expressions and node.sql() not in _WHOLE:
        name = node.sql().partition("(")[0]
        more = _PRECISIONS.get(type(_TYPES[kind]), "")
        raise error_at(node, f"{node.sql()}: a length or precision is not kept; write {name}{more}")
    return _TYPES[kind]
