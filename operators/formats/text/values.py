"""Parsing text as values of the declared type: numbers, Booleans, times; null if it doesn't fit."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from functools import cache
from typing import Any

from ....sketches.core.lazy import np, pl
from ..column_types import check_polars_types
from ..decode import Decoded
from ..reasons import Reason
from .iso_times import read_times

_WHOLE = r"^[+-]?\d+$"
_NO_NUMBER = r"(?i)^[+-]?(inf|infinity|nan)$"
_WITH_EXPONENT = r"^[+-]?\d+(\.\d*)?[eE][+-]?\d+$"
_SHOWN = 60


def check_types(who: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema with complete types. Raises `TypeError` for types that can't be parsed from text."""
    if not isinstance(schema, Mapping) or not schema:
        raise TypeError(
            f'{who}: the schema must map names to types, such as {{"user": pl.String, "price": '
            f"pl.Float64}}, got {schema!r}"
        )
    check_polars_types(who, schema)
    types = {}
    for name, given in schema.items():
        kind = given() if isinstance(given, type) and issubclass(given, pl.DataType) else given
        if isinstance(kind, pl.Decimal) or (
            isinstance(kind, pl.DataType) and kind.base_type() in _read_types()
        ):
            types[name] = kind
            continue
        raise TypeError(
            f"{who}: {name!r} can't be {given}; possible are String, Binary, Boolean, integers, floats, "
            "Decimal, Datetime, Date and Time"
        )
    return types


def read_text(texts: pl.Series, kind: Any) -> pl.Series:
    """Strings as values of a type, null if they don't fit.

    Whole numbers consist of digits only. Numbers that the type can't hold are null, and so are those with
    more digits after the point than a Decimal has, which may have an exponent. Booleans are ``true`` and
    ``false``, times are ISO 8601.

    >>> read_text(pl.Series(["7", " 7", "7.0", "300"]), pl.UInt8()).to_list()
    [7, None, None, None]
    >>> read_text(pl.Series(["1.5", "1e999", "nan", "x"]), pl.Float64()).to_list()
    [1.5, None, nan, None]
    """
    if kind.is_integer():
        return texts.set(~texts.str.contains(_WHOLE), None).cast(kind, strict=False)
    if kind.is_float():
        values = texts.cast(kind, strict=False)
        return values.set(values.is_infinite() & ~texts.str.contains(_NO_NUMBER), None)
    if isinstance(kind, pl.Decimal):
        behind = rf"\d{{1,{kind.scale}}}0*" if kind.scale else "0+"
        exact = rf"^[+-]?(\d+(\.\d{{0,{kind.scale}}}0*)?|\.{behind})$"
        powers = texts.str.contains(_WITH_EXPONENT).fill_null(False)
        if powers.any():
            texts = texts.scatter(powers.arg_true(), [_without_exponent(one) for one in texts.filter(powers)])
        return texts.set(~texts.str.contains(exact), None).cast(kind, strict=False)
    if kind == pl.Boolean:
        lower = texts.str.to_lowercase()
        return (lower == "true").set(~lower.is_in(["true", "false"]), None)
    if kind.is_temporal():
        return as_times(texts, kind)
    return texts.cast(kind)


def _without_exponent(text: str) -> str:
    """A decimal number with all its digits, unless it is longer than any column's.

    >>> _without_exponent("1.50e-1"), _without_exponent("1E+2")
    ('0.150', '100')
    """
    try:
        number = Decimal(text)
    except InvalidOperation:
        return text
    return format(number, "f") if abs(number.adjusted()) < 100 else text


def as_times(texts: pl.Series, kind: Any) -> pl.Series:
    """Strings in ISO 8601 as a Date, a Time or a Datetime; null if they are not."""
    if kind == pl.Date:
        return texts.str.to_date("%F", strict=False)
    if kind == pl.Time:
        return texts.str.to_time("%T%.f", strict=False)
    zoned = read_times(texts, kind.time_unit)
    if kind.time_zone is None:
        return zoned.dt.replace_time_zone(None)
    return zoned.dt.convert_time_zone(kind.time_zone)


def typed_rows(texts: pl.DataFrame, schema: Mapping[str, Any]) -> tuple[pl.DataFrame, dict[int, str]]:
    """Columns of strings in the types of a schema, and the reasons of rows with a value that doesn't fit.

    >>> typed_rows(pl.DataFrame({"n": ["7", "x", None]}), {"n": pl.Int64()})[1]
    {1: '"n" is \\'x\\', not Int64'}
    """
    columns, wrong = [], dict[int, str]()
    for name, kind in schema.items():
        given = texts[name]
        values = read_text(given, kind)
        for row in np.flatnonzero((values.is_null() & given.is_not_null()).to_numpy()).tolist():
            shown = f'"{name}" is {given[row][:_SHOWN]!r}, not {kind}'
            wrong.setdefault(row, Reason(f'"{name}" is not {kind}', shown))
        columns.append(values.alias(name))
    return pl.DataFrame(columns), wrong


def typed(decoded: Decoded, schema: Mapping[str, Any]) -> Decoded:
    """A batch of strings, converted to the types of a schema; rows that don't fit are refused."""
    frame, wrong = typed_rows(decoded.frame, schema)
    gone = np.zeros(frame.height, bool)
    gone[list(wrong)] = True
    whole = Decoded(frame, decoded.rows, decoded.refused, decoded.reasons)
    return whole.without(gone, [wrong[row] for row in sorted(wrong)])


@cache
def _read_types() -> set[Any]:
    return {
        *(pl.String, pl.Binary, pl.Boolean, pl.Float32, pl.Float64, pl.Datetime, pl.Date, pl.Time),
        *(pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64),
    }
