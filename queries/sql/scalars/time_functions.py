"""Functions of times, which are in UTC, based on Polars', with patterns of Java's DateTimeFormatter."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from zoneinfo import ZoneInfo

import polars as pl

from .function import TEXT, TIMES, WHOLE, Function, constant_text, constant_whole
from .scalars import TIME, Scalar, Scalars

_DAY_US = 86_400_000_000


def timestamp_of_text(make: Scalars, one: Scalar) -> Scalar:
    """ISO 8601, with an offset or without, as a TIMESTAMP in UTC; null if a text isn't one.

    A space may replace the T.
    """
    plain = make.call(make.call(one, "str.replace", "T", " ", literal=True), "str.strip_suffix", "Z")
    formats = ("%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%d %H:%M", "%Y-%m-%d")
    whole = [
        make.call(plain, "str.strptime", TIME, formats[0], strict=False),
        make.call(plain, "str.strptime", TIME, formats[1], strict=False),
        make.cast(make.call(plain, "str.strptime", pl.Date(), formats[2], strict=False), TIME),
        *(_with_offset(make, plain, pattern) for pattern in ("%Y-%m-%d %H:%M:%S%.f%#z", "%Y-%m-%d %H:%M%#z")),
    ]
    return make.function("coalesce", whole)


def _with_offset(make: Scalars, one: Scalar, pattern: str) -> Scalar:
    zoned = make.call(one, "str.strptime", pl.Datetime("us", "UTC"), pattern, strict=False)
    return make.call(zoned, "dt.replace_time_zone", None)


_LETTERS = {
    "yyyy": "%Y",
    "yy": "%y",
    "MMMM": "%B",
    "MMM": "%b",
    "MM": "%m",
    "dd": "%d",
    "DDD": "%j",
    "HH": "%H",
    "hh": "%I",
    "mm": "%M",
    "ss": "%S",
    "SSS": "%3f",
    "SSSSSS": "%6f",
    "a": "%p",
    "EEEE": "%A",
    "EEE": "%a",
}


def java_format(pattern: str) -> str:
    """Convert Java's DateTimeFormatter pattern to strptime's. Raises `ValueError` for unsupported letters.

    >>> java_format("yyyy-MM-dd'T'HH:mm:ss.SSS")
    '%Y-%m-%dT%H:%M:%S%.3f'
    """
    result, at = "", 0
    while at < len(pattern):
        sign = pattern[at]
        if sign == "'":
            close = pattern.find("'", at + 1)
            if close < 0:
                raise ValueError(f"the quote in the pattern {pattern!r} is not closed")
            result, at = result + pattern[at + 1 : close].replace("%", "%%"), close + 1
            continue
        if not sign.isalpha():
            result, at = result + ("%%" if sign == "%" else sign), at + 1
            continue
        end = at
        while end < len(pattern) and pattern[end] == sign:
            end += 1
        if pattern[at:end] not in _LETTERS:
            raise ValueError(
                f"{pattern[at:end]!r} in a time's pattern is not supported; there are {', '.join(_LETTERS)}"
            )
        result, at = result + _LETTERS[pattern[at:end]], end
    # Chrono's fractions include the dot.
    return result.replace(".%3f", "%.3f").replace(".%6f", "%.6f")


def _zone(one: Scalar) -> str:
    """The name of a time zone. Raises `ValueError` for one that doesn't exist."""
    name = constant_text(one, "the time zone")
    try:
        ZoneInfo(name)
    except (KeyError, OSError, ValueError):
        raise ValueError(f"{name!r} must be a time zone, such as 'Europe/Helsinki' or 'UTC'") from None
    return name


def in_zone(make: Scalars, one: Scalar, zone: Scalar) -> Scalar:
    """The local time in a zone at a time in UTC."""
    utc = make.call(make.cast(one, TIME), "dt.replace_time_zone", "UTC")
    local = make.call(utc, "dt.convert_time_zone", _zone(zone))
    return make.call(local, "dt.replace_time_zone", None)


def _of_zone(make: Scalars, one: Scalar, zone: Scalar) -> Scalar:
    """The time in UTC at a local time in a zone.

    As in Java, a time that occurs twice when summer time ends is the first of both, and a time that is
    skipped when it begins is read with the offset of the day before, so it lies as long after the change as
    it says.
    """
    name, local = _zone(zone), make.cast(one, TIME)

    def instant(of: Scalar) -> Scalar:
        zoned = make.call(of, "dt.replace_time_zone", name, ambiguous="earliest", non_existent="null")
        return make.call(make.call(zoned, "dt.convert_time_zone", "UTC"), "dt.replace_time_zone", None)

    before = make.call(instant(make.call(local, "dt.offset_by", "-24h")), "dt.offset_by", "24h")
    return make.function("coalesce", [instant(local), before])


