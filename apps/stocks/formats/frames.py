"""Frames of websockets: a JSON object, or a list of them, in one message."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import polars as pl

from ....operators.definition.stream import Stream
from ....operators.formats.decode import Decoded
from ....operators.formats.json.decoder import Json, json
from ....operators.formats.messages import Messages
from ...app import Feed


@dataclass(frozen=True)
class EventFrames:
    """Decodes objects and lists of objects into a list column `events`, with raw `fields`.

    >>> values = [b'[{"T":"t","p":1.5},{"T":"q"}]', b'{"T":"b"}', b"[3]"]
    >>> found = EventFrames(("T", "p")).decode(Messages.of(values))
    >>> found.frame["events"].list.len().to_list(), found.reasons
    ([2, 1], ['"events[0]" is 3, not an object'])
    """

    fields: tuple[str, ...]

    @property
    def schema(self) -> Mapping[str, Any]:
        """See `Decoder`."""
        return {"events": pl.List(pl.Struct(dict.fromkeys(self.fields, pl.Binary())))}

    @cached_property
    def _json(self) -> Json:
        return json(self.schema)

    def decode(self, messages: Messages) -> Decoded:
        """See `Decoder`."""
        values = [messages.value_at(row) for row in range(len(messages))]
        return self._json.decode(Messages.of([None if one is None else _listed(one) for one in values]))


def _listed(frame: bytes) -> bytes:
    frame = frame.strip()
    return b'{"events":' + (frame if frame[:1] == b"[" else b"[" + frame + b"]") + b"}"


def events(feed: Feed, fields: tuple[str, ...], time: pl.Expr) -> Stream:
    """Return one row per event in a topic's frames; `time` is an expression of `pl.element()`, and a frame
    has
    the first event's time."""
    stream = feed.stream(
        EventFrames(fields),
        time=pl.col("events").list.eval(time.drop_nulls()).list.first(),
        message={"arrived": "offset"},
    )
    columns = [pl.col("events").struct.field(name).alias(f"event_{name}") for name in fields]
    place = pl.int_ranges(0, pl.col("events").list.len())
    return stream.with_columns(place=place).explode("events", "place").select("arrived", "place", *columns)
