"""Posts in this project's own shape, as `streamgauge replay` and the demo send them (`apps.replay.post`)."""

from __future__ import annotations

import json as plain_json
from collections.abc import Iterator
from pathlib import Path

import polars as pl

from ....operators.definition.stream import Stream
from ....operators.formats.json import json
from ...app import AppFormat, Feed, Message, Settings
from ...replay.post import Unrecognised, parse_time
from .recordings import events
from .rows import TEXTS, TIME, USUAL, rows


def _rows(feed: Feed, settings: Settings) -> Stream:
    texts = dict.fromkeys(("id", "kind", "author", "lang", "text"), pl.String)
    stream = Stream.from_kafka(
        feed.topic,
        value=json({**texts, "created_at": TIME, "tags": TEXTS}),
        time="created_at",
        bootstrap_servers=feed.bootstrap_servers,
        config=feed.config,
    )
    known = ("id", "author", "lang", "text", "tags")
    stream = stream.filter(pl.col("kind") == "post")
    return rows(stream, settings, **{name: pl.col(name) for name in known})


def _recognises(path: Path, head: bytes) -> bool:
    try:
        found = plain_json.loads(head.split(b"\n", 1)[0])
    except ValueError:
        return False
    return isinstance(found, dict) and found.keys() >= {"id", "kind", "author", "created_at"}


def _messages(path: Path, settings: Settings) -> Iterator[Message]:
    for line, event in events(path):
        try:
            sent = int(parse_time(event.get("created_at", "")).timestamp() * 1_000)
        except Unrecognised:
            sent = None
        yield Message(line, str(event.get("author", "")).encode(), sent)


POSTS = AppFormat(
    "posts",
    "posts in this project's own shape, as `streamgauge replay` sends them",
    _rows,
    _recognises,
    _messages,
    USUAL,
)
