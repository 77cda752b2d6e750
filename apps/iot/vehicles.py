"""Vehicles of GTFS-realtime: each message is a feed in Protobuf with the positions of many vehicles.

Readings are speeds in km/h, if a feed has them; a vehicle's group is its route.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import polars as pl

from ...operators.definition.stream import Stream
from ...operators.formats.messages import Messages
from ...operators.formats.protobuf.decoder import Protobuf, protobuf
from ..app import AppFormat, Feed, Message, Settings
from ..recordings.compressed_files import opened
from .columns import ARRIVED, in_columns
from .described import described

_MESSAGES: dict[str, dict[str, tuple[int, str]]] = {
    "FeedMessage": {"header": (1, "FeedHeader"), "entity": (2, "FeedEntity")},
    "FeedHeader": {"gtfs_realtime_version": (1, "string"), "timestamp": (3, "uint64")},
    "FeedEntity": {"id": (1, "string"), "vehicle": (4, "VehiclePosition")},
    "VehiclePosition": {
        "trip": (1, "TripDescriptor"),
        "position": (2, "Position"),
        "timestamp": (5, "uint64"),
        "vehicle": (8, "VehicleDescriptor"),
    },
    "Position": {"latitude": (1, "float"), "longitude": (2, "float"), "speed": (5, "float")},
    "TripDescriptor": {"trip_id": (1, "string"), "route_id": (5, "string")},
    "VehicleDescriptor": {"id": (1, "string"), "label": (2, "string")},
}
"""The fields of a feed that are read, with their numbers."""

_REPEATED = {"entity"}

USUAL = {
    "group": "route",
    "untimed": "vehicle",
    "map": "yes",
    "value_unit": "km/h",
    **dict.fromkeys(("limit", "stuck", "deviation", "clock"), ""),
}
"""A vehicle's group is its `route`, its `trip`, or nothing. If a feed's header has no time, the feed gets the
time of its latest `vehicle`, or Kafka's if no vehicle has one; with `receipt`, always Kafka's. Unlike a
sensor's readings, a vehicle's speed may stay the same and may jump; a `limit` is in km/h."""
_KM_H = 3.6
_UTC = pl.Datetime("us", "UTC")


@cache
def _feeds() -> Protobuf:
    """Source: https://gtfs.org/documentation/realtime/proto/ (version 2.0)."""
    return protobuf(
        "transit_realtime.FeedMessage",
        schema=described("transit_realtime", _MESSAGES, _REPEATED),
        columns={"stamp": "header.timestamp", "entity": "entity"},
    )


def _time(untimed: str) -> pl.Expr:
    """Return a feed's time: its header's, its latest vehicle's, or its arrival."""
    stamps = [_instant(pl.col("stamp"))]
    if untimed == "vehicle":
        each = pl.element().struct.field("vehicle").struct.field("timestamp")
        stamps.append(_instant(pl.col("entity").list.eval(each).list.max()))
    return pl.coalesce(*stamps, pl.col("arrived"))


def _instant(seconds: pl.Expr) -> pl.Expr:
    """Convert seconds since 1970 to a time; null for 0, which stands for none."""
    return (pl.when(seconds > 0).then(seconds).cast(pl.Int64) * 1_000_000).cast(_UTC)


def _rows(feed: Feed, settings: Settings) -> Stream:
    if (group := settings["group"]) not in ("route", "trip", ""):
        raise ValueError(f"--set group={group}: a vehicle's group is its route or its trip")
    if (untimed := settings["untimed"]) not in ("vehicle", "receipt"):
        raise ValueError(
            f"--set untimed={untimed}: a feed without a time has its vehicle's, or its receipt's"
        )
    rows = feed.stream(_feeds(), time=_time(untimed), message=ARRIVED).explode("entity")
    rows = rows.filter(_part("vehicle").is_not_null())
    measured = _instant(_part("vehicle", "timestamp"))
    is_timed = _instant(pl.col("stamp")).is_not_null() | pl.lit(untimed == "vehicle")
    place = {name: _part("vehicle", "position", name) for name in ("latitude", "longitude", "speed")}
    named = (("vehicle", "vehicle", "id"), ("vehicle", "vehicle", "label"), ("id",))
    return in_columns(
        rows,
        settings,
        at=pl.coalesce(pl.when(is_timed).then(measured), _instant(pl.col("stamp")), pl.col("arrived")),
        sensor=pl.coalesce(*(_filled(_part(*path)) for path in named)),
        value=place["speed"].cast(pl.Float64) * _KM_H,
        group=_filled(_part("vehicle", "trip", f"{group}_id")) if group else pl.lit(None),
        latitude=place["latitude"],
        longitude=place["longitude"],
    )


def _part(*path: str) -> pl.Expr:
    column = pl.col("entity")
    for name in path:
        column = column.struct.field(name)
    return column


def _filled(text: pl.Expr) -> pl.Expr:
    return pl.when(text != "").then(text)


def _messages(path: Path, settings: Settings) -> Iterator[Message]:
    with opened(path) as file:
        value = file.read()
    frame = _feeds().decode(Messages.of([value])).frame
    time = _time(settings["untimed"]).alias("at")
    known = frame.with_columns(arrived=pl.lit(None, _UTC)).select(time)["at"].drop_nulls()
    if frame.height and not len(known):
        raise ValueError(
            f"{path} has no time, nor has a vehicle in it, and a file has none of Kafka's: replay an "
            "archive of the topic"
        )
    yield Message(value, None, known.dt.epoch("ms")[0] if len(known) else None)


def _recognises(path: Path, head: bytes) -> bool:
    """Whether this is a feed: it begins with its header, which begins with the three-character version."""
    return head[:1] == b"\x0a" and head[2:4] == b"\x0a\x03" and head[4:7] in (b"1.0", b"2.0")


VEHICLES = AppFormat(
    "gtfs-realtime",
    "GTFS-realtime in Protobuf, a feed a message: vehicles, their speed and their place",
    _rows,
    _recognises,
    _messages,
    USUAL,
)
