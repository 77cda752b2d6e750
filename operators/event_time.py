"""A row's event time: which expression gives it, as timestamp[us, UTC]."""

from __future__ import annotations

import polars as pl

TIME = "__time"
"""The column that carries event time through a stream's steps."""

UTC_TIME = pl.Datetime("us", "UTC")


def event_time(time: str | pl.Expr, schema: pl.Schema) -> pl.Expr:
    """The expression of a row's event time, from a column's name or an expression over the decoded rows.

    Timestamps without a zone are taken as UTC; strings as ISO 8601, null where they are none. Raises
    `TypeError` for a column that is no time: whole numbers don't say their unit.
    """
    found = pl.col(time) if isinstance(time, str) else time
    try:
        dtype = pl.LazyFrame(schema=schema).select(found.alias(TIME)).collect_schema()[TIME]
    except pl.exceptions.ColumnNotFoundError as error:
        raise TypeError(f"the time {time!s} is no column of {', '.join(schema)}: {error}") from None
    if isinstance(dtype, pl.Datetime):
        zoned = found.dt.convert_time_zone("UTC") if dtype.time_zone else found.dt.replace_time_zone("UTC")
        return zoned.dt.cast_time_unit("us").alias(TIME)
    if dtype == pl.Date:
        return found.cast(pl.Datetime("us")).dt.replace_time_zone("UTC").alias(TIME)
    if dtype == pl.String:
        return found.str.to_datetime("%+", time_unit="us", time_zone="UTC", strict=False).alias(TIME)
    hint = ""
    if dtype.is_numeric():
        hint = f'; say its unit, such as time=pl.from_epoch("{time}", time_unit="ms")'
    raise TypeError(f"the time {time!s} is of type {dtype}, which is no time{hint}")
