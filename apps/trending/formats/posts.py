"""Posts in this project's own format, one JSON object per message, as `streamgauge demo trending` sends them.

The fields are `id`, `kind` ("post"; other events are filtered), `author`, `created_at` (RFC 3339), and, if
known, `lang`, `text`, and `tags` without #.
"""

from __future__ import annotations

import json as plain_json
from pathlib import Path

import polars as pl

from ....operators.definition.stream import Stream
from ....operators.formats.json.decoder import json
from ...app import AppFormat, Feed, Settings
from ...recordings.lines import milliseconds
from ..lists import TEXTS
from .recordings import Event, messages_by
from .rows import TIME, USUAL, rows


def _rows(feed: Feed, settings: Settings) -> Stream:
    texts = dict.fromkeys(("id", "kind", "author", "lang", "text"), pl.String)
    stream = feed.stream(json({**texts, "created_at": TIME, "tags": TEXTS}), time="created_at")
    known = ("id", "author", "lang", "text", "tags")
    stream = stream.filter(pl.col("kind") == "post")
    return rows(stream, settings, **{name: pl.col(name) for name in known})


def _recognises(path: Path, head: bytes) -> bool:
    try:
        parsed = plain_json.loads(head.split(b"\n", 1)[0])
    except ValueError:
        return False
    return isinstance(parsed, dict) and parsed.keys() >= {"id", "kind", "author", "created_at"}


def _sender(event: Event) -> tuple[str, float | None]:
    return event.get("author", ""), milliseconds(event.get("created_at"))


POSTS = AppFormat(
    "posts",
    "posts in this project's own shape, as `streamgauge demo trending` sends them",
    _rows,
    _recognises,
    messages_by(_sender),
    USUAL,
)
