"""Access logs of web servers: Apache's common and combined format, and nginx's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import polars as pl

from ...operators.definition.stream import Stream
from ...operators.formats.text.access_log import access_log
from ..app import AppFormat, Feed, Message, Settings
from .columns import failed_status, in_columns
from .lines import NOWHERE, first_lines, lines_of, reads, timed
from .web_requests import missing_paths, refused_requests


def _begun(feed: Feed) -> Stream:
    return feed.stream(access_log(), time="time")


USUAL = {"challenges": "yes"}
"""Whether a 401 for a request without a name is forgotten once the same path is granted to a name."""


def _rows(feed: Feed, settings: Settings) -> Stream:
    if (challenges := settings["challenges"]) not in ("yes", "no"):
        raise ValueError(f"--set challenges must be yes or no, got {challenges}")
    status = pl.col("status").cast(pl.String)
    rows = in_columns(
        _begun(feed),
        settings,
        address=pl.col("address"),
        user=pl.col("user"),
        operation=pl.col("path"),
        status=status,
        failed=failed_status(status, settings),
        refused=refused_requests(pl.col("method"), pl.col("path"), status),
        missing=missing_paths(status),
        bytes=pl.col("bytes"),
        seconds=pl.col("seconds"),
        agent=pl.col("agent"),
        message=pl.concat_str("method", "path", ignore_nulls=True, separator=" "),
        term=pl.concat_str(pl.col("method").fill_null("not HTTP:"), status, separator=" "),
    )
    if challenges == "no":
        return rows
    named, status = pl.col("user").is_not_null(), pl.col("status")
    challenged = (~named & (status == "401")).fill_null(False)
    accepted = (named & ~status.is_in(["401", "403"])).fill_null(False)
    return rows.with_columns(
        challenged=challenged.cast(pl.Int64),
        accepted=accepted.cast(pl.Int64),
        connection=pl.when(challenged | accepted).then("operation"),
    )


def _messages(path: Path, settings: Settings) -> Iterator[Message]:
    yield from timed(_begun(NOWHERE), lines_of(path))


ACCESS = AppFormat(
    "access",
    "access logs of Apache and nginx, common or combined, a line a message",
    _rows,
    lambda path, head: reads(_begun(NOWHERE), first_lines(head)),
    _messages,
    USUAL,
)
