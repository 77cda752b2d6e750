"""Websockets of venues, each described by a specification: where frames hold trades, and their fields."""

from __future__ import annotations

import dataclasses
import hashlib
import json as python_json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl
import pyarrow as pa

from ....operators.definition.stream import Stream
from ....operators.formats.decode import Decoded
from ....operators.formats.messages import Messages
from ....operators.formats.per_message import Misread, one_by_one
from ...app import AppFormat, Feed, Settings
from ..captured import captured, holds, microseconds_of, unpacked
from ..instruments.instrument_names import NamePattern
from .trades import ALL_DAY, as_trades

_TAKER = {
    **dict.fromkeys(("buy", "b", "bid", "taker"), "buy"),
    **dict.fromkeys(("sell", "s", "a", "ask", "maker"), "sell"),
}
"""The venues' words for the aggressor's side, in lower case; Delta sends the buyer's role."""
_OTHER = {"buy": "sell", "sell": "buy"}
_TRADE = pa.struct(
    {
        "at": pa.timestamp("us", "UTC"),
        "symbol": pa.string(),
        "price": pa.float64(),
        "size": pa.float64(),
        "side": pa.string(),
        "seq": pa.int64(),
    }
)


@dataclass(frozen=True)
class Venue:
    """How a venue's websocket reports trades.

    A path leads through objects by names and through lists by numbers, between dots; ``*`` is every element.
    Of several paths between bars the first that a trade has is used; one that begins with ``^`` begins at the
    frame, not at the trade.

    name, title
        The format's, and the venue's in answers.
    signs
        Mappings of paths to regular expressions: a frame in which all of a mapping match as a whole is this
        venue's, and no other's.
    wanted
        Such a mapping for frames with trades. Most venues first send what was traded before the subscription:
        these frames are not wanted.
    trades
        The path of trades in a frame; empty if the frame is a trade.
    symbol, price, size, side, at, number
        Paths. Without a number every trade counts. If `symbol_in` is a regular expression, its first group
        is the symbol.
    maker
        Whether the side is the maker's.
    signed
        Whether a size below 0 was sold.
    rising
        Whether numbers rise; otherwise they only name trades.
    names
        Symbols that say what a contract is worth; empty if only the venue's own file does.
    """

    name: str
    title: str
    signs: Sequence[Mapping[str, str]]
    wanted: Mapping[str, str]
    trades: str
    symbol: str
    price: str
    size: str
    side: str
    at: str
    number: str = ""
    symbol_in: str = "(.+)"
    maker: bool = False
    signed: bool = False
    rising: bool = True
    names: Sequence[NamePattern] = ()

    def trades_of(self, frame: Any) -> list[dict[str, Any]]:
        """Return the trades of a frame, in the common columns. Raises `ValueError` for an unreadable one.

        >>> venue = Venue("x", "X", (), {"c": "trade"}, "d.*", "s", "p", "q", "side", "t", "id")
        >>> trade = {"s": "AB", "p": "1.5", "q": 2, "side": "BUY", "t": 1_700_000_000_123, "id": 7}
        >>> venue.trades_of({"c": "trade", "d": [trade]})[0]["price"], venue.trades_of({"c": "book"})
        (1.5, [])
        """
        return [
            self._trade(part, trade)
            for part in frames_in(frame)
            if _matches(part, self.wanted)
            for trade in _every(part, self.trades.split(".") if self.trades else [])
        ]

    def sent(self, frame: Any) -> bool:
        """Whether a frame is from this venue."""
        return any(_matches(part, sign) for part in frames_in(frame) for sign in self.signs)

    def _trade(self, frame: Any, trade: Any) -> dict[str, Any]:
        if not isinstance(trade, dict | list):
            raise ValueError(f'"{self.trades}" is {trade!r}, not a trade')

        def value(paths: str) -> Any:
            return _first(paths, trade, frame)

        symbol = re.fullmatch(self.symbol_in, str(value(self.symbol) or ""))
        if symbol is None:
            raise ValueError(f'"{self.symbol}" is {value(self.symbol)!r}, not a symbol')
        size = _number(self.size, value(self.size))
        side = value(self.side) if self.side else None
        taker = _TAKER.get(str(side).lower())
        if self.signed:
            taker = "sell" if size < 0 else "buy"
        return {
            "at": _time_us(self.at, value(self.at)),
            "symbol": symbol[1],
            "price": _number(self.price, value(self.price)),
            "size": abs(size) if self.signed else size,
            "side": _OTHER.get(taker or "") if self.maker else taker,
            "seq": _name(value(self.number), self.rising) if self.number else None,
        }


