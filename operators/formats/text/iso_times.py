"""Parsing ISO 8601 text into timestamps."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

from ....sketches.core.lazy import pl

_ZONE = r"\s*(?<zone>[Zz]|[+-]\d{2}(?::?\d{2})?)?"
_EXTENDED = (
    r"^\s*(?<date>\d{4}-\d{2}-\d{2})"
    r"(?:[Tt ](?<h>\d{2})(?::(?<m>\d{2})(?::(?<s>\d{2})(?:[.,](?<f>\d{1,9})\d*)?)?)?" + _ZONE + r")?\s*$"
)
_BASIC = (
    r"^\s*(?<y>\d{4})(?<mo>\d{2})(?<d>\d{2})"
    r"(?:[Tt ](?<h>\d{2})(?:(?<m>\d{2})(?:(?<s>\d{2})(?:[.,](?<f>\d{1,9})\d*)?)?)?" + _ZONE + r")?\s*$"
)

_EPOCH, _MICROSECOND = datetime(1970, 1, 1, tzinfo=UTC), timedelta(microseconds=1)
_USUAL = re.compile(r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}:\d{2}(?:\.\d{1,9})?(?:Z|[+-]\d{2}:[0-5]\d)?", re.ASCII)
"""The forms of nearly all texts, which Python's own parser reads as the same instants."""


def read_times(text: pl.Series, unit: Any = "us") -> pl.Series:
    """Read strings as Datetime(`unit`, "UTC"); null where a string isn't a time.

    Date and time of day as in ISO 8601, extended or basic form: ``2013-07-04T21:31:07.5+02:00``,
    ``20130704T213107Z``, with a space for the ``T``, without seconds or minutes, the date alone (its
    midnight), a comma before the fraction, offsets as ``+02``, ``+0200`` or ``+02:00``. Without an offset a
    time is in UTC. Digits beyond the unit are cut off.

    >>> read_times(pl.Series(["2013-07-04 21:31", "20130704T233107,25+0200", "4 July"])).to_list()[:2]
    [datetime.datetime(2013, 7, 4, 21, 31, ...), datetime.datetime(2013, 7, 4, 21, 31, 7, 250000, ...)]
    """
    # From the form that is parsed fastest to the one that needs a pattern; each tries what is left.
    times = text.str.to_datetime("%+", time_unit=unit, time_zone="UTC", strict=False)
    for read in (_naive, _any_form):
        if times.null_count() == text.null_count():
            return times
        missing = times.is_null() & text.is_not_null()
        later = pl.Series(times.name, [None] * len(times), times.dtype)
        later = later.scatter(missing.arg_true(), read(text.filter(missing), unit))
        times = times.zip_with(~missing, later)
    return times


def read_microseconds(text: str) -> int | None:
    """Read one string as `read_times` does, as microseconds since 1970: for messages that come one by one.

    >>> read_microseconds("2013-07-04 21:31:07")
    1372973467000000
    """
    if _USUAL.fullmatch(text):
        try:
            at = datetime.fromisoformat(text)
            return ((at if at.tzinfo else at.replace(tzinfo=UTC)) - _EPOCH) // _MICROSECOND
        except ValueError:
            pass  # for example a leap second, which Python doesn't support
    result: int | None = read_times(pl.Series([text])).dt.epoch("us").item()
    return result


def _naive(text: pl.Series, unit: Any) -> pl.Series:
    """Extended forms with seconds and no offset."""
    whole = text.str.replace(" ", "T", literal=True)
    return whole.str.to_datetime("%FT%T%.f", time_unit=unit, strict=False).dt.replace_time_zone("UTC")


def _any_form(text: pl.Series, unit: Any) -> pl.Series:
    """Any form, rewritten into the one that is parsed fastest."""
    extended, basic = text.str.extract_groups(_EXTENDED).struct, text.str.extract_groups(_BASIC).struct

    def part(name: str, default: str) -> pl.Expr:
        return pl.coalesce(pl.lit(extended.field(name)), pl.lit(basic.field(name)), pl.lit(default))

    date = pl.coalesce(
        pl.lit(extended.field("date")),
        pl.concat_str(*(pl.lit(basic.field(name)) for name in ("y", "mo", "d")), separator="-"),
    )
    zone = part("zone", "Z").str.replace(r"^([+-]\d{2}):?(\d{2})$", "$1:$2")
    zone = zone.str.replace(r"^([+-]\d{2})$", "$1:00")
    clock = pl.concat_str(part("h", "00"), part("m", "00"), part("s", "00"), separator=":")
    whole = pl.concat_str(date, pl.lit("T"), clock, pl.lit("."), part("f", "0"), zone)
    times = whole.str.to_datetime("%+", time_unit=unit, time_zone="UTC", strict=False)
    return pl.select(times.alias(text.name)).to_series()
