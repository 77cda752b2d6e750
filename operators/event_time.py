"""A row's event time: which expression gives it, as timestamp[us, UTC]."""

from __future__ import annotations

import polars as pl

TIME = "__time"
"""The column that carries event time through a stream's steps."""

_UNITS = {"s": "seconds", "ms": "milliseconds"}

UTC_TIME = pl.Datetime("us", "UTC")


def event_time(time: str | pl.Expr, schema: pl.Schema) -> pl.Expr:
    """The expression of a row's event time, from a column's name or an expression over the decoded rows.

    Timestamps without a zone are taken as UTC; strings as ISO 8601, null where they are none. Raises
    `TypeError` for a column that isn't there or is no time: numbers don't say their unit, and to guess it
    from their size would fail for the very clocks that are wrong.
    """
    found = pl.col(time) if isinstance(time, str) else time
    written = f'"{time}"' if isinstance(time, str) else str(time)
    try:
        dtype = pl.LazyFrame(schema=schema).select(found.alias(TIME)).collect_schema()[TIME]
    except pl.exceptions.PolarsError as error:
        if isinstance(time, str):
            raise TypeError(f"time: {written} is no column of {', '.join(schema)}") from None
        raise TypeError(f"time: {written} can't be computed: {first_line(error)}") from None
    if isinstance(dtype, pl.Datetime):
        zoned = found.dt.convert_time_zone("UTC") if dtype.time_zone else found.dt.replace_time_zone("UTC")
        return zoned.dt.cast_time_unit("us").alias(TIME)
    if dtype == pl.Date:
        return found.cast(pl.Datetime("us")).dt.replace_time_zone("UTC").alias(TIME)
    if dtype == pl.String:
        return found.str.to_datetime("%+", time_unit="us", time_zone="UTC", strict=False).alias(TIME)
    hint = ""
    if dtype.is_numeric():
        shown = written if isinstance(time, str) else f"pl.{written}" if written.startswith("col(") else "…"
        unit = "s" if dtype.is_float() else "ms"
        hint = (
            f": a number doesn't say its unit; for one of {_UNITS[unit]} since 1970 write "
            f'time=pl.from_epoch({shown}, time_unit="{unit}")'
            + ("" if dtype.is_float() else ', else with "s", "us" or "ns"')
        )
    raise TypeError(f"time: {written} is of type {dtype}, which is no time{hint}")


def first_line(error: Exception) -> str:
    """What a Polars error says, without the plan that it draws below."""
    return str(error).split("\n")[0]
