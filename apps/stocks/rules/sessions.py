"""Trading days: the day that a moment belongs to, and the previous day's close."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import NamedTuple

from ....operators.rules.kinds.time_zones import local_us

_SECOND, _HOUR, _DAY = 1_000_000, 3_600, 86_400
AUCTION_SECONDS = 60
"""The closing auction prints after the bell: its trades still belong to the session."""


class Hours(NamedTuple):
    """The hours in which the market is open, in seconds of the day; all day if it never closes."""

    opens: int = 0
    closes: int = _DAY

    @classmethod
    def of(cls, text: str) -> Hours:
        """From text such as ``09:30-16:00``; empty text is all day. Raises `ValueError`.

        >>> Hours.of("09:30-16:00")
        Hours(opens=34200, closes=57600)
        """
        if not text:
            return cls()
        try:
            opens, closes = (datetime.strptime(part.strip(), "%H:%M") for part in text.split("-"))
        except ValueError:
            raise ValueError(
                f"hours must be such as 09:30-16:00, or empty for the whole day, got {text!r}"
            ) from None
        hours = cls(*(at.hour * _HOUR + at.minute * 60 for at in (opens, closes)))
        if hours.opens >= hours.closes:
            raise ValueError(f"hours must begin before they end, got {text!r}")
        return hours

    @property
    def all_day(self) -> bool:
        """Whether the market never closes."""
        return self == Hours()


class Moment(NamedTuple):
    """A day, counted from 1970 in the market's zone, and a second of it."""

    day: int
    second: float

    @property
    def date(self) -> str:
        """The day in ISO 8601."""
        return datetime.fromtimestamp(self.day * _DAY, UTC).date().isoformat()


def local(at_us: int, zone: str) -> Moment:
    """The day and time of day in the market's zone.

    >>> local(1_577_975_400_000_000, "America/New_York")
    Moment(day=18263, second=34200.0)
    """
    shifted = local_us(at_us, zone)
    return Moment(shifted // (_DAY * _SECOND), shifted % (_DAY * _SECOND) / _SECOND)


def day_of(at_us: int) -> Moment:
    """A whole day, named by its date at midnight UTC."""
    return Moment(at_us // (_DAY * _SECOND), 0.0)
