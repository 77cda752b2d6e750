"""The rows of VALUES: constants, each of its column's type."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import polars as pl
from sqlglot import exp

from ..errors import error_at, errors_at
from ..parse.grammar import check_grammar
from ..parse.statements import InsertValues
from ..plan.catalog import Relation, column_named
from ..plan.expressions import Expressions, constant_time
from ..scalars.scalars import Scalars, a_type, holds, kind_of


def rows_of_values(node: InsertValues, relation: Relation) -> tuple[list[str], list[list[Any]]]:
    """The columns that are named, or all of them, and the rows. Raises `SqlError`."""
    names = [
        column_named(str(one), {**relation.columns, "ROWTIME": 0}, one, relation.name) for one in node.columns
    ]
    names = names or list(relation.columns)
    make = Scalars({})
    constants = Expressions(make, _no_column, now=datetime.now(UTC).replace(tzinfo=None))
    rows = []
    for row in node.rows:
        if len(row.expressions) != len(names):
            raise error_at(row, f"a row must have {len(names)} values, got {len(row.expressions)}")
        values = []
        for name, value in zip(names, row.expressions):
            kind = relation.columns.get(name, pl.Int64())
            one = constants.scalar(value)
            check_grammar(value, "scalar")
            with errors_at(value):
                (series,) = pl.select(one.expr.alias("_")).get_columns()
                values.append(_of_type(series, kind, value))
        rows.append(values)
    return names, rows


def _no_column(node: exp.Column) -> Any:
    raise error_at(node, f"a value must be a constant, got {node.name}; texts stand in single quotes")


def _of_type(series: pl.Series, kind: pl.DataType, at: Any) -> Any:
    value = series[0]
    if value is None:
        return None
    if isinstance(kind, (pl.Datetime, pl.Date)) and isinstance(value, str) and constant_time(value):
        return value
    if kind == pl.Time() and isinstance(value, str):
        series = series.str.strptime(pl.Time, "%T%.f", strict=False)
    result = series.cast(kind, strict=False)[0] if _same_kind(series.dtype, kind) else None
    if isinstance(result, pl.Series):
        result = result.to_list()
    whole = kind.is_integer() and isinstance(value, float)
    if result is None or (whole and result != value):
        shown = value.to_list() if isinstance(value, pl.Series) else value
        raise error_at(at, f"the value must be {a_type(kind)}, got {shown!r}")
    return result


def _same_kind(given: pl.DataType, wanted: pl.DataType) -> bool:
    """Whether values of one type may be those of another, if they are in its range."""
    if isinstance(given, pl.List) and isinstance(wanted, pl.List):
        return _same_kind(given.inner, wanted.inner)  # type: ignore[arg-type]
    if isinstance(given, pl.Struct) and isinstance(wanted, pl.Struct):
        return holds(wanted, given)
    kinds = {"number" if kind_of(one) == "whole" else kind_of(one) for one in (given, wanted)}
    return len(kinds - {"null"}) < 2
