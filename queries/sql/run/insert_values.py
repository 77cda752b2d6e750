"""The rows of VALUES: constants, converted to their columns' types."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Context, Decimal
from typing import Any

import polars as pl
from sqlglot import exp

from ..errors import error_at, errors_at
from ..parse.grammar import check_grammar
from ..parse.statements import InsertValues
from ..plan.catalog import Relation, column_named
from ..plan.expressions import Expressions, constant_time
from ..scalars.scalars import Map, Scalars, a_type, holds, kind_of, map_places, map_value

_WIDE = Context(prec=400)


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
    raise error_at(node, f"a value must be a constant, got {node.name}; strings need single quotes")


def _with_maps(series: pl.Series, kind: Any, at: Any) -> Any:
    """A value of a type that contains MAPs, part by part."""
    if isinstance(kind, pl.List) and isinstance(series.dtype, pl.List):
        elements: pl.Series = series[0]
        inner: Any = kind.inner
        return [_of_type(elements.slice(number, 1), inner, at) for number in range(len(elements))]
    if isinstance(kind, pl.Struct) and isinstance(series.dtype, pl.Struct):
        known = {one.name: series.struct.field(one.name) for one in series.dtype.fields}
        fields: dict[str, Any] = {one.name: one.dtype for one in kind.fields}
        if known.keys() <= fields.keys():
            return {
                name: _of_type(known[name], part, at) if name in known else None
                for name, part in fields.items()
            }
    raise error_at(at, f"the value must be {a_type(kind)}, got {series[0]!r}")


def _of_type(series: pl.Series, kind: pl.DataType, at: Any) -> Any:
    value = series[0]
    if value is None:
        return None
    if isinstance(kind, (pl.Datetime, pl.Date)) and isinstance(value, str) and constant_time(value):
        return value
    if kind == pl.Time() and isinstance(value, str):
        series = series.str.strptime(pl.Time, "%T%.f", strict=False)
    if isinstance(kind, Map) and map_value(series.dtype) is not None:
        entries = value.struct.unnest()
        return [
            {"key": key, "value": _of_type(entries["value"].slice(at_entry, 1), kind.value, at)}
            for at_entry, key in enumerate(entries["key"])
        ]
    if map_places(kind) and not isinstance(kind, Map):
        return _with_maps(series, kind, at)
    if isinstance(kind, Map):
        raise error_at(at, f"the value must be {a_type(kind)}, such as MAP('key' := 1), got {value!r}")
    if isinstance(kind, pl.Decimal) and isinstance(value, int | float | str | Decimal):
        if isinstance(value, str) or not _holds_number(kind, value):
            raise error_at(at, f"the value must be {a_type(kind)}, got {value!r}")
        return Decimal(str(value)).quantize(Decimal(1).scaleb(-kind.scale), context=_WIDE)
    result = series.cast(kind, strict=False)[0] if _same_kind(series.dtype, kind) else None
    if isinstance(result, pl.Series):
        result = result.to_list()
    whole = kind.is_integer() and isinstance(value, float)
    if result is None or (whole and result != value):
        shown = value.to_list() if isinstance(value, pl.Series) else value
        raise error_at(at, f"the value must be {a_type(kind)}, got {shown!r}")
    return result


def _holds_number(kind: pl.Decimal, value: int | float | Decimal) -> bool:
    """Whether a DECIMAL can hold all digits of a number."""
    number = Decimal(str(value)).normalize(_WIDE)
    if not number.is_finite():
        return False
    return (
        number.adjusted() < (kind.precision or 38) - kind.scale
        and -int(number.as_tuple().exponent) <= kind.scale
    )


def _same_kind(given: pl.DataType, wanted: pl.DataType) -> bool:
    """Whether values of one type can be converted to another, if they are in its range."""
    if isinstance(given, pl.List) and isinstance(wanted, pl.List):
        return _same_kind(given.inner, wanted.inner)  # type: ignore[arg-type]
    if isinstance(given, pl.Struct) and isinstance(wanted, pl.Struct):
        return holds(wanted, given)
    kinds = {"number" if kind_of(one) == "whole" else kind_of(one) for one in (given, wanted)}
    return len(kinds - {"null"}) < 2
