"""Twitter's v1.1 statuses, one JSON object per message, among a stream's notices.

Source: the v1.1 data dictionary, "Tweet object", "Extended Tweets" and "Geo objects" (developer.x.com).
"""

from __future__ import annotations

from email.utils import parsedate_to_datetime

import polars as pl

from ....operators.definition.stream import Stream
from ....operators.formats.json.decoder import json
from ....operators.formats.json.fields import field
from ...app import AppFormat, Feed, Settings
from ...recordings.lines import milliseconds
from .recordings import Event, messages_by, recognised_by
from .rows import TIME, USUAL, of_lists, rows, spot

_EPOCH_MS = 1_288_834_974_657
_FIRST = 1 << 34
_NOTICES = ("delete", "limit", "scrub_geo", "status_withheld", "user_withheld", "disconnect", "warning")
_ENTITIES = {
    "hashtags": pl.List(pl.Struct({"text": pl.String})),
    "urls": pl.List(pl.Struct({"expanded_url": pl.String})),
}


def snowflake(number: pl.Expr) -> pl.Expr:
    """Return when Twitter assigned an id; null for ids from before November 2010, which don't contain a
    time."""
    known = pl.when(number >= _FIRST).then(number)
    return pl.from_epoch((known // (1 << 22)) + _EPOCH_MS, time_unit="ms").cast(TIME)


def snowflake_ms(number: int) -> int | None:
    """The same for one id, in milliseconds since 1970.

    >>> snowflake_ms(1212092628029698048), snowflake_ms(20)
    (1577820376771, None)
    """
    return (number >> 22) + _EPOCH_MS if number >= _FIRST else None


def _rows(feed: Feed, settings: Settings) -> Stream:
    entities = {
        f"{name}{at}": field([*path, "entities", name], kind)
        for at, path in enumerate(_WITH_ENTITIES)
        for name, kind in _ENTITIES.items()
    }
    value = json(
        {
            "id_str": field("id_str", pl.String, text=True),
            "id": field("id", pl.String, text=True),
            "created_at": pl.String,
            "timestamp_ms": field("timestamp_ms", pl.Int64, text=True),
            "user_id": field("user.id_str", pl.String, text=True),
            "user_number": field("user.id", pl.String, text=True),
            "user_name": field("user.screen_name", pl.String),
            "text": pl.String,
            "full_text": pl.String,
            "extended_text": field("extended_tweet.full_text", pl.String),
            "lang": pl.String,
            "retweeted": field("retweeted_status.id", pl.Int64),
            "point": field("coordinates.coordinates", pl.List(pl.Float64)),
            "place_name": field("place.full_name", pl.String),
            "box": field("place.bounding_box.coordinates", pl.List(pl.List(pl.List(pl.Float64)))),
            **entities,
            **dict.fromkeys(_NOTICES, pl.Binary),
        }
    )
    number = pl.coalesce("id_str", "id")
    author = pl.coalesce("user_id", "user_number", "user_name")
    said = pl.col("created_at").str.to_datetime(
        "%a %b %d %H:%M:%S %z %Y", time_unit="us", time_zone="UTC", strict=False
    )
    stamp = pl.from_epoch("timestamp_ms", time_unit="ms").cast(TIME)
    posted = pl.coalesce(stamp, said, snowflake(number.cast(pl.Int64, strict=False)))
    at = pl.when(author.is_not_null() & number.is_not_null()).then(posted)
    stream = feed.stream(value, time=at)
    notice = pl.any_horizontal(*(pl.col(name).is_not_null() for name in _NOTICES))
    stream = stream.filter(~(notice & author.is_null()))
    text = pl.coalesce("extended_text", "full_text", "text")
    corners = pl.col("box").list.first()
    middle = [corners.list.eval(pl.element().list.get(at, null_on_oob=True)).list.mean() for at in (1, 0)]
    point = [pl.col("point").list.get(at, null_on_oob=True) for at in (1, 0)]
    return rows(
        stream,
        settings,
        id=number,
        author=author,
        lang=pl.col("lang"),
        text=text,
        tags=of_lists(_fullest("hashtags"), "text"),
        links=of_lists(_fullest("urls"), "expanded_url"),
        place=pl.col("place_name"),
        spot=pl.coalesce(spot(*point), spot(*middle)),
        repost=pl.col("retweeted").is_not_null() | text.str.starts_with("RT @"),
    )


_WITH_ENTITIES: tuple[tuple[str, ...], ...] = (
    ("retweeted_status", "extended_tweet"),
    ("retweeted_status",),
    ("extended_tweet",),
    (),
)
"""The places of entities, the full text's first: a retweet's own are truncated with its text."""


def _fullest(name: str) -> pl.Expr:
    return pl.coalesce(*(pl.col(f"{name}{at}") for at in range(len(_WITH_ENTITIES))))


def _is_event(event: Event) -> bool:
    if len(event) == 1 and next(iter(event)) in _NOTICES:
        return True
    number = event.get("id_str", event.get("id"))
    return isinstance(event.get("user"), dict) and "created_at" in event and isinstance(number, (str, int))


def _sender(event: Event) -> tuple[str, float | None]:
    """Return the sender and the same time as in the rows; notices have neither."""
    user = event["user"]
    author = user.get("id_str") or user.get("id") or user.get("screen_name")
    if "timestamp_ms" in event:
        return author, milliseconds(event["timestamp_ms"])
    if "created_at" in event:
        return author, parsedate_to_datetime(event["created_at"]).timestamp() * 1_000
    return author, snowflake_ms(int(event["id_str"] if "id_str" in event else event["id"]))


TWITTER_V1 = AppFormat(
    "twitter-v1",
    "Twitter v1.1 statuses, as its streams sent them and archives keep them",
    _rows,
    recognised_by(_is_event),
    messages_by(_sender),
    USUAL,
)
