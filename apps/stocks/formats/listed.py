"""Frames with a list of events at a path, and common fields beside it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from ....operators.definition.stream import Stream
from ....operators.formats.decode import Decoded
from ....operators.formats.json.decoder import Json, json
from ....operators.formats.json.fields import field
from ....operators.formats.messages import Messages
from ...app import Feed

_LISTED = "listed"


@dataclass(frozen=True)
class ListedFrames:
    """Decodes frames such as ``{"topic":"trades","data":[{…},{…}]}``.

    `head` are the paths of the frame's own columns, `fields` the fields of each event in the list at `path`;
    all are raw. Events are read only if the frame's column `of` matches `wanted` as a whole. An object in
    place of the list is one event.

    >>> frames = ListedFrames({"topic": "topic"}, "data", ("p",), "topic", "trades")
    >>> values = [b'{"topic":"trades","data":[{"p":1},{"p":2}]}', b'{"topic":"book","data":[[1]]}', b"[]"]
    >>> decoded = frames.decode(Messages.of(values))
    >>> decoded.frame["events"].list.len().to_list(), decoded.reasons
    ([2, None], ['not a JSON object'])
    """

    head: Mapping[str, str]
    path: str
    fields: tuple[str, ...]
    of: str
    wanted: str

    @property
    def schema(self) -> Mapping[str, Any]:
        """See `Decoder`."""
        events = pl.List(pl.Struct(dict.fromkeys(self.fields, pl.Binary())))
        return {**dict.fromkeys(self.head, pl.Binary()), "events": events}

    @cached_property
    def _frames(self) -> Json:
        return json(
            {name: field(path, pl.Binary) for name, path in (*self.head.items(), (_LISTED, self.path))}
        )

    @cached_property
    def _events(self) -> Json:
        return json({"events": self.schema["events"]})

    def decode(self, messages: Messages) -> Decoded:
        """See `Decoder`."""
        decoded = self._frames.decode(messages)
        frame = decoded.frame
        topic = frame[self.of].cast(pl.String, strict=False).str.strip_chars('"')
        wanted = topic.str.contains(f"^(?:{self.wanted})$") & frame[_LISTED].is_not_null()
        numbers = np.flatnonzero(wanted.fill_null(False).to_numpy())
        events = self._events.decode(Messages.of([_as_object(one) for one in frame[_LISTED].gather(numbers)]))
        rows = numbers if events.rows is None else numbers[events.rows]
        lists = pl.DataFrame(
            {"events": events.frame["events"], "row": rows}, schema_overrides={"row": pl.Int64}
        )
        frame = (
            frame.drop(_LISTED)
            .with_row_index("row")
            .with_columns(pl.col("row").cast(pl.Int64))
            .join(lists, on="row", how="left", maintain_order="left")
            .select(*self.schema)
        )
        wrong = np.zeros(frame.height, bool)
        wrong[numbers[events.refused]] = True
        return Decoded(frame, decoded.rows, decoded.refused, decoded.reasons, decoded.skipped).without(
            wrong, [_within(self.path, reason) for reason in events.reasons]
        )


def _as_object(listed: bytes) -> bytes:
    listed = listed.strip()
    return b'{"events":' + (listed if listed[:1] == b"[" else b"[" + listed + b"]") + b"}"


def _within(path: str, reason: str) -> str:
    """A reason with the path at which the frame has it.

    >>> _within("data", '"events[0]" is 3, not an object')
    '"data[0]" is 3, not an object'
    """
    return re.sub(r'^"events', f'"{path}', reason)


def listed_events(feed: Feed, frames: Any, time: pl.Expr) -> Stream:
    """A row for each event of a topic's frames, in columns ``event_NAME``, beside those of the frame.

    `time` is of an `pl.element()`, and the first one counts; frames without an event are a row without one.
    """
    stream = feed.stream(
        frames,
        time=pl.col("events").list.eval(time.drop_nulls()).list.first(),
        message={"arrived": "offset"},
    )
    columns = [pl.col("events").struct.field(name).alias(f"event_{name}") for name in frames.fields]
    place = pl.int_ranges(0, pl.col("events").list.len())
    exploded = stream.with_columns(place=place).explode("events", "place")
    return exploded.select("arrived", "place", *frames.head, *columns)
