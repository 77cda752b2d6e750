"""Times in all forms that are found in files of prices."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import lru_cache
from zoneinfo import ZoneInfo

PATTERNS = (
    *("%m/%d/%Y", "%m/%d/%y", "%Y/%m/%d", "%d.%m.%Y", "%d-%b-%y", "%d-%b-%Y", "%d %b %Y", "%b %d %Y"),
    *("%b %d, %Y", "%B %d, %Y", "%m-%d-%Y", "%Y.%m.%d", "%a, %d %b %Y"),
)
"""Forms of dates besides ISO 8601; a time of day may follow. 03/04/2020 is the fourth of March."""

_CLOCKS = ("", " %H:%M", " %H:%M:%S", " %H:%M:%S.%f", " %I:%M %p", " %I:%M:%S %p")
_UNITS = {9: 1_000_000, 10: 1_000_000, 12: 1_000, 13: 1_000, 15: 1, 16: 1}
_NANOSECONDS = (18, 19)
_MIDNIGHT = re.compile(r"[ T]0{1,2}:00(:00(\.0+)?)?( ?(Z|UTC|[+-]\d\d:?\d\d))?$")


def moment(text: str, pattern: str = "", zone: str = "UTC") -> tuple[int, bool] | None:
    """Parse a time to microseconds since 1970, and whether it is a day: a date, or a midnight in any zone.

    `zone` applies to times without one. None for text in an unknown form.

    >>> moment("2000-01-03"), moment("Jan 3 2000"), moment("2000-01-03 00:00:00-05:00")
    ((946857600000000, True), (946857600000000, True), (946857600000000, True))
    >>> moment("1617753600011"), moment("2020-01-02 09:30", zone="America/New_York"), moment("soon")
    ((1617753600011000, False), (1577975400000000, False), None)
    """
    text = text.strip()
    if not pattern and re.fullmatch(r"\d+(\.\d+)?", text) and not re.fullmatch(r"(19|20)\d{6}", text):
        return _number(text)
    day = _MIDNIGHT.sub("", text)
    moment_ = _read(day, pattern)
    if moment_ is None:
        return None
    if moment_.tzinfo is None:
        daily = moment_.time() == datetime.min.time()
        moment_ = moment_.replace(tzinfo=UTC if daily else _zone(zone))
    else:
        daily = False
    return int(moment_.timestamp()) * 1_000_000 + moment_.microsecond, daily


def _number(text: str) -> tuple[int, bool] | None:
    digits, _, part = text.partition(".")
    if len(digits) in _NANOSECONDS:
        return int(digits) // 1_000, False
    unit = _UNITS.get(len(digits))
    return None if unit is None else (int(digits) * unit + int(float(f"0.{part or 0}") * unit), False)


def _read(text: str, pattern: str) -> datetime | None:
    if pattern:
        return _by(text, pattern)
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return next((parsed for form in _forms(_shape(text)) if (parsed := _by(text, form))), None)


def _shape(text: str) -> str:
    return re.sub(r"[A-Za-z]+", "a", re.sub(r"\d+", "0", text))


@lru_cache(maxsize=256)
def _forms(shape: str) -> tuple[str, ...]:
    """Return the possible forms of texts with a shape."""
    example = datetime(2021, 11, 22, 13, 14, 15, 123456)
    every = [date + clock for date in PATTERNS for clock in _CLOCKS]
    return tuple(form for form in every if _shape(example.strftime(form)) == shape)


def _by(text: str, form: str) -> datetime | None:
    try:
        return datetime.strptime(text, form)
    except ValueError:
        return None


@lru_cache(maxsize=8)
def _zone(name: str) -> ZoneInfo:
    return ZoneInfo(name)
