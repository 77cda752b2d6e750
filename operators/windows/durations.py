"""Durations as people write them, in whole microseconds."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta

_UNITS = {
    "us": 1,
    "ms": 1_000,
    "s": 1_000_000,
    "m": 60_000_000,
    "h": 3_600_000_000,
    "d": 86_400_000_000,
    "w": 604_800_000_000,
}
_PART = re.compile(r"(\d+)(us|ms|s|m|h|d|w)")

Duration = str | timedelta


def microseconds(duration: Duration) -> int:
    """A duration, such as ``"10s"``, ``"1m30s"``, ``"250ms"`` or a `timedelta`, in microseconds.

    Units: us, ms, s, m (minutes), h, d (24 h), w. Raises `ValueError` for anything else and for less than 0.

    >>> microseconds("1m30s")
    90000000
    """
    if isinstance(duration, timedelta):
        whole = duration // timedelta(microseconds=1)
        if whole < 0:
            raise ValueError(f"a duration can't be negative: {duration}")
        return whole
    text = duration.strip().replace(" ", "") if isinstance(duration, str) else ""
    parts = _PART.findall(text)
    if not parts or "".join(n + unit for n, unit in parts) != text:
        raise ValueError(f'{duration!r} is not a duration; write one like "10s", "1m30s" or "250ms"')
    return sum(int(n) * _UNITS[unit] for n, unit in parts)


def duration_text(length_us: int) -> str:
    """Microseconds in the largest units that express them exactly.

    >>> duration_text(90_000_000), duration_text(0)
    ('1m30s', '0s')
    """
    text = ""
    for unit in reversed(_UNITS):
        count, length_us = divmod(length_us, _UNITS[unit])
        text += f"{count}{unit}" if count else ""
    return text or "0s"


_MONTHS = {"y": 12, "q": 3, "mo": 1}
_CALENDAR_PART = re.compile(r"(\d+)(mo|q|y)")
_MONTH_US = 2_629_746_000_000
"""The mean length of a month: 400 years have 146,097 days."""


@dataclass(frozen=True, slots=True)
class CalendarLength:
    """Calendar months and microseconds; a window's length has only one of them.

    >>> [CalendarLength(months).text for months in (6, 3, 12)], CalendarLength(0, 86_400_000_000).text
    (['6mo', '1q', '1y'], '1d')
    """

    months: int = 0
    us: int = 0

    @property
    def mean_us(self) -> int:
        """The mean length; exact without months."""
        return self.months * _MONTH_US + self.us

    @property
    def text(self) -> str:
        """The length as people write it."""
        months = self.months
        unit = "y" if months % 12 == 0 else "q" if months == 3 else "mo"
        text = f"{months // _MONTHS[unit]}{unit}" if months else ""
        if self.us < 0:
            return f"{text}-{duration_text(-self.us)}"
        return text + (duration_text(self.us) if self.us or not text else "")


def calendar_length(duration: Duration) -> CalendarLength:
    """A duration, or months of the calendar, such as ``"1mo"``, ``"1q"`` or ``"1y"``; both as in ``"1mo4d"``.

    Raises `ValueError` for anything else and for less than 0.

    >>> calendar_length("1y"), calendar_length("1d")
    (CalendarLength(months=12, us=0), CalendarLength(months=0, us=86400000000))
    """
    if not isinstance(duration, str):
        return CalendarLength(0, microseconds(duration))
    text = duration.strip().replace(" ", "")
    parts = _CALENDAR_PART.match(text) and _CALENDAR_PART.findall(text)
    rest = _CALENDAR_PART.sub("", text)
    if not parts or (rest and not text.endswith(rest)):
        return CalendarLength(0, microseconds(duration))
    return CalendarLength(sum(int(n) * _MONTHS[unit] for n, unit in parts), microseconds(rest) if rest else 0)


def signed_length(duration: Duration) -> CalendarLength:
    """Like `calendar_length`, with a minus before parts to subtract, or a negative `timedelta`.

    >>> signed_length("-1h"), signed_length("1mo-1h")
    (CalendarLength(months=0, us=-3600000000), CalendarLength(months=1, us=-3600000000))
    """
    if isinstance(duration, timedelta):
        return CalendarLength(0, duration // timedelta(microseconds=1))
    if not isinstance(duration, str):
        return calendar_length(duration)
    first, *others = duration.strip().split("-")
    added = calendar_length(first) if first or not others else CalendarLength()
    removed = [calendar_length(other) for other in others]
    months, length_us = sum(one.months for one in removed), sum(one.us for one in removed)
    return CalendarLength(added.months - months, added.us - length_us)
