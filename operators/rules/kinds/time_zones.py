"""Local time of day: time zones by name, and their offsets from UTC."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

_QUARTER_US = 900_000_000


@lru_cache(maxsize=16)
def zone_of(name: str) -> ZoneInfo:
    """A time zone by its name. Raises `ValueError`."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(f"zone must be a time zone such as America/New_York or UTC, got {name!r}") from None


def local_us(at_us: int, zone: str) -> int:
    """The local time in a zone, as microseconds since 1970 there.

    >>> (local_us(1_577_975_400_000_000, "America/New_York") // 1_000_000 % 86_400) / 3600
    9.5
    """
    return at_us + _offset_us(at_us // _QUARTER_US, zone)


@lru_cache(maxsize=4096)
def _offset_us(quarter: int, zone: str) -> int:
    # Offsets change on quarters of an hour.
    at = datetime.fromtimestamp(quarter * 900, UTC).astimezone(zone_of(zone))
    offset = at.utcoffset()
    assert offset is not None
    return int(offset.total_seconds()) * 1_000_000
