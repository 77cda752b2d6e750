"""Kraken's websockets: spot in versions 1 (lists) and 2 (objects), and futures.

Sides are the taker's. Trades of version 1 have no id; ids of futures are UUIDs, which are not in order. Sizes
of futures are in dollars for inverse contracts (``PI_``, ``FI_``), in coins for others. Snapshots hold trades
from before the subscription, and are filtered. So are order books, tickers and all other events.
"""

from __future__ import annotations

import json as python_json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import polars as pl

from ....operators.definition.stream import Stream
from ....operators.formats.decode import Decoded
from ....operators.formats.messages import Messages
from ...app import AppFormat, Feed, Settings
from ..captured import captured, holds
from ..instruments.instrument_names import KRAKEN as NAMES
from .listed import ListedFrames, listed_events
from .trades import ALL_DAY, TIME, as_trades, iso_time, name_number, number, text, unix_time

_FIELDS = (
    *("symbol", "side", "price", "qty", "trade_id", "timestamp"),
    *("product_id", "uid", "time", "seconds"),
)
_LIST_PARTS, _TRADE_PARTS = 4, 4
_SNAPSHOT = re.compile(rb'"type"\s*:\s*"snapshot"')
_FUTURES = (b'"feed":"trade"', b'"feed": "trade"')


@dataclass(frozen=True)
class KrakenFrames:
    """Decodes all three kinds of frames into the form of version 2.

    >>> frame = b'[337,[["5541.2","0.15","1534614057.321597","s","l",""]],"trade","XBT/USD"]'
    >>> KrakenFrames().decode(Messages.of([frame])).frame["events"][0].to_list()[0]["price"]
    b'"5541.2"'
    """

    fields: ClassVar[tuple[str, ...]] = _FIELDS
    head: ClassVar[Mapping[str, str]] = {"channel": "channel"}

    @cached_property
    def _frames(self) -> ListedFrames:
        return ListedFrames(self.head, "data", self.fields, "channel", "trade")

    @property
    def schema(self) -> Mapping[str, Any]:
        """See `Decoder`."""
        return self._frames.schema

    def decode(self, messages: Messages) -> Decoded:
        """See `Decoder`."""
        values = [messages.value_at(row) for row in range(len(messages))]
        return self._frames.decode(Messages.of([None if one is None else _as_object(one) for one in values]))


def _as_object(frame: bytes) -> bytes:
    if frame.lstrip()[:1] == b"[":
        return _from_list(frame)
    if any(mark in frame for mark in _FUTURES) and b'"trade_snapshot"' not in frame:
        return b'{"channel":"trade","data":[' + frame + b"]}"
    return b"{}" if _SNAPSHOT.search(frame) else frame


def _from_list(frame: bytes) -> bytes:
    """Convert a frame of version 1, ``[channel, [[price, volume, time, side, …], …], "trade", pair]``."""
    try:
        parsed = python_json.loads(frame)
    except ValueError:
        return frame
    if len(parsed) != _LIST_PARTS or parsed[2] != "trade":
        # Order books and the like become an object without a channel.
        return b"{}" if len(parsed) >= _LIST_PARTS and isinstance(parsed[-2], str) else frame
    listed = parsed[1] if isinstance(parsed[1], list) else [parsed[1]]
    events = [
        {"symbol": parsed[3], "price": one[0], "qty": one[1], "seconds": one[2], "side": one[3]}
        if isinstance(one, list) and len(one) >= _TRADE_PARTS
        else one
        for one in listed
    ]
    return python_json.dumps({"channel": "trade", "data": events}).encode()


def rows(feed: Feed, settings: Settings) -> Stream:
    """Read the trades of a topic."""
    stream = listed_events(
        feed, KrakenFrames(), _at({name: pl.element().struct.field(name) for name in _FIELDS})
    )
    of = {name: pl.col(f"event_{name}") for name in _FIELDS}
    symbol = pl.coalesce(text(of["symbol"]), text(of["product_id"]))
    trade = symbol.is_not_null()
    return as_trades(
        stream,
        settings,
        NAMES,
        at=_at(of),
        symbol=symbol,
        kind=pl.lit("trades"),
        price=number(of["price"], trade),
        size=number(of["qty"], trade),
        side=text(of["side"]).replace({"b": "buy", "s": "sell"}),
        venue=pl.lit("Kraken"),
        seq=name_number(pl.coalesce(of["trade_id"], of["uid"]), trade),
        span=pl.lit(0),
    )


def _at(of: Mapping[str, pl.Expr]) -> pl.Expr:
    us = (text(of["seconds"]).cast(pl.Float64, strict=False) * 1e6).round().cast(pl.Int64).cast(TIME)
    ms = unix_time(of["time"])
    return pl.coalesce(iso_time(of["timestamp"]), ms, us)


def _is(event: Any) -> bool:
    if isinstance(event, list):
        return len(event) >= _LIST_PARTS and isinstance(event[-2], str) and "/" in str(event[-1])
    if not isinstance(event, dict):
        return False
    if event.get("event") in ("systemStatus", "subscriptionStatus"):
        return True
    futures = "feed" in event and ("product_id" in event or "product_ids" in event)
    data = event.get("data")
    first = data[0] if isinstance(data, list) and data and isinstance(data[0], dict) else {}
    # Other exchanges have a channel of this name, whose trades name a pair or an instrument.
    trade = event.get("channel") == "trade" and "/" in str(first.get("symbol"))
    return futures or trade or (event.get("channel") == "status" and "api_version" in first)


def _symbol_and_time(event: Any) -> tuple[Any, Any]:
    if isinstance(event, list):
        return (event[-1], None) if _is(event) else (None, None)
    if not isinstance(event, dict):
        return None, None
    data = event.get("data")
    first = data[0] if isinstance(data, list) and data and isinstance(data[0], dict) else event
    return first.get("symbol") or first.get("product_id"), first.get("timestamp") or first.get("time")


KRAKEN = AppFormat(
    "kraken",
    "Kraken's websockets: trades of spot (versions 1 and 2) and futures",
    rows,
    lambda path, head: holds(head, _is, apart=False),
    captured(_symbol_and_time, apart=False),
    ALL_DAY,
)
