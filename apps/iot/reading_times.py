"""Parse the times of readings: ISO 8601, or a number since 1970 in one of four units.

Text without an offset is local time in `zone`.

The size of a number determines its unit: for all times from 1973 to 5138, seconds have less than twelve
digits, milliseconds twelve to fourteen, microseconds up to seventeen, and nanoseconds more.
"""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import polars as pl

from ...operators.formats.text.iso_times import read_microseconds
from ...operators.formats.text.local_times import expression_in_zone, zones_of
from ..app import Settings

UNITS = {"s": 1_000_000.0, "ms": 1_000.0, "us": 1.0, "ns": 0.001}
"""The number of microseconds in each unit."""
_NAMES = {"s": "seconds", "ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}

_LEAST = 1e8
_BELOW = {"s": 1e11, "ms": 1e14, "us": 1e17, "ns": 1e20}
_TIME = pl.Datetime("us", "UTC")
_ZONE = r"\s*(?<zone>[Zz]|[+-]\d{2}(?::?\d{2})?)?"
_ANY_FORM = (
    r"^\s*(?<y>\d{4})-?(?<mo>\d{2})-?(?<d>\d{2})"
    r"(?:[Tt ](?<h>\d{2}):?(?<m>\d{2})?:?(?<s>\d{2})?(?:[.,](?<f>\d{1,9})\d*)?" + _ZONE + r")?\s*$"
)


_OFFSET = re.compile(r"(?:[Zz]|[+-]\d{2}(?::?\d{2})?)\s*$")


def check_times(settings: Settings) -> None:
    """Raise `ValueError` for an unknown unit or time zone."""
    zones_of(settings["zone"])
    if (unit := settings["unit"]) and unit not in UNITS:
        raise ValueError(
            f"--set unit={unit}: a time is in {', '.join(UNITS)} since 1970; without it, ISO 8601 text, or "
            "a number whose size says its unit"
        )


def time_type(settings: Settings) -> pl.DataType:
    """Return the type as which a message's time is decoded; with text, numbers become their text."""
    # A double is accurate to a quarter of a microsecond for centuries to come.
    return pl.Float64() if settings["unit"] and not settings["pattern"] else pl.String()


def time_in(column: str, settings: Settings) -> pl.Expr:
    """Convert a column of that type to a time. A reading without one gets null, and becomes a dead letter.

    At the end of summer time, the column `arrived` decides which of the two hours is meant.
    """
    text, unit = pl.col(column), settings["unit"]
    if settings["pattern"]:
        pattern = settings["pattern"]
        if "%z" in pattern:
            return text.str.to_datetime(pattern, time_unit="us", time_zone="UTC", strict=False)
        return _local(text.str.to_datetime(pattern, time_unit="us", strict=False), settings)
    if unit:
        return _of_number(text * UNITS[unit])
    number = text.cast(pl.Float64, strict=False)
    microseconds: Any = pl.when(number < _LEAST).then(None)
    for name, below in _BELOW.items():
        microseconds = microseconds.when(number < below).then(number * UNITS[name])
    naive = text.str.replace(" ", "T", literal=True).str.to_datetime("%FT%T%.f", time_unit="us", strict=False)
    return pl.coalesce(
        _of_number(microseconds),
        text.str.to_datetime("%+", time_unit="us", time_zone="UTC", strict=False),
        _local(naive, settings),
        _of_any_form(text, settings),
    )


def _local(naive: pl.Expr, settings: Settings) -> pl.Expr:
    if settings["zone"] == "UTC":
        return naive.dt.replace_time_zone("UTC")
    return expression_in_zone(naive, settings["zone"], pl.col("arrived").dt.epoch("us"))


def _of_number(microseconds: Any) -> pl.Expr:
    expression: pl.Expr = microseconds.round().cast(pl.Int64, strict=False).cast(_TIME)
    return expression


def _of_any_form(text: pl.Expr, settings: Settings) -> pl.Expr:
    """Rewrite the rarer forms of ISO 8601 into one."""
    part = text.str.extract_groups(_ANY_FORM).struct
    has_zone = part.field("zone").is_not_null()
    zone = part.field("zone").fill_null("Z").str.replace(r"^([+-]\d{2}):?(\d{2})$", "$1:$2")
    zone = zone.str.replace(r"^([+-]\d{2})$", "$1:00")
    date = pl.concat_str(*(part.field(name) for name in ("y", "mo", "d")), separator="-")
    clock = pl.concat_str(*(part.field(name).fill_null("00") for name in ("h", "m", "s")), separator=":")
    whole = pl.concat_str(date, pl.lit("T"), clock, pl.lit("."), part.field("f").fill_null("0"), zone)
    at = whole.str.to_datetime("%+", time_unit="us", time_zone="UTC", strict=False)
    return pl.when(has_zone).then(at).otherwise(_local(at.dt.replace_time_zone(None), settings))


def unit_of(number: float) -> str:
    """Return the unit of a number since 1970, by its size; empty if it is not a time since 1973.

    >>> [unit_of(number) for number in (1.7e9, 1.7e12, 1.7e15, 1.7e18, 12)]
    ['s', 'ms', 'us', 'ns', '']
    """
    return next((name for name, below in _BELOW.items() if _LEAST <= number < below), "")


def both_microseconds(stamp: Any, settings: Settings) -> tuple[float, float] | None:
    """Parse one message's time, as `time_in` does; return it in microseconds since 1970, None if missing.

    A local time that occurs twice, at the end of summer time, gives both of its moments; any other gives the
    same moment twice.
    """
    try:
        if settings["pattern"]:
            at = datetime.strptime(str(stamp), settings["pattern"])
            if at.tzinfo:
                return at.timestamp() * 1e6, at.timestamp() * 1e6
            return both_local(at.replace(tzinfo=UTC).timestamp() * 1e6, settings["zone"])
        unit = settings["unit"] or unit_of(float(stamp))
        value = float(stamp) * UNITS[unit]
        return (value, value) if math.isfinite(value) else None
    except (ValueError, TypeError, OverflowError, KeyError):
        pass
    if settings["unit"] or settings["pattern"] or not isinstance(stamp, str):
        return None
    microseconds = read_microseconds(stamp)
    if microseconds is None:
        return None
    if has_offset(stamp):
        return float(microseconds), float(microseconds)
    return both_local(microseconds, settings["zone"])


def has_offset(text: str) -> bool:
    """Whether a time in ISO 8601 has an offset from UTC.

    >>> [has_offset(text) for text in ("2026-10-25T02:30", "20261025T0230+01", "2026-10-25 02:30Z")]
    [False, True, True]
    """
    return _OFFSET.search(text.strip()[10:]) is not None


def both_local(naive_us: float, zone: str) -> tuple[float, float]:
    """Return the first and the second time at which a zone's clock shows a time, given as if it were UTC.

    A clock that shows a nonexistent hour was not set forward.

    >>> from datetime import UTC, datetime
    >>> shown = (datetime(2026, 10, 25, 2, 30, tzinfo=UTC), datetime(2026, 3, 29, 2, 30, tzinfo=UTC))
    >>> for at in shown:
    ...     both = both_local(at.timestamp() * 1e6, "Europe/Berlin")
    ...     print([f"{datetime.fromtimestamp(one / 1e6, UTC):%H:%M}" for one in both])
    ['00:30', '01:30']
    ['01:30', '01:30']
    """
    if zone == "UTC":
        return naive_us, naive_us
    shown = datetime.fromtimestamp(naive_us // 1_000_000, UTC).replace(tzinfo=ZoneInfo(zone))
    first, second = (shown.replace(fold=fold).timestamp() * 1e6 for fold in (0, 1))
    rest = naive_us % 1_000_000
    return first + rest, max(first, second) + rest


def conclusion(stamp: Any, settings: Settings) -> str:
    """Describe what was concluded from the first time, for people; empty if nothing was."""
    if settings["unit"] or settings["pattern"]:
        return ""
    try:
        unit = unit_of(float(stamp))
    except (ValueError, TypeError):
        local = isinstance(stamp, str) and read_microseconds(stamp) is not None and not has_offset(stamp)
        if local and settings["zone"] == "UTC":
            return "times without a zone are read as UTC; --set zone=Europe/Rome names another"
        return ""
    if not unit:
        return (
            f"times are numbers too small for any since 1973: the first is {stamp}; --set unit=s (or "
            f"{', '.join(list(UNITS)[1:])}) reads them"
        )
    at = datetime.fromtimestamp(float(stamp) * UNITS[unit] / 1e6, UTC).isoformat(timespec="milliseconds")
    return f"times are {_NAMES[unit]} since 1970, by their size: the first, {stamp}, is {at}"
