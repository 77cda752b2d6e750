"""Types of columns by their names in SQL."""

from __future__ import annotations

from typing import Any

import polars as pl
from sqlglot import exp

from ..errors import error_at
from ..parse.grammar import check_arguments
from .scalars import Map

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
"""Types with the precision that they have by default."""


def column_type(node: exp.DataType) -> pl.DataType:
    """The Polars type of a column. Raises `SqlError` for a type that isn't supported."""
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
        return _decimal(node)
    if kind == T.MAP:
        return _map(node)
    if kind not in _TYPES:
        raise error_at(
            node,
            "a type must be BOOLEAN, INT, BIGINT, DOUBLE, VARCHAR, TIMESTAMP, DATE, TIME, BYTES, "
            f"DECIMAL(p, s), ARRAY<…>, MAP<VARCHAR, …> or STRUCT<…>, got {node.sql()}",
        )
    if node.expressions and node.sql() not in _WHOLE:
        name = node.sql().partition("(")[0]
        more = _PRECISIONS.get(type(_TYPES[kind]), "")
        raise error_at(node, f"{node.sql()}: a length or precision is not kept; write {name}{more}")
    return _TYPES[kind]


def _decimal(node: exp.DataType) -> pl.Decimal:
    sizes = [one.name for one in node.expressions]
    if not 0 < len(sizes) < 3 or not all(one.isdigit() for one in sizes):
        raise error_at(node, "a DECIMAL must have its precision and its scale: DECIMAL(10, 2)")
    precision, scale = int(sizes[0]), int(sizes[1]) if len(sizes) == 2 else 0
    if not 1 <= precision <= 38:
        raise error_at(node, f"the precision of a DECIMAL must be from 1 to 38, got {precision}")
    if scale > precision:
        raise error_at(
            node, f"the scale of a DECIMAL must be at most its precision, {precision}, got {scale}"
        )
    return pl.Decimal(precision, scale)


def _map(node: exp.DataType) -> Map:
    if len(node.expressions) != 2:
        raise error_at(node, "a MAP must have the types of its keys and its values: MAP<VARCHAR, BIGINT>")
    key, value = node.expressions
    if column_type(key) != pl.String():
        raise error_at(key, "the keys of a MAP must be VARCHAR, as the names of a JSON object are")
    return Map(column_type(value))
