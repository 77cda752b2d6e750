"""The one shape of a post on the topic, whatever network it came from."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import NotRequired, TypedDict


class Post(TypedDict):
    """One event of a social network.

    `id`: unique within its network. `kind`: "post", or what else happened ("like", "repost", "delete", …):
    whoever counts posts filters by it, so that nothing a network says is lost on the way. An event that was
    recorded twice is a "repeat" the second time. `created_at`: what the author's clock said, RFC 3339 in UTC
    with milliseconds. `tags`: without the #, as written, each once.
    """

    id: str
    kind: str
    author: str
    created_at: str
    lang: NotRequired[str]
    tags: NotRequired[list[str]]
    text: NotRequired[str]


class Unrecognised(ValueError):
    """A record that its format does not explain; the message says what is missing."""


def encode(post: Post) -> bytes:
    """A post as the topic holds it: one line of JSON in UTF-8 (half a surrogate pair becomes ``?``).

    >>> encode({"id": "1", "kind": "post", "author": "ann", "created_at": "2026-06-01T12:00:00.000Z"})
    b'{"id":"1","kind":"post","author":"ann","created_at":"2026-06-01T12:00:00.000Z"}'
    """
    return json.dumps(post, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def once(tags: Iterable[str]) -> list[str]:
    """Each tag once, in the order of first use."""
    return list(dict.fromkeys(tag for tag in tags if tag))


def rfc3339(moment: datetime) -> str:
    """A moment as `created_at` is written.

    >>> rfc3339(datetime(2026, 6, 1, 12, tzinfo=UTC))
    '2026-06-01T12:00:00.000Z'
    """
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def parse_time(text: str) -> datetime:
    """An RFC 3339 time with any offset, any number of fractional digits. Raises `Unrecognised`.

    >>> parse_time("2026-07-04T16:38:02.123456789+02:00")
    datetime.datetime(2026, 7, 4, 14, 38, 2, 123456, tzinfo=datetime.timezone.utc)
    """
    try:
        moment = datetime.fromisoformat(text)
        # A clock with no zone is taken for UTC, as the networks themselves do.
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except (TypeError, ValueError, OverflowError):
        raise Unrecognised(f"{text!r} is not an RFC 3339 time") from None
