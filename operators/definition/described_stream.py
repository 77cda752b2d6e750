"""A stream known only from its description in a table topic.

It has the fingerprint of the described stream, so it can be merged and queried like it. It can't be run: of
the source only the keys are known, and expressions are only text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import polars as pl

from ..windows.durations import microseconds
from ..windows.kinds import window_of
from .aggregate import Aggregate
from .description import VERSION
from .expression_text import type_text
from .sources import FrameSource
from .stream import Stream
from .topic_patterns import matches


@dataclass(frozen=True, eq=False)
class DescribedStream(Stream):
    """A stream restored from the description that `Stream.definition` wrote; see `described_stream`."""

    description: Mapping[str, Any] = field(default_factory=dict)

    def definition(self) -> dict[str, Any]:
        """The description that it was restored from."""
        return dict(self.description)

    @property
    def topics(self) -> list[str]:
        """The names and patterns of the topics that it reads."""
        return _topics(self.description.get("source") or {})

    def reads_topic(self, topic: str) -> bool:
        """Whether the described stream reads `topic`."""
        return matches(self.topics, topic)

    @property
    def closing_delay_us(self) -> int:
        """The described stream's closing delay."""
        source = self.description.get("source") or {}
        if self.window is None or source.get("how") not in ("left", "outer"):
            return self.delay_us
        return self.delay_us + microseconds(source["within"]) + self.window.longest_us


def described_stream(definition: Mapping[str, Any]) -> DescribedStream:
    """Restore the stream of a description. Raises `ValueError` if this version can't read it.

    >>> import polars as pl
    >>> from .aggregates import count
    >>> rows = Stream.from_schema({"lang": pl.String, "at": pl.Datetime("us")}, time="at")
    >>> posts = rows.group_by("lang").tumbling("1m").agg(posts=count())
    >>> described_stream(posts.definition()).fingerprint() == posts.fingerprint()
    True
    """
    if definition.get("version") != VERSION:
        raise ValueError(
            f"the stream is described in format version {definition.get('version')!r}, and this streamgauge "
            f"reads format version {VERSION}: use the streamgauge that runs the stream"
        )
    if sent := definition.get("to"):
        raise ValueError(f"the stream sends its rows to {sent.get('topic')!r}, and has no table to query")
    try:
        keys = {name: _type(text) for name, text in definition["keys"]}
        aggregates = {
            name: replace(Aggregate(*(fields[part] for part in _PARTS)), item_kind=fields.get("item_kind"))
            for name, fields in definition["aggregates"].items()
        }
        return DescribedStream(
            source=FrameSource(pl.Schema(keys)),
            window=window_of(definition["window"]),
            delay_us=microseconds(definition["delay"]),
            max_ahead_us=definition["max_ahead"],
            keep_late=definition.get("keep_late", False),
            keys=tuple(keys),
            aggregates=aggregates,
            description=definition,
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"the description of the stream is damaged: {error!r}") from None


def _topics(source: Mapping[str, Any]) -> list[str]:
    parts = source.get("merged") or source.get("joined") or ()
    topic = source.get("topic", [])
    own = [topic] if isinstance(topic, str) else list(topic)
    return [*own, *(name for part in parts for name in _topics(part))]


_PLAIN: dict[str, Any] = {
    type_text(kind): kind
    for kind in (
        *(pl.Boolean, pl.String, pl.Binary, pl.Date, pl.Time, pl.Null, pl.Float32, pl.Float64),
        *(pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64, pl.Int128),
    )
}
_PARTS = ("aggregate", "column", "params", "answer", "inputs")
_WITH_PARTS = re.compile(r"(datetime|duration|decimal)\[(\w+)(?:, (.+))?\]")


def _type(text: str) -> Any:
    """Parse the type of a key that `type_text` wrote."""
    if text in _PLAIN:
        return _PLAIN[text]
    if text == "categorical" or text.startswith("enum["):
        return pl.String  # tables store them as strings
    match = _WITH_PARTS.fullmatch(text)
    if match is None:
        raise ValueError(f"a key is of the type {text!r}, which this version of streamgauge doesn't know")
    kind, one, other = match.groups()
    if kind == "datetime":
        return pl.Datetime(one, other)  # type: ignore[arg-type]
    if kind == "duration":
        return pl.Duration(one)  # type: ignore[arg-type]
    return pl.Decimal(int(one), int(other))
