"""A stream known only from its description, as a table topic holds it.

It can be merged and asked like the stream that was described, which it has the fingerprint of. It can't be
run: of the source only the keys are known, and expressions are words.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from .aggregate import Aggregate
from .description import VERSION
from .durations import microseconds
from .sources import FrameSource
from .stream import Stream
from .text import type_text
from .windows import ByCount, Hopping, Session, Sliding, Tumbling, Window


@dataclass(frozen=True, eq=False)
class ToldStream(Stream):
    """A stream as `Stream.definition` describes it, read back by `told_stream`."""

    told: Mapping[str, Any] = field(default_factory=dict)

    def definition(self) -> dict[str, Any]:
        """The description that it was read from."""
        return dict(self.told)

    @property
    def closing_delay_us(self) -> int:
        """As of the stream that was described."""
        source = self.told.get("source") or {}
        if self.window is None or source.get("how") not in ("left", "outer"):
            return self.delay_us
        return self.delay_us + microseconds(source["within"]) + self.window.last_end(0)


def told_stream(definition: Mapping[str, Any]) -> ToldStream:
    """The stream of a description. Raises `ValueError` if it isn't one that this version can read.

    >>> import polars as pl
    >>> from .aggregates import count
    >>> rows = Stream.from_batches({"lang": pl.String, "at": pl.Datetime("us")}, time="at")
    >>> posts = rows.group_by("lang").tumbling("1m").agg(posts=count())
    >>> told_stream(posts.definition()).fingerprint() == posts.fingerprint()
    True
    """
    if definition.get("version") != VERSION:
        raise ValueError(
            f"the stream is described in form {definition.get('version')!r}, and this version of streamgauge "
            f"reads form {VERSION}: use the version that runs the stream"
        )
    if sent := definition.get("to"):
        raise ValueError(
            f"the stream sends its rows on to {sent.get('topic')!r}, and has no table to be asked"
        )
    try:
        keys = {name: _type(text) for name, text in definition["keys"]}
        aggregates = {
            name: Aggregate(told["aggregate"], told["column"], told["params"], told["answer"], told["inputs"])
            for name, told in definition["aggregates"].items()
        }
        return ToldStream(
            source=FrameSource(pl.Schema(keys)),
            window=_window(definition["window"]),
            delay_us=microseconds(definition["delay"]),
            max_ahead_us=definition["max_ahead"],
            keys=tuple(keys),
            aggregates=aggregates,
            told=definition,
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"the description of the stream is damaged: {error!r}") from None


def _window(told: Mapping[str, Any]) -> Window:
    kind = told["window"]
    if kind == "tumbling":
        return Tumbling.every(told["size"])
    if kind == "hopping":
        return Hopping.of(told["size"], told["every"])
    if kind == "sliding":
        return Sliding.of(told["size"], told["step"])
    if kind == "session":
        return Session.of(told["gap"])
    if kind == "count":
        return ByCount.read(told["size"])
    raise ValueError(f"the stream has windows that this version of streamgauge doesn't know: {dict(told)}")


_PLAIN: dict[str, Any] = {
    type_text(kind): kind
    for kind in (
        *(pl.Boolean, pl.String, pl.Binary, pl.Date, pl.Time, pl.Null, pl.Float32, pl.Float64),
        *(pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64, pl.Int128),
    )
}
_WITH_PARTS = re.compile(r"(datetime|duration|decimal)\[(\w+)(?:, (.+))?\]")


def _type(text: str) -> Any:
    """The type of a key that `type_text` wrote."""
    if text in _PLAIN:
        return _PLAIN[text]
    if text == "categorical" or text.startswith("enum["):
        return pl.String  # as which they are kept in tables
    found = _WITH_PARTS.fullmatch(text)
    if found is None:
        raise ValueError(f"a key is of the type {text!r}, which this version of streamgauge doesn't know")
    kind, one, other = found.groups()
    if kind == "datetime":
        return pl.Datetime(one, other)  # type: ignore[arg-type]
    if kind == "duration":
        return pl.Duration(one)  # type: ignore[arg-type]
    return pl.Decimal(int(one), int(other))
