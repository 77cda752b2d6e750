"""AWS CloudTrail: files of ``{"Records": […]}``, which are split into their events, and single events."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl

from ...operators.definition.stream import Stream
from ..app import AppFormat, Feed, Message, Settings
from .columns import in_columns
from .lines import NOWHERE, lines_of, timed
from .members import begun, first_of, member, moment

_TIME = "eventTime"
_LOGIN = "responseElements.ConsoleLogin"
_PATHS = (
    *(_TIME, "recipientAccountId", "userIdentity.accountId", "sourceIPAddress", "userIdentity.userName"),
    *("userIdentity.arn", "userIdentity.principalId", "userIdentity.invokedBy", "eventSource", "eventName"),
    *("errorCode", "errorMessage", "userAgent", "eventType", _LOGIN),
)
_USER = ("userIdentity.arn", "userIdentity.userName", "userIdentity.principalId", "userIdentity.invokedBy")


def _begun(feed: Feed) -> Stream:
    return begun(feed, _PATHS, moment(member(_TIME)))


def _rows(feed: Feed, settings: Settings) -> Stream:
    service = member("eventSource").str.strip_suffix(".amazonaws.com")
    operation = pl.concat_str(service, member("eventName"), ignore_nulls=True, separator=":")
    refused = (member("eventName") == "ConsoleLogin") & (member(_LOGIN) == "Failure")
    status = pl.coalesce(member("errorCode"), member(_LOGIN))
    return in_columns(
        _begun(feed),
        settings,
        host=first_of(("recipientAccountId", "userIdentity.accountId")),
        address=member("sourceIPAddress"),
        user=first_of(_USER),
        operation=operation,
        status=status.fill_null("Success"),
        failed=member("errorCode").is_not_null() | refused.fill_null(False),
        refused=refused,
        agent=member("userAgent"),
        message=pl.coalesce(member("errorMessage"), operation),
        term=pl.concat_str(operation, status, ignore_nulls=True, separator=" "),
    )


def _messages(path: Path, settings: Settings) -> Iterator[Message]:
    yield from timed(_begun(NOWHERE), _events(path))


def _events(path: Path) -> Iterator[bytes]:
    """Yield each event of a file: events in a document's ``Records``, or events on separate lines."""
    try:
        parsed: Any = json.loads(b"\n".join(lines_of(path)))
    except ValueError:
        parsed = None
    records = parsed.get("Records") if isinstance(parsed, dict) else parsed
    if isinstance(records, list):
        yield from (json.dumps(event, ensure_ascii=False).encode() for event in records)
        return
    for line in lines_of(path):
        yield from _split(line)


def _split(line: bytes) -> Iterator[bytes]:
    """Yield a line's event, or the events of its ``Records``; an unreadable line is passed on unchanged."""
    try:
        parsed = json.loads(line)
    except ValueError:
        parsed = None
    records = parsed.get("Records") if isinstance(parsed, dict) else None
    if isinstance(records, list):
        yield from (json.dumps(event, ensure_ascii=False).encode() for event in records)
    else:
        yield line


def _recognises(path: Path, head: bytes) -> bool:
    return head.lstrip()[:1] in (b"{", b"[") and b'"eventSource"' in head and b'"eventName"' in head


CLOUDTRAIL = AppFormat(
    "cloudtrail",
    "AWS CloudTrail: an event a message; files of Records are split",
    _rows,
    _recognises,
    _messages,
)