def _converted(make: Scalars, one: Scalar, old: Scalar, new: Scalar) -> Scalar:
    return in_zone(make, _of_zone(make, one, old), new)


def _as_time(make: Scalars, one: Scalar) -> Scalar:
    """A TIMESTAMP; a number is in milliseconds since 1970."""
    return _from_unix(make, one) if one.kind == "whole" else make.cast(one, TIME)


def _from_unix(make: Scalars, one: Scalar) -> Scalar:
    return make.cast(make.cast(make.cast(one, pl.Int64()), pl.Datetime("ms")), TIME)


def _from_epoch(make: Scalars, one: Scalar, precision: Scalar | None = None) -> Scalar:
    """Flink's TO_TIMESTAMP_LTZ: seconds with the precision 0, milliseconds with 3."""
    digits = 3 if precision is None else constant_whole(precision, "the precision of TO_TIMESTAMP_LTZ")
    if digits not in (0, 3):
        raise ValueError(f"the precision of TO_TIMESTAMP_LTZ must be 0 or 3, got {digits}")
    return _from_unix(make, one if digits else make.arithmetic(one, "*", make.literal(1000)))


def _to_unix(make: Scalars, one: Scalar) -> Scalar:
    return make.call(make.cast(one, TIME), "dt.timestamp", "ms")


def _parsed(make: Scalars, one: Scalar, pattern: Scalar, to: pl.Datetime | pl.Date) -> Scalar:
    text = constant_text(pattern, "the pattern")
    chrono = java_format(text)
    if ("%H" in chrono or "%I" in chrono) and "%M" not in chrono:
        # Polars can't parse an hour without its minute.
        one, chrono = make.function("concat_str", [one, make.literal(" 00")]), f"{chrono} %M"
    # A pattern that can't read back what it writes would return only nulls.
    known = pl.Series([datetime(2026, 10, 25)])
    try:
        read = known.dt.strftime(chrono).str.strptime(to, chrono, strict=False)
    except pl.exceptions.PolarsError:
        read = None
    if read is None or read.cast(pl.Date)[0] != known.cast(pl.Date)[0]:
        raise ValueError(f"the pattern {text!r} must have a year, a month and a day")
    return make.call(one, "str.strptime", to, chrono, strict=False)


def _parse_time(make: Scalars, one: Scalar, pattern: Scalar, zone: Scalar | None = None) -> Scalar:
    parsed = _parsed(make, one, pattern, TIME)
    return parsed if zone is None else _of_zone(make, parsed, zone)


def _to_timestamp(make: Scalars, one: Scalar, pattern: Scalar | None = None) -> Scalar:
    return timestamp_of_text(make, one) if pattern is None else _parse_time(make, one, pattern)


def _parse_millis(make: Scalars, one: Scalar, pattern: Scalar, zone: Scalar | None = None) -> Scalar:
    return _to_unix(make, _parse_time(make, one, pattern, zone))


def _parse_date(make: Scalars, one: Scalar, pattern: Scalar | None = None) -> Scalar:
    return _parsed(make, one, make.literal("yyyy-MM-dd") if pattern is None else pattern, pl.Date())


def _format_time(make: Scalars, one: Scalar, pattern: Scalar, zone: Scalar | None = None) -> Scalar:
    time = _as_time(make, one)
    local = time if zone is None else in_zone(make, time, zone)
    return make.call(local, "dt.strftime", java_format(constant_text(pattern, "the pattern")))


UNITS = {
    "second": "1s",
    "minute": "1m",
    "hour": "1h",
    "day": "1d",
    "week": "1w",
    "month": "1mo",
    "quarter": "3mo",
    "year": "1y",
}


def _unit(one: Scalar, name: str) -> str:
    text = constant_text(one, f"the unit of {name}").lower()
    text = text if text in UNITS else text.removesuffix("s")
    if text not in UNITS:
        raise ValueError(f"the unit of {name} must be one of {', '.join(UNITS)}, got {text!r}")
    return text


def _truncated(make: Scalars, unit: Scalar, one: Scalar) -> Scalar:
    return make.call(make.cast(one, TIME), "dt.truncate", UNITS[_unit(unit, "DATE_TRUNC")])


def _moved(name: str, sign: str) -> Callable[..., Scalar]:
    """A time, so many units later or earlier; in a shorter month the day becomes its last one."""

    def made(make: Scalars, unit: Scalar, number: Scalar, one: Scalar) -> Scalar:
        length = UNITS[_unit(unit, name)]
        every, letters = int(length.rstrip("smhdwoy")), length.lstrip("0123456789")
        times = make.arithmetic(make.literal(every if sign == "+" else -every), "*", number)
        if isinstance(number.literal, int):
            return make.call(
                one, "dt.offset_by", f"{(every if sign == '+' else -every) * number.literal}{letters}"
            )
        text = make.function("concat_str", [make.cast(times, pl.String()), make.literal(letters)])
        return make.call(one, "dt.offset_by", text)

    return made


