"""The years of recordings whose times name none."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path

from ...operators.definition.stream import Stream
from ..app import Message, Settings
from .lines import lines_of, timed

YEAR = {"year": ""}
"""The year in which a recording begins; without it, its last line is of the latest year that the file's own
time allows."""

_NAMED = re.compile(rb"^(?:<\d{1,3}>)?([A-Z][a-z]{2}) +(\d{1,2}) \d{2}:")
_NUMBERED = re.compile(rb"^\[?[IWEF]?(\d\d)[-./]?(\d\d) \d\d:\d\d:\d\d")
_MONTHS = (b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec")
_HALF_A_YEAR = 183


def timed_by_year(stream: Stream, path: Path, settings: Settings) -> Iterator[Message]:
    """The messages of a recording, a line each, whose times may lack the year, the zone or both."""
    stamps = yearly_stamps(path, settings["year"], lambda: lines_of(path))
    yield from timed(stream, lines_of(path), stamps, settings["zone"])


def yearly_stamps(path: Path, given: str, lines: Callable[[], Iterable[bytes]]) -> Iterator[int]:
    """Stamps (ms) of a file's lines as if each was sent at the end of its year.

    Raises `ValueError` for a given year that isn't one.
    """
    year, last = _first_year(path, given, lines()), 0
    stamp = _end_of(year)
    for line in lines():
        day = _day_of_year(line)
        if day is not None:
            if last - day > _HALF_A_YEAR:
                year += 1
                stamp = _end_of(year)
            last = day
        yield stamp


def _first_year(path: Path, given: str, lines: Iterable[bytes]) -> int:
    """The year of a file's first line."""
    if given:
        if not re.fullmatch(r"\d{4}", given):
            raise ValueError(f"--set year must be a year, such as 2024, got {given}")
        return int(given)
    last = turns = 0
    for line in lines:
        if (day := _day_of_year(line)) is not None:
            turns += last - day > _HALF_A_YEAR
            last = day
    written = datetime.fromtimestamp(path.stat().st_mtime, UTC)
    ahead = last > 31 * (written.month - 1) + written.day + 1
    return written.year - ahead - turns


def _day_of_year(line: bytes) -> int | None:
    """About the day of the year on which a line was written, as if months had 31 days."""
    match = _NAMED.match(line)
    if match is not None and match[1] in _MONTHS:
        return 31 * _MONTHS.index(match[1]) + int(match[2])
    match = _NUMBERED.match(line)
    return None if match is None else 31 * (int(match[1]) - 1) + int(match[2])


def _end_of(year: int) -> int:
    """In milliseconds: every day of the year, and none of the next, is less than a day past it."""
    return int(datetime(year, 12, 31, tzinfo=UTC).timestamp() * 1000) - 1
