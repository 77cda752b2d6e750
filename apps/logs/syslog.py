"""Syslog: RFC 5424, RFC 3164, and the lines of files such as /var/log/auth.log."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import polars as pl

from ...operators.definition.stream import Stream
from ...operators.formats.syslog import syslog
from ..app import AppFormat, Feed, Message, Settings
from .columns import failed_level, failed_text, in_columns, login_columns, template
from .lines import NOWHERE, first_lines, lines_of, reads, timed
from .logins import WithLogins

USUAL = {"zone": "UTC", "year": ""}
"""The zone of times that name none, and the year in which a recording begins; without it, its last line is of
the latest year that the file's own time allows."""

_SEVERITIES = ("emerg", "alert", "crit", "err", "warning", "notice", "info", "debug")
_DAY = re.compile(rb"^(?:<\d{1,3}>)?([A-Z][a-z]{2}) +(\d{1,2}) \d{2}:")
_MONTHS = (b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec")
_HALF_A_YEAR = 183


def _begun(feed: Feed, settings: Settings) -> Stream:
    return Stream.from_kafka(
        feed.topic,
        value=WithLogins(syslog(settings["zone"])),
        time="time",
        bootstrap_servers=feed.bootstrap_servers,
        config=feed.config,
    )


def _rows(feed: Feed, settings: Settings) -> Stream:
    message, level = pl.col("message"), pl.col("severity").cast(pl.String)
    return in_columns(
        _begun(feed, settings),
        settings,
        host=pl.col("host"),
        **login_columns(message),
        operation=pl.col("program"),
        status=level.replace({str(number): name for number, name in enumerate(_SEVERITIES)}),
        # Lines of files have no severity.
        failed=pl.coalesce(failed_level(level), failed_text(message)),
        message=message,
        term=pl.concat_str(pl.col("program"), template(message), ignore_nulls=True, separator=": "),
    )


def _messages(path: Path, settings: Settings) -> Iterator[Message]:
    """Lines whose times lack the year are stamped as if they were sent at the end of theirs."""
    year = _first_year(path, settings)
    stamp, last = _end_of(year), 0

    def stamps() -> Iterator[int]:
        nonlocal stamp, year, last
        for line in lines_of(path):
            day = _day_of_year(line)
            if day is not None:
                if last - day > _HALF_A_YEAR:
                    year += 1
                    stamp = _end_of(year)
                last = day
            yield stamp

    yield from timed(_begun(NOWHERE, settings), lines_of(path), stamps())


def _first_year(path: Path, settings: Settings) -> int:
    """The year of a file's first line."""
    if settings["year"]:
        if not re.fullmatch(r"\d{4}", settings["year"]):
            raise ValueError(f"--set year must be a year, such as 2024, got {settings['year']}")
        return int(settings["year"])
    last = turns = 0
    for line in lines_of(path):
        if (day := _day_of_year(line)) is not None:
            turns += last - day > _HALF_A_YEAR
            last = day
    written = datetime.fromtimestamp(path.stat().st_mtime, UTC)
    ahead = last > 31 * (written.month - 1) + written.day + 1
    return written.year - ahead - turns


def _day_of_year(line: bytes) -> int | None:
    """About the day of the year on which a line was written, as if months had 31 days."""
    match = _DAY.match(line)
    if match is None or match[1] not in _MONTHS:
        return None
    return 31 * _MONTHS.index(match[1]) + int(match[2])


def _end_of(year: int) -> int:
    """In milliseconds: every day of the year, and none of the next, is less than a day past it."""
    return int(datetime(year, 12, 31, tzinfo=UTC).timestamp() * 1000) - 1


SYSLOG = AppFormat(
    "syslog",
    "syslog by RFC 5424 or 3164, or lines of log files, a line a message",
    _rows,
    lambda path, head: reads(_begun(NOWHERE, USUAL), first_lines(head)),
    _messages,
    USUAL,
)
