"""Observations of the OGC SensorThings API: one per message, as over MQTT, and lists of them."""

from __future__ import annotations

import json as plain_json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl

from ...operators.definition.stream import Stream
from ...operators.formats.json.decoder import json
from ...operators.formats.json.fields import field
from ..app import AppFormat, Feed, Message, Settings
from ..recordings.compressed_files import opened
from ..recordings.lines import milliseconds
from .columns import ARRIVED, in_columns

_LINK = "Datastream@iot.navigationLink"
_OF_LINK = r"Datastreams\(([^)]*)\)"
_COLUMNS = {
    "phenomenon": field("phenomenonTime", pl.String),
    "resulted": field("resultTime", pl.String),
    "result": field("result", pl.Float64, text=True),
    "id": field(["Datastream", "@iot.id"], pl.String, text=True),
    "name": field("Datastream.name", pl.String),
    "link": field([_LINK], pl.String),
}


def _rows(feed: Feed, settings: Settings) -> Stream:
    # For an interval, use the end, when the result is known.
    ended = pl.col("phenomenon").str.split("/").list.last()
    time = pl.coalesce(ended, pl.col("resulted"))
    rows = feed.stream(json(_COLUMNS), time=time, message={**ARRIVED, "topic_of_mqtt": "key"})
    # MQTT bridges put the topic into the key, such as v1.1/Datastreams(7)/Observations.
    linked = [pl.col(name).str.extract(_OF_LINK).str.strip_chars("'") for name in ("link", "topic_of_mqtt")]
    return in_columns(
        rows,
        settings,
        at=pl.coalesce(
            time.str.to_datetime("%+", time_unit="us", time_zone="UTC", strict=False),
            time.str.to_datetime("%FT%T%.f", time_unit="us", strict=False).dt.replace_time_zone("UTC"),
        ),
        sensor=pl.coalesce("name", "id", *linked, pl.lit("sensor")),
        value=pl.col("result"),
        arrived=pl.col("arrived"),
    )


def _messages(path: Path, settings: Settings) -> Iterator[Message]:
    with opened(path) as file:
        text = file.read()
    try:
        whole: Any = plain_json.loads(text)
        values = [plain_json.dumps(one).encode() for one in _observations(whole)]
    except ValueError:
        values = [value for line in text.splitlines() for value in _of_line(line)]
    yield from map(_message, values)


def _of_line(line: bytes) -> list[bytes]:
    """Yield a line's observations; an unreadable line is passed on unchanged."""
    try:
        parsed = _observations(plain_json.loads(line))
    except ValueError:
        return [line] if line.strip() else []
    return [plain_json.dumps(one, ensure_ascii=False).encode() for one in parsed]


def _observations(parsed: Any) -> Iterator[Any]:
    """Yield the observations of a list, a page of the service, its data arrays, or a single observation."""
    if isinstance(parsed, list):
        for one in parsed:
            yield from _observations(one)
    elif isinstance(parsed, dict) and isinstance(parsed.get("value"), list):
        yield from _observations(parsed["value"])
    elif isinstance(parsed, dict) and isinstance(parsed.get("dataArray"), list):
        names, shared = (
            parsed.get("components") or [],
            {k: v for k, v in parsed.items() if k.startswith("Datastream")},
        )
        yield from ({**shared, **dict(zip(names, row))} for row in parsed["dataArray"])
    else:
        yield parsed


def _message(value: bytes) -> Message:
    try:
        parsed = plain_json.loads(value)
        stamp = str(parsed.get("phenomenonTime") or parsed.get("resultTime")).rpartition("/")[2]
        stream = parsed.get("Datastream") or {}
        key = stream.get("name") or stream.get("@iot.id") or parsed.get(_LINK)
    except (ValueError, AttributeError):
        return Message(value)
    sent = milliseconds(stamp)
    return Message(value, None if key is None else str(key).encode(), None if sent is None else int(sent))


SENSOR_THINGS = AppFormat(
    "sensorthings",
    "observations of the OGC SensorThings API, one a message; pages and data arrays of them are split",
    _rows,
    lambda path, head: b'"phenomenonTime"' in head,
    _messages,
)
