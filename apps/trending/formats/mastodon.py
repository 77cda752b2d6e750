"""Mastodon's statuses: plain, or as its streaming API sends them over a WebSocket.

Source: docs.joinmastodon.org, "Streaming API" and entity "Status".
"""

from __future__ import annotations

import json as plain_json
from typing import Any

import polars as pl

from ....operators.definition.stream import Stream
from ....operators.formats.json.decoder import json
from ....operators.formats.json.fields import field
from ...app import AppFormat, Feed, Settings
from ...recordings.lines import milliseconds
from .recordings import Event, messages_by, recognised_by
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
    stream = feed.stream(value, time=at)
    stream = stream.filter(pl.col("event").is_null() | (pl.col("event") == "update"))
    stream = stream.with_columns(status=updated.str.json_decode(pl.Struct(_STATUS)))
    columns = {name: _either(name) for name in _SHOWN}
    content = columns["content"]
    anchors = content.str.extract_all(r"<a [^>]*>").list.eval(
        pl.element().filter(~pl.element().str.contains("mention|hashtag")).str.extract(r'href="([^"]*)"', 1)
    )
    return rows(
        stream,
        settings,
        id=pl.coalesce(pl.col("status").struct.field("id"), "bare.id"),
        author=pl.coalesce(pl.col("status").struct.field("account").struct.field("acct"), "bare.account"),
        lang=columns["language"],
        text=_plain_text(content),
        tags=of_lists(columns["tags"], "name"),
        links=pl.concat_list(anchors.fill_null([]), columns["card"]),
        repost=pl.coalesce(
            pl.col("status").struct.field("reblog").struct.field("content"), "boosted.content"
        ).is_not_null(),
    )


def _either(name: str) -> pl.Expr:
    """Return a field of the boosted status, or else of the status itself."""
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


def _is_event(event: Event) -> bool:
    if isinstance(event.get("event"), str) and "payload" in event:
        return True
    return isinstance(event.get("account"), dict) and "created_at" in event and "content" in event


def _sender(event: Event) -> tuple[str, float | None]:
    if event.get("event", "update") != "update":
        return "", None
    status = event.get("payload", event)
    if isinstance(status, str):
        status = plain_json.loads(status)
    return status["account"]["acct"], milliseconds(status["created_at"])


MASTODON = AppFormat(
    "mastodon",
    "Mastodon's statuses, as its streaming API sends them, or bare",
    _rows,
    recognised_by(_is_event),
    messages_by(_sender),
    USUAL,
)
