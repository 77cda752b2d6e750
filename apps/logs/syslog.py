"""Syslog: RFC 5424, RFC 3164, and the lines of files such as /var/log/auth.log."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import polars as pl

from ...operators.definition.stream import Stream
from ...operators.formats.text.syslog import syslog
from ..app import AppFormat, Feed, Message, Settings
from .columns import failed_level, failed_text, in_columns, login_columns, template
from .layouts import LAYOUTS, UNSURE
from .lines import NOWHERE, first_lines, reads
from .logins import WithLogins
from .years import YEAR, timed_by_year

USUAL = {"zone": "UTC", **YEAR}
"""The zone of times without one, and the year in which a recording begins."""

_SEVERITIES = ("emerg", "alert", "crit", "err", "warning", "notice", "info", "debug")


def _begun(feed: Feed, settings: Settings) -> Stream:
    return feed.stream(WithLogins(syslog(settings["zone"])), time="time")


def _rows(feed: Feed, settings: Settings) -> Stream:
    message, level = pl.col("message"), pl.col("severity").cast(pl.String)
    return in_columns(
        _begun(feed, settings),
        settings,
        host=pl.col("host"),
        **login_columns(message),
        operation=pl.col("program"),
        status=level.replace({str(number): name for number, name in enumerate(_SEVERITIES)}),
        # Lines in files have no severity.
        failed=pl.coalesce(failed_level(level), failed_text(message)),
        message=message,
        term=pl.concat_str(pl.col("program"), template(message), ignore_nulls=True, separator=": "),
    )


def _messages(path: Path, settings: Settings) -> Iterator[Message]:
    """Yield lines; those whose times lack the year are stamped as if sent at the end of their year."""
    return timed_by_year(_begun(NOWHERE, settings), path, settings)


def _recognises(lines: list[bytes]) -> bool:
    """Whether most lines are syslog, and not a layout whose level would be mistaken for a host."""
    if not reads(_begun(NOWHERE, USUAL), lines):
        return False
    sure = tuple(layout for layout in LAYOUTS if layout not in UNSURE)
    texts = pl.Series([line.decode(errors="replace") for line in lines], dtype=pl.String)
    others = pl.select(
        pl.any_horizontal(pl.lit(texts).str.contains(one.expression) for one in sure)
    ).to_series()
    return 2 * int(others.sum()) <= len(lines)


SYSLOG = AppFormat(
    "syslog",
    "syslog by RFC 5424 or 3164, or lines of log files, a line a message",
    _rows,
    lambda path, head: _recognises(first_lines(head)),
    _messages,
    USUAL,
)
