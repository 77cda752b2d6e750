"""A row's event time: the expression that computes it, as timestamp[us, UTC]."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...sketches.core.lazy import pl
from ..formats.reasons import Reason
from ..formats.text.iso_times import read_times
from .number_times import saturated
from .row_wise import check_row_wise, reads_columns

TIME = "__time"
"""The column that carries event time through a stream's steps."""

_UNITS = {"s": "seconds", "ms": "milliseconds"}

_SHOWN = 60
"""The number of characters of a value that an error shows."""


def event_time(time: str | pl.Expr, schema: pl.Schema) -> pl.Expr:
    """The expression of a row's event time, from a column's name or an expression over the decoded rows.

    Raises `TypeError` for a missing column or one that is not a time: numbers don't carry their unit, and
    guessing it from their size would fail for exactly those clocks that are wrong. Raises `ValueError` for an
    expression that depends on other rows, or reads no column.
    """
    expression = pl.col(time) if isinstance(time, str) else time
    written = f'"{time}"' if isinstance(time, str) else str(time)
    try:
        dtype = pl.LazyFrame(schema=schema).select(expression.alias(TIME)).collect_schema()[TIME]
    except pl.exceptions.PolarsError as error:
        if isinstance(time, str):
            raise TypeError(f"time: {written} is not a column of {', '.join(schema)}") from None
        raise TypeError(f"time: {written} can't be computed: {first_line(error)}") from None
    check_row_wise("time", expression, schema)
    if not reads_columns(expression):
        raise ValueError(
            f"time: {written} reads no column, so all rows would have the same event time; name the column "
            "that holds it"
        )
    if isinstance(dtype, pl.Datetime) or dtype in (pl.Date, pl.String):
        return expression.alias(TIME)
    hint = ""
    if dtype.is_numeric():
        shown = written if isinstance(time, str) else f"pl.{written}" if written.startswith("col(") else "…"
        unit = "s" if dtype.is_float() else "ms"
        hint = (
            f": a number doesn't say its unit; for one of {_UNITS[unit]} since 1970 write "
            f'time=pl.from_epoch({shown}, time_unit="{unit}")'
            + ("" if dtype.is_float() else ', else with "s", "us" or "ns"')
        )
    raise TypeError(f"time: {written} is of type {dtype}, which is not a time{hint}")


def in_utc(times: pl.Series) -> pl.Series:
    """The values of an event time's expression as timestamp[us, UTC].

    Timestamps without a zone, and text without an offset, are read as UTC. Text is parsed as ISO 8601
    (`read_times`) and becomes null if it isn't. Values that don't fit become times outside all dates
    (`saturated`).
    """
    return read_times(times) if times.dtype == pl.String else saturated(times)


def why_none(time: Any, columns: Sequence[str]) -> Reason:
    """Why a row has no event time, if the expression over `columns` returned `time`.

    >>> print(why_none("4 July", ["at"]))
    no event time: "at" is '4 July', not a time in ISO 8601
    """
    what = f'"{columns[0]}"' if len(columns) == 1 else "it"
    if time is None:
        return Reason(f"no event time: {what} is null")
    kind = f"no event time: {what} is not a time in ISO 8601"
    return Reason(kind, f"no event time: {what} is {str(time)[:_SHOWN]!r}, not a time in ISO 8601")


def first_line(error: BaseException) -> str:
    """A Polars error's message, without the query plan below it."""
    return str(error).split("\n")[0]
