"""Mastodon's statuses: as its streaming API sends them over a WebSocket, or bare.

Source: docs.joinmastodon.org, "Streaming API" and entity "Status".
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl

from ....operators.definition.stream import Stream
from ....operators.formats.json import json
from ....operators.formats.json_fields import field
from ...app import AppFormat, Feed, Message, Settings
from ...replay import mastodon
from ...replay.post import Unrecognised
from .recordings import events, is_of
from .rows import USUAL, of_lists, rows

_SHOWN: dict[str, Any] = {
    "content": pl.String,
    "language": pl.String,
    "tags": pl.List(pl.Struct({"name": pl.String})),
    "card": pl.Struct({"url": pl.String}),
}
_STATUS: dict[str, Any] = {
    "id": pl.String,
    "created_at": pl.String,
    "account": pl.Struct({"acct": pl.String}),
    "reblog": pl.Struct(_SHOWN),
    **_SHOWN,
}


def _rows(feed: Feed, settings: Settings) -> Stream:
    paths = {"account": ("account", "acct"), "card": ("card", "url")}
    bare = {
        f"bare.{name}": field(paths[name], pl.String) if name in paths else field(name, kind)
        for name, kind in _STATUS.items()
        if name != "reblog"
    }
    boosted = {f"boosted.{name}": field(["reblog", *paths.get(name, (name,))], pl.String) for name in _SHOWN}
    boosted["boosted.tags"] = field("reblog.tags", _SHOWN["tags"])
    value = json({"event": pl.String, "payload": field("payload", pl.String, text=True), **bare, **boosted})
    updated = pl.when(pl.col("event") == "update").then(pl.col("payload"))
    at = pl.coalesce("bare.created_at", updated.str.json_path_match("$.created_at"))
    stream = Stream.from_kafka(
        feed.topic, value=value, time=at, bootstrap_servers=feed.bootstrap_servers, config=feed.config
    )
    stream = stream.filter(pl.col("event").is_null() | (pl.col("event") == "update"))
    stream = stream.with_columns(status=updated.str.json_decode(pl.Struct(_STATUS)))
    found = {name: _either(name) for name in _SHOWN}
    content = found["content"]
    anchors = content.str.extract_all(r"<a [^>]*>").list.eval(
        pl.element().filter(~pl.element().str.contains("mention|hashtag")).str.extract(r'href="([^"]*)"', 1)
    )
    return rows(
        stream,
        settings,
        id=pl.coalesce(pl.col("status").struct.field("id"), "bare.id"),
        author=pl.coalesce(pl.col("status").struct.field("account").struct.field("acct"), "bare.account"),
        lang=found["language"],
        text=_plain_text(content),
        tags=of_lists(found["tags"], "name"),
        links=pl.concat_list(anchors.fill_null([]), found["card"]),
        repost=pl.coalesce(
            pl.col("status").struct.field("reblog").struct.field("content"), "boosted.content"
        ).is_not_null(),
    )


def _either(name: str) -> pl.Expr:
    """A field of what is shown: of the status that is boosted, or else of the status itself."""
    status = pl.col("status").struct
    nested = [status.field("reblog").struct.field(name), status.field(name)]
    if name == "card":
        nested = [one.struct.field("url") for one in nested]
    # What is boosted shows itself, even where it has nothing: an own empty content goes after it.
    return pl.coalesce(nested[0], f"boosted.{name}", nested[1], f"bare.{name}")


def _plain_text(content: pl.Expr) -> pl.Expr:
    spaced = content.str.replace_all(r"<br ?/?>|</p>", " ").str.replace_all(r"<[^>]*>", "")
    for written, meant in (("&lt;", "<"), ("&gt;", ">"), ("&quot;", '"'), ("&#39;", "'"), ("&amp;", "&")):
        spaced = spaced.str.replace_all(written, meant, literal=True)
    return spaced.str.strip_chars()


def _messages(path: Path, settings: Settings) -> Iterator[Message]:
    for line, event in events(path):
        try:
            post, sent = mastodon.post(event)
        except (Unrecognised, AttributeError, TypeError, KeyError):
            yield Message(line)
            continue
        yield Message(line, post["author"].encode(), None if sent is None else int(sent.timestamp() * 1_000))


MASTODON = AppFormat(
    "mastodon",
    "Mastodon's statuses, as its streaming API sends them, or bare",
    _rows,
    lambda path, head: is_of(mastodon, path),
    _messages,
    USUAL,
)
