"""When a reading was taken, from what devices write: ISO 8601, or a number since 1970 in one of four units.

Which unit a number is in, its size says: for all times from 1973 to 5138 seconds have less than twelve
digits, milliseconds twelve to fourteen, microseconds up to seventeen, and nanoseconds more.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any

import polars as pl

from ...operators.formats.text.iso_times import read_microseconds
from ..app import Settings

UNITS = {"s": 1_000_000.0, "ms": 1_000.0, "us": 1.0, "ns": 0.001}
"""How many microseconds each unit has."""
_NAMES = {"s": "seconds", "ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}

_LEAST = 1e8
_BELOW = {"s": 1e11, "ms": 1e14, "us": 1e17, "ns": 1e20}
_TIME = pl.Datetime("us", "UTC")
_ZONE = r"\s*(?<zone>[Zz]|[+-]\d{2}(?::?\d{2})?)?"
_ANY_FORM = (
    r"^\s*(?<y>\d{4})-?(?<mo>\d{2})-?(?<d>\d{2})"
    r"(?:[Tt ](?<h>\d{2}):?(?<m>\d{2})?:?(?<s>\d{2})?(?:[.,](?<f>\d{1,9})\d*)?" + _ZONE + r")?\s*$"
)


def check_unit(settings: Settings) -> None:
    """Raise `ValueError` for a unit of times that there isn't."""
    if (unit := settings["unit"]) and unit not in UNITS:
        raise ValueError(
            f"--set unit={unit}: a time is in {', '.join(UNITS)} since 1970; without it, ISO 8601 text, or "
            "a number whose size says its unit"
        )


def time_type(settings: Settings) -> pl.DataType:
    """The type as which a message's time is decoded; numbers that stand there are texts of them."""
    # A double is exact to a quarter of a microsecond for centuries to come.
    return pl.Float64() if settings["unit"] and not settings["pattern"] else pl.String()


def time_in(column: str, settings: Settings) -> pl.Expr:
    """The time in a column of that type; null where there is none, which makes the reading a dead letter."""
    text, unit = pl.col(column), settings["unit"]
    if settings["pattern"]:
        return text.str.to_datetime(settings["pattern"], time_unit="us", time_zone="UTC", strict=False)
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
        naive.dt.replace_time_zone("UTC"),
        _of_any_form(text),
    )


def _of_number(microseconds: Any) -> pl.Expr:
    expression: pl.Expr = microseconds.round().cast(pl.Int64, strict=False).cast(_TIME)
    return expression


def _of_any_form(text: pl.Expr) -> pl.Expr:
    """ISO 8601 in its rarer forms, rewritten into one."""
    part = text.str.extract_groups(_ANY_FORM).struct
    zone = part.field("zone").fill_null("Z").str.replace(r"^([+-]\d{2}):?(\d{2})$", "$1:$2")
    zone = zone.str.replace(r"^([+-]\d{2})$", "$1:00")
    date = pl.concat_str(*(part.field(name) for name in ("y", "mo", "d")), separator="-")
    clock = pl.concat_str(*(part.field(name).fill_null("00") for name in ("h", "m", "s")), separator=":")
    whole = pl.concat_str(date, pl.lit("T"), clock, pl.lit("."), part.field("f").fill_null("0"), zone)
    return whole.str.to_datetime("%+", time_unit="us", time_zone="UTC", strict=False)


def unit_of(number: float) -> str:
    """The unit that a number since 1970 is in by its size; none of one that is no time since 1973.

    >>> [unit_of(number) for number in (1.7e9, 1.7e12, 1.7e15, 1.7e18, 12)]
    ['s', 'ms', 'us', 'ns', '']
    """
    return next((name for name, below in _BELOW.items() if _LEAST <= number < below), "")


def microseconds_of(stamp: Any, settings: Settings) -> float | None:
    """The time of one message, in microseconds since 1970, as `time_in` has it; None where there is none."""
    try:
        if settings["pattern"]:
            at = datetime.strptime(str(stamp), settings["pattern"])
            return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * 1e6
        unit = settings["unit"] or unit_of(float(stamp))
        value = float(stamp) * UNITS[unit]
        return value if math.isfinite(value) else None
    except (ValueError, TypeError, OverflowError, KeyError):
        pass
    if settings["unit"] or settings["pattern"] or not isinstance(stamp, str):
        return None
    microseconds = read_microseconds(stamp)
    return None if microseconds is None else float(microseconds)


def conclusion(stamp: Any, settings: Settings) -> str:
    """What was concluded of times from the first of them, for people; nothing if there was nothing to."""
    if settings["unit"] or settings["pattern"]:
        return ""
    try:
        unit = unit_of(float(stamp))
    except (ValueError, TypeError):
        return ""
    if not unit:
        return (
            f"times are numbers too small for any since 1973: the first is {stamp}; --set unit=s (or "
            f"{', '.join(list(UNITS)[1:])}) reads them"
        )
    at = datetime.fromtimestamp(float(stamp) * UNITS[unit] / 1e6, UTC).isoformat(timespec="milliseconds")
    return f"times are {_NAMES[unit]} since 1970, by their size: the first, {stamp}, is {at}"
