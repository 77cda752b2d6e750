"""HAProxy's logs: HTTP, TCP, and failed connections, plain or after a syslog header."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import polars as pl

from ...operators.definition.stream import Stream
from ..app import AppFormat, Feed, Message, Settings
from .columns import failed_status, in_columns
from .lines import NOWHERE, first_lines, reads
from .members import whole
from .patterned_lines import HEAD, PatternedLines
from .web_requests import missing_paths, refused_requests
from .years import YEAR, timed_by_year

USUAL = {"zone": "UTC", **YEAR}
"""The zone of its times, which don't contain one, and the year of syslog times."""

PATTERN = (
    rf"^(?:{HEAD}haproxy(?:\[\d+\]:?| \S+ \S+ (?:-|\[.*?\])|:) )?"
    r"(?P<address>[0-9A-Fa-f.:]+):(?P<port>\d+) "
    r"\[(?P<time>\d\d/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:\d\d(?:\.\d+)?)\] "
    r"(?P<frontend>[^\s/]+)(?: (?P<backend>[^\s/]+)/(?P<server>\S+) (?P<timers>[-+\d/]+) "
    r"(?:(?P<status>-?\d+) )?\+?(?P<bytes>\d+)(?: \S+ \S+)? (?P<ended>\S{2,4}) \d[\d/+]* \d[\d/]*"
    r'(?: \{[^}]*\})*(?: "(?:(?P<method>\S+) (?P<path>[^"?\s]*)(?:\?[^"\s]*)?(?: [^"]*)?|<BADREQ>)"?)?.*'
    r"|/(?P<bind>[^\s:]+): (?P<message>.*))$"
)
"""By HAProxy's configuration manual, section 8.2, its formats of TCP, HTTP and errors."""

_TIMES = ("%d/%b/%Y:%H:%M:%S%.f",)


def _begun(feed: Feed, settings: Settings) -> Stream:
    return feed.stream(PatternedLines("HAProxy's log", PATTERN, _TIMES, settings["zone"]), time="time")


def _rows(feed: Feed, settings: Settings) -> Stream:
    status, message = pl.col("status"), pl.col("message")
    total = pl.col("timers").str.extract(r"([+-]?\d+)$").cast(pl.Float64, strict=False)
    return in_columns(
        _begun(feed, settings),
        settings,
        host=pl.coalesce("head_host", "frontend"),
        address=pl.col("address"),
        operation=pl.coalesce("path", "frontend"),
        status=pl.coalesce(status, "ended"),
        failed=failed_status(status, settings).fill_null(False) | message.is_not_null(),
        refused=refused_requests(pl.col("method"), pl.col("path"), status),
        missing=missing_paths(status),
        bytes=whole(pl.col("bytes")),
        seconds=pl.when(total >= 0).then(total / 1000),
        message=pl.coalesce("message", pl.concat_str("method", "path", ignore_nulls=True, separator=" ")),
        term=pl.concat_str(
            pl.coalesce("method", pl.when(message.is_null()).then(pl.lit("TCP"))),
            status,
            message.str.replace(r" \(.*", ""),
            ignore_nulls=True,
            separator=" ",
        ),
    )


def _messages(path: Path, settings: Settings) -> Iterator[Message]:
    return timed_by_year(_begun(NOWHERE, settings), path, settings)


HAPROXY = AppFormat(
    "haproxy",
    "HAProxy's logs of HTTP, TCP and failed connections, a line a message",
    _rows,
    lambda path, head: reads(_begun(NOWHERE, USUAL), first_lines(head)),
    _messages,
    USUAL,
)
