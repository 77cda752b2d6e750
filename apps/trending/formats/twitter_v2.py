"""Twitter's v2 Tweets, one per message: plain, or wrapped with their includes, as its streams send them.

Source: the v2 data dictionary, "Tweet object" and "Place object" (developer.x.com).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl

from ....operators.definition.stream import Stream
from ....operators.formats.json.decoder import json
from ....operators.formats.json.fields import field
from ...app import AppFormat, Feed, Message, Settings
from ...recordings.lines import milliseconds
from .recordings import Event, encoded, events, message, recognised_by
from .rows import TIME, USUAL, of_lists, rows, spot
from .twitter_v1 import snowflake, snowflake_ms

_TWEET: dict[str, Any] = {
    "id": pl.String,
    "text": pl.String,
    "author_id": pl.String,
    "lang": pl.String,
    "created_at": TIME,
    "entities.hashtags": pl.List(pl.Struct({"tag": pl.String})),
    "entities.urls": pl.List(pl.Struct({"expanded_url": pl.String})),
    "referenced_tweets": pl.List(pl.Struct({"type": pl.String})),
    "geo.coordinates.coordinates": pl.List(pl.Float64),
    "geo.place_id": pl.String,
}
_BOX = pl.Struct({"bbox": pl.List(pl.Float64)})
_PLACES = pl.List(pl.Struct({"id": pl.String, "full_name": pl.String, "geo": _BOX}))


def _rows(feed: Feed, settings: Settings) -> Stream:
    wrapped = {path: field(f"data.{path}", kind) for path, kind in _TWEET.items()}
    bare = {f"bare.{path}": field(path, kind) for path, kind in _TWEET.items()}
    value = json({**wrapped, **bare, "places": field("includes.places", _PLACES)})
    tweet = {path: pl.coalesce(path, f"bare.{path}") for path in _TWEET}
    at = pl.coalesce(tweet["created_at"], snowflake(tweet["id"].cast(pl.Int64, strict=False)))
    stream = feed.stream(value, time=at)
    stream = stream.select(
        places=pl.col("places"), **{name: one for name, one in tweet.items() if name != "created_at"}
    )
    # The includes have a Tweet's own place first, and then at most that of a Tweet that it references.
    place = pl.col("places").list.first()
    own = pl.when(place.struct.field("id") == pl.col("geo.place_id")).then(place)
    box = own.struct.field("geo").struct.field("bbox")
    west, south, east, north = (box.list.get(at, null_on_oob=True) for at in range(4))
    point = [pl.col("geo.coordinates.coordinates").list.get(at, null_on_oob=True) for at in (1, 0)]
    return rows(
        stream,
        settings,
        id=pl.col("id"),
        author=pl.col("author_id"),
        lang=pl.col("lang"),
        text=pl.col("text"),
        tags=of_lists(pl.col("entities.hashtags"), "tag"),
        links=of_lists(pl.col("entities.urls"), "expanded_url"),
        place=own.struct.field("full_name"),
        spot=pl.coalesce(spot(*point), spot((south + north) / 2, (west + east) / 2)),
        repost=of_lists(pl.col("referenced_tweets"), "type").list.contains("retweeted"),
    )


def _messages(path: Path, settings: Settings) -> Iterator[Message]:
    for line, event in events(path):
        if not isinstance(event.get("data"), list):
            yield message(line, event, _sender)
            continue
        for one in event["data"]:
            whole = {"data": one, "includes": {"places": _places(event, one)}}
            yield message(encoded(whole), whole, _sender)


def _places(page: dict[str, Any], tweet: Any) -> list[Any]:
    """Select the place of a Tweet from all places that its page includes."""
    try:
        named = tweet["geo"]["place_id"]
        return [place for place in page["includes"]["places"] if place["id"] == named]
    except (KeyError, TypeError):
        return []


def _is_event(event: Event) -> bool:
    """Whether an event is a Tweet, plain or wrapped, or a page of them."""
    data = event.get("data", event)
    first = data[0] if isinstance(data, list) and data else data
    if first == [] and "meta" in event:
        return True
    return (
        isinstance(first, dict)
        and isinstance(first.get("id"), str)
        and "text" in first
        and "user" not in first
        and ("data" in event or "author_id" in first or "edit_history_tweet_ids" in first)
    )


def _sender(event: Event) -> tuple[str, float | None]:
    tweet = event.get("data", event)
    if "created_at" in tweet:
        return tweet.get("author_id"), milliseconds(tweet["created_at"])
    return tweet.get("author_id"), snowflake_ms(int(tweet["id"]))


TWITTER_V2 = AppFormat(
    "twitter-v2",
    "Twitter v2 Tweets: streamed objects, pages of a search, or bare",
    _rows,
    recognised_by(_is_event),
    _messages,
    USUAL,
)
