"""Bluesky's Jetstream: one JSON object per event; creations of posts become rows.

Source: github.com/bluesky-social/jetstream, README; lexicon app.bsky.feed.post.
"""

from __future__ import annotations

import polars as pl

from ....operators.definition.stream import Stream
from ....operators.formats.json.decoder import json
from ....operators.formats.json.fields import field
from ...app import AppFormat, Feed, Settings
from ..lists import TEXTS
from .recordings import Event, messages_by, recognised_by
from .rows import TIME, USUAL, of_lists, rows

_FEATURE = pl.Struct({"tag": pl.String, "uri": pl.String})
_RECORD = pl.Struct(
    {
        "text": pl.String,
        "langs": TEXTS,
        "tags": TEXTS,
        "facets": pl.List(pl.Struct({"features": pl.List(_FEATURE)})),
        "embed": pl.Struct({"external": pl.Struct({"uri": pl.String})}),
    }
)
_POSTED = (pl.col("operation") == "create") & (pl.col("collection") == "app.bsky.feed.post")


def _rows(feed: Feed, settings: Settings) -> Stream:
    value = json(
        {
            "did": pl.String,
            "time_us": pl.Int64,
            "operation": field("commit.operation", pl.String),
            "collection": field("commit.collection", pl.String),
            "rkey": field("commit.rkey", pl.String),
            # The types of the record's fields depend on the collection.
            "record": field("commit.record", pl.Binary),
        }
    )
    record = pl.when(_POSTED).then(pl.col("record").cast(pl.String))
    sent = pl.from_epoch("time_us", time_unit="us").cast(TIME)
    stamp = record.str.json_path_match("$.createdAt")
    # Clients may set any time, so like Bluesky itself, this uses the earlier of the two.
    ahead = stamp.str.to_datetime("%+", time_unit="us", time_zone="UTC", strict=False) > sent
    written = sent.dt.strftime("%Y-%m-%dT%H:%M:%S%.6fZ")
    at = pl.when(ahead.fill_null(False) | stamp.is_null()).then(written).otherwise(stamp)
    stream = feed.stream(value, time=at)
    stream = stream.filter(_POSTED.fill_null(False))
    stream = stream.with_columns(record=pl.col("record").cast(pl.String).str.json_decode(_RECORD))
    post = pl.col("record").struct
    features = post.field("facets").list.eval(pl.element().struct.field("features").explode())
    return rows(
        stream,
        settings,
        id=pl.format("at://{}/{}/{}", "did", "collection", "rkey"),
        author=pl.col("did"),
        lang=post.field("langs").list.first(),
        text=post.field("text"),
        tags=pl.concat_list(of_lists(features, "tag").fill_null([]), post.field("tags").fill_null([])),
        links=pl.concat_list(
            of_lists(features, "uri").fill_null([]),
            post.field("embed").struct.field("external").struct.field("uri"),
        ),
    )


def _is_event(event: Event) -> bool:
    return isinstance(event.get("did"), str) and "time_us" in event and "kind" in event


def _sender(event: Event) -> tuple[str, int]:
    """Return the sender and Jetstream's own time, the time of arrival."""
    return event["did"], event["time_us"] // 1_000


JETSTREAM = AppFormat(
    "jetstream",
    "Bluesky's Jetstream, one event a message",
    _rows,
    recognised_by(_is_event),
    messages_by(_sender),
    USUAL,
)