def _between(make: Scalars, unit: Scalar, one: Scalar, other: Scalar) -> Scalar:
    """The number of whole units from one time to another."""
    name = _unit(unit, "TIMESTAMPDIFF")
    first, last = (make.cast(time, TIME) for time in (one, other))
    micros = [make.call(time, "dt.timestamp", "us") for time in (first, last)]
    if name not in ("month", "quarter", "year"):
        lengths = {"second": 1, "minute": 60, "hour": 3600, "day": 86_400, "week": 604_800}
        return make.arithmetic(
            make.arithmetic(micros[1], "-", micros[0]), "/", make.literal(lengths[name] * 1_000_000)
        )
    numbers, rests = [], []
    for time in (first, last):
        year, month = (make.cast(make.call(time, f"dt.{part}"), pl.Int64()) for part in ("year", "month"))
        numbers.append(make.arithmetic(make.arithmetic(year, "*", make.literal(12)), "+", month))
        begin = make.call(make.call(time, "dt.truncate", "1mo"), "dt.timestamp", "us")
        rests.append(make.arithmetic(make.call(time, "dt.timestamp", "us"), "-", begin))
    months = make.arithmetic(numbers[1], "-", numbers[0])
    zero, one_less, one_more = make.literal(0), make.literal(1), make.literal(-1)
    less = make.operator(make.operator(months, ">", zero), "&", make.operator(rests[1], "<", rests[0]))
    more = make.operator(make.operator(months, "<", zero), "&", make.operator(rests[1], ">", rests[0]))
    taken = make.when([(less, one_less), (more, one_more)], zero)
    whole = make.arithmetic(months, "-", make.cast(taken, pl.Int64()))
    return make.arithmetic(whole, "/", make.literal({"month": 1, "quarter": 3, "year": 12}[name]))


def _part(path: str) -> Function:
    return Function(lambda make, one: make.cast(make.call(one, path), pl.Int64()), (TIMES,))


def _day_of_week(make: Scalars, one: Scalar) -> Scalar:
    """1 is Sunday, as in Flink, Spark and MySQL."""
    day = make.cast(make.call(one, "dt.weekday"), pl.Int64())
    rest = make.arithmetic(day, "%", make.literal(7))
    return make.arithmetic(rest, "+", make.literal(1))


PARTS = ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND", "DOY", "ISODOW")
"""The parts that EXTRACT accepts; each is also a function."""
_WAYS = {"DOY": "ordinal_day", "ISODOW": "weekday"}
_MILLIS = ("whole", "time")

TIME_FUNCTIONS: dict[str, Function] = {
    **{name: _part(f"dt.{_WAYS.get(name, name.lower())}") for name in PARTS},
    "DAYOFMONTH": _part("dt.day"),
    "DAYOFYEAR": _part("dt.ordinal_day"),
    "DAYOFWEEK": Function(_day_of_week, (TIMES,)),
    "DATE_TRUNC": Function(_truncated, (TEXT, TIMES), unit=True),
    "CONVERT_TZ": Function(_converted, (TIMES, TEXT, TEXT)),
    **{
        name: Function(_moved(name, sign), (TEXT, WHOLE, TIMES), unit=True)
        for name, sign in (
            *(("TIMESTAMPADD", "+"), ("DATEADD", "+"), ("TIMESTAMPSUB", "-"), ("DATESUB", "-")),
        )
    },
    "TIMESTAMPDIFF": Function(_between, (TEXT, TIMES, TIMES), unit=True),
    "FROM_UNIXTIME": Function(_from_unix, (WHOLE,)),
    "TO_TIMESTAMP_LTZ": Function(_from_epoch, (WHOLE, WHOLE), 1),
    "UNIX_TIMESTAMP": Function(_to_unix, (TIMES,)),
    "PARSE_TIMESTAMP": Function(_parse_time, (TEXT, TEXT, TEXT), 1),
    "TO_TIMESTAMP": Function(_to_timestamp, (TEXT, TEXT), 1),
    "STRINGTOTIMESTAMP": Function(_parse_millis, (TEXT, TEXT, TEXT), 1),
    **dict.fromkeys(("PARSE_DATE", "TO_DATE"), Function(_parse_date, (TEXT, TEXT), 1)),
    **dict.fromkeys(
        ("FORMAT_TIMESTAMP", "DATE_FORMAT", "FORMAT_DATE"), Function(_format_time, (TIMES, TEXT, TEXT), 1)
    ),
    "TIMESTAMPTOSTRING": Function(_format_time, (_MILLIS, TEXT, TEXT), 1),
}
"""Functions by upper-case names."""
