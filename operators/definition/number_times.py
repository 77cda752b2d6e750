"""Numbers as times: detect expressions that overflow the range of dates.

Polars computes in int64 and wraps around silently: `pl.from_epoch("at", time_unit="s")` turns
`Long.MAX_VALUE`, which programs write for "none", into a date in 1969. An expression over one column of
integers is almost always linear, so evaluating it for a few small numbers gives the range of integers that it
maps to dates; integers outside are out of range. The two ends of int64 are never times in any unit, although
Long.MIN_VALUE nanoseconds would be in 1677.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from ...sketches.core.lazy import np, pl
from ..windows.window import YEAR_1, YEAR_10000

BEFORE_ALL, AFTER_ALL = -(2**63), 2**63 - 1
"""Microseconds outside all dates; they stand for values that don't fit."""

_MOST = 2**63 - 1
_ENDS = 1 - _MOST, _MOST - 1
_DAY_US = 86_400_000_000
_DATES = {
    unit: (YEAR_1 // factor, YEAR_10000 // factor - 1)
    for unit, factor in {"us": 1, "ms": 1_000, "D": _DAY_US}.items()
}
"""The smallest and the largest number, by unit, that is a time in the years 1 to 9999."""
_INTEGERS = ("Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64")
_PROBES = (0, 50, 100, 127, 1_000, 32_000, 1_000_000, 2_000_000_000)


def saturated(times: pl.Series) -> pl.Series:
    """Dates and times as timestamp[us, UTC]; what doesn't fit becomes `BEFORE_ALL` or `AFTER_ALL`.

    >>> far = pl.Series([0, 2**63 - 1, -(2**63)], dtype=pl.Int64).cast(pl.Datetime("ms"))
    >>> saturated(far).to_physical().to_list() == [0, AFTER_ALL, BEFORE_ALL]
    True
    """
    low, high = _DATES.get("D" if times.dtype == pl.Date else getattr(times.dtype, "time_unit", ""), _ENDS)
    # `to_physical` and methods of `dt` would build a plan and wait for a thread of Polars' pool.
    numbers = times.cast(pl.Int64)
    if numbers.len() > numbers.null_count() and not low <= numbers.min() <= numbers.max() <= high:  # type: ignore[operator]
        before, after = numbers < low, numbers > high
        # Polars fails on some of these values, and wraps around on others.
        inside = pl.select(pl.when(before | after).then(None).otherwise(numbers)).to_series()
        return _replaced(inside.cast(times.dtype).cast(pl.Datetime("us", "UTC")), before, after)
    return times.cast(pl.Datetime("us", "UTC"))


@dataclass(frozen=True, slots=True)
class NumberLimits:
    """The integers of a column, from `low` to `high`, that an expression can convert to dates."""

    column: str
    low: int
    high: int

    @classmethod
    def of(cls, time: pl.Expr, schema: pl.Schema) -> NumberLimits | None:
        """The limits for a time over one column of integers; None if it reads other columns.

        If a time isn't linear in its column, only the two ends of int64 are known to be out of range.

        >>> NumberLimits.of(pl.from_epoch("at", time_unit="s"), pl.Schema({"at": pl.Int64}))
        NumberLimits(column='at', low=-62135683200, high=253402387200)
        """
        names = list(dict.fromkeys(time.meta.root_names()))
        if len(names) != 1 or str(dtype := schema[names[0]]) not in _INTEGERS:
            return None
        line = _line(time, names[0], dtype)
        if line is None:
            return cls(names[0], 1 - _MOST, _MOST - 1)
        slope, origin = line
        low, high = -((origin - YEAR_1 + _DAY_US) // slope), (YEAR_10000 + _DAY_US - origin) // slope
        return cls(names[0], max(low, 1 - _MOST), min(high, _MOST - 1))

    def times(self, time: pl.Expr, frame: pl.DataFrame, given: Callable[[pl.Series], pl.Series]) -> pl.Series:
        """The times of a frame's rows; `given` converts the expression's result.

        Numbers out of range become `BEFORE_ALL` or `AFTER_ALL`; the expression never sees them.
        """
        numbers = frame[self.column]
        if numbers.len() == numbers.null_count() or self.low <= numbers.min() <= numbers.max() <= self.high:  # type: ignore[operator]
            return given(frame.select(time).to_series())
        wide = numbers.cast(pl.Int128)  # the limits may not fit the numbers' own type
        before, after = wide < self.low, wide > self.high
        inside = frame.with_columns(
            pl.when(before | after).then(None).otherwise(self.column).alias(self.column)
        )
        return _replaced(given(inside.select(time).to_series()), before, after)


def _line(time: pl.Expr, column: str, dtype: pl.DataType) -> tuple[Fraction, int] | None:
    """The microseconds that a time grows per unit of its column, and its start; None if it isn't linear.

    Daylight saving changes don't matter.
    """
    probes = [probe for probe in _PROBES if probe <= np.iinfo(str(dtype).lower()).max]
    try:
        rows = pl.DataFrame({column: pl.Series(probes, dtype=dtype)})
        times = saturated(rows.select(time).to_series()).to_physical().to_list()
    except (Exception, pl.exceptions.PanicException):
        # An expression may refuse numbers that no row has, and a user's function may raise anything.
        return None
    if None in times:
        return None
    slope = Fraction(times[-1] - times[0], probes[-1] - probes[0])
    fits = all(abs(times[0] + slope * probe - time) < _DAY_US for probe, time in zip(probes, times))
    return (slope, times[0]) if slope > 0 and fits else None


def _replaced(times: pl.Series, before: pl.Series, after: pl.Series) -> pl.Series:
    points = pl.select(
        pl.when(before).then(BEFORE_ALL).when(after).then(AFTER_ALL).otherwise(times.to_physical())
    ).to_series()
    return points.cast(pl.Datetime("us", "UTC"))