@dataclass(frozen=True)
class VenueFrames:
    """Decodes a venue's frames, plain or compressed with gzip, into lists of trades.

    Frames without trades become a row with an empty list.
    """

    venue: Venue

    @property
    def schema(self) -> Mapping[str, Any]:
        """See `Decoder`."""
        return dict(_frame(_built([])).schema)

    def definition(self) -> dict[str, Any]:
        """The specification, for the stream's definition."""
        venue = dataclasses.asdict(self.venue)
        return {name: venue[name] for name in venue if name not in ("names", "signs", "title")}

    def decode(self, messages: Messages) -> Decoded:
        """See `Decoder`."""
        return one_by_one(messages, self._trades, _built, _frame)

    def _trades(self, data: memoryview) -> list[dict[str, Any]]:
        try:
            return self.venue.trades_of(_parsed(bytes(data)))
        except ValueError as error:
            raise Misread(str(error)) from None


def _built(trades: list[Any]) -> pa.Array:
    return pa.array(trades, pa.list_(_TRADE))


def _frame(trades: pa.Array) -> pl.DataFrame:
    return pl.DataFrame({"trades": pl.from_arrow(trades)})


def venue_format(venue: Venue) -> AppFormat:
    """The format of a venue's websocket."""

    def rows(feed: Feed, settings: Settings) -> Stream:
        at = pl.col("trades").list.eval(pl.element().struct.field("at")).list.first()
        stream = feed.stream(VenueFrames(venue), time=at, message={"arrived": "offset"})
        place = pl.int_ranges(0, pl.col("trades").list.len())
        of = {field.name: pl.col("trades").struct.field(field.name) for field in _TRADE}
        exploded = (
            stream.with_columns(place=place).explode("trades", "place").select("arrived", "place", **of)
        )
        return as_trades(
            exploded,
            settings,
            venue.names or (_UNKNOWN,),
            at=pl.col("at"),
            symbol=pl.col("symbol"),
            kind=pl.when(pl.col("symbol").is_not_null()).then(pl.lit("trades")),
            price=pl.col("price"),
            size=pl.col("size"),
            side=pl.col("side"),
            venue=pl.lit(venue.title),
            seq=pl.col("seq"),
            span=pl.lit(0),
        )

    def symbol_and_time(event: Any) -> tuple[Any, Any]:
        try:
            trades = venue.trades_of(event)
        except ValueError:
            return None, None
        return (trades[0]["symbol"], trades[0]["at"]) if trades else (None, None)

    return AppFormat(
        venue.name,
        f"{venue.title}'s websocket: trades",
        rows,
        lambda path, head: holds(head, venue.sent, apart=False),
        captured(symbol_and_time, apart=False),
        ALL_DAY,
    )


_UNKNOWN = NamePattern(r"[^\s\S]")
"""A pattern that matches no symbol."""


def frames_in(parsed: Any) -> list[Any]:
    """Return the frames of a message: the message itself, or those in a list of objects."""
    return parsed if isinstance(parsed, list) and all(isinstance(one, dict) for one in parsed) else [parsed]


def _parsed(value: bytes) -> Any:
    try:
        return python_json.loads(unpacked(value))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"not JSON: {error}") from None


def _matches(frame: Any, conditions: Mapping[str, str]) -> bool:
    def matches(paths: str, pattern: str) -> bool:
        value = _first(paths, frame, frame)
        return value is not None and re.fullmatch(pattern, str(value), re.DOTALL) is not None

    return bool(conditions) and all(matches(paths, pattern) for paths, pattern in conditions.items())


def _every(value: Any, steps: Sequence[str]) -> Iterator[Any]:
    """Return the values at a path; an object in place of a list is its only element."""
    if not steps:
        yield value
    elif steps[0] == "*":
        for one in value if isinstance(value, list) else [] if value is None else [value]:
            yield from _every(one, steps[1:])
    else:
        yield from _every(_step(value, steps[0]), steps[1:])


def _first(paths: str, part: Any, frame: Any) -> Any:
    """Return the first value that a part of a frame, or the frame itself, has at one of the paths."""
    for path in paths.split("|"):
        value = frame if path.startswith("^") else part
        for step in path.removeprefix("^").split("."):
            value = _step(value, step)
        if value is not None:
            return value
    return None


def _step(value: Any, step: str) -> Any:
    if isinstance(value, dict):
        return value.get(step)
    if isinstance(value, list) and step.isdecimal() and int(step) < len(value):
        return value[int(step)]
    return None


def _number(path: str, value: Any) -> float:
    try:
        number = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(f'"{path}" is {value!r}, not a number')
    return number


def _time_us(path: str, value: Any) -> int:
    us = microseconds_of(value)
    if us is None:
        raise ValueError(f'"{path}" is {value!r}, not a time')
    return us


def _name(value: Any, rising: bool) -> int | None:
    """Return a trade's number; anything else, or numbers that don't rise, become 60 bits of a hash, below
    0."""
    if value is None:
        return None
    text = str(value)
    if rising and text.isdecimal() and int(text) < 1 << 63:
        return int(text)
    return -(int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big") >> 4) - 1
