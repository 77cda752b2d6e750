"""The years of recordings whose times don't contain one."""

from __future__ import annotations

import re
from calendar import isleap
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path

from ...operators.definition.stream import Stream
from ..app import Message, Settings
from .lines import lines_of, timed

YEAR = {"year": ""}
"""The year in which a recording begins; without it, the last line is in the latest year that the file's
modification time and any 29 February allow."""

_NAMED = re.compile(rb"^(?:<\d{1,3}>)?([A-Z][a-z]{2}) +(\d{1,2}) \d{2}:")
_NUMBERED = re.compile(rb"^\[?[IWEF]?(\d\d)[-./]?(\d\d) \d\d:\d\d:\d\d")
_MONTHS = (b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec")
_HALF_A_YEAR = 183
_BACK_OVER_NEW_YEAR = 368
"""A line this many days of the year after the previous line, in January, belongs to the previous year."""
_LEAP_DAY = 31 + 29


def timed_by_year(stream: Stream, path: Path, settings: Settings) -> Iterator[Message]:
    """Yield the lines of a recording as messages; their times may lack the year, the zone or both."""
    stamps = yearly_stamps(path, settings["year"], lambda: lines_of(path))
    yield from timed(stream, lines_of(path), stamps, settings["zone"])


def yearly_stamps(path: Path, given: str, lines: Callable[[], Iterable[bytes]]) -> Iterator[int]:
    """Yield stamps (ms) of a file's lines as if each was sent at the end of its year.

    Raises `ValueError` for a given year that isn't one.
    """
    first = _first_year(path, given, lines())
    for new_years, _ in _new_years(lines()):
        yield _end_of(first + new_years)


def _new_years(lines: Iterable[bytes]) -> Iterator[tuple[int, int | None]]:
    """Yield the number of New Years between a file's first line and each line, and the line's day of the
    year.

    On New Year's night, the lines of hosts in several zones alternate between two years.
    """
    new_years = last = 0
    for line in lines:
        day = _day_of_year(line)
        if day is not None:
            new_years += last - day > _HALF_A_YEAR
            new_years -= 0 < last < day - _BACK_OVER_NEW_YEAR
            last = day
        yield new_years, day


def _first_year(path: Path, given: str, lines: Iterable[bytes]) -> int:
    """Return the year of a file's first line."""
    if given:
        if not re.fullmatch(r"\d{4}", given):
            raise ValueError(f"--set year must be a year, such as 2024, got {given}")
        return int(given)
    last, turns, leap_days = 0, 0, set[int]()
    for turns, day in _new_years(lines):
        last = last if day is None else day
        if day == _LEAP_DAY:
            leap_days.add(turns)
    # In the farthest zone, it is up to a day later than in UTC.
    latest = datetime.fromtimestamp(path.stat().st_mtime, UTC) + timedelta(days=1)
    year = latest.year - (last > 31 * (latest.month - 1) + latest.day) - turns
    years = range(year, year - 8, -1)
    return next((begun for begun in years if all(isleap(begun + later) for later in leap_days)), year)


def _day_of_year(line: bytes) -> int | None:
    """Return the approximate day of the year of a line, as if all months had 31 days."""
    match = _NAMED.match(line)
    if match is not None and match[1] in _MONTHS:
        return 31 * _MONTHS.index(match[1]) + int(match[2])
    match = _NUMBERED.match(line)
    return None if match is None else 31 * (int(match[1]) - 1) + int(match[2])


@cache
def _end_of(year: int) -> int:
    """Return a time in milliseconds: all days of the year, and none of the next, are less than a day after
    it."""
    return int(datetime(year, 12, 31, tzinfo=UTC).timestamp() * 1000) - 1
