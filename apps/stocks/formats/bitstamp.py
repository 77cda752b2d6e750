"""Bitstamp's websocket: the channels ``live_trades``; `type` is 0 if the taker bought, 1 if it sold."""

from __future__ import annotations

from typing import Any

import polars as pl

from ....operators.definition.stream import Stream
from ...app import AppFormat, Feed, Settings
from ..captured import captured, holds
from ..instruments.instrument_names import BITSTAMP as NAMES
from .listed import ListedFrames, listed_events
from .trades import ALL_DAY, as_trades, number, since_1970, text, whole

_FIELDS = ("id", "microtimestamp", "timestamp", "amount", "amount_str", "price", "price_str", "type")
_CHANNEL = "live_trades_"


def rows(feed: Feed, settings: Settings) -> Stream:
    """Read the trades of a topic."""
    frames = ListedFrames({"event": "event", "channel": "channel"}, "data", _FIELDS, "event", "trade")
    element = pl.element().struct
    stream = listed_events(feed, frames, _at(element.field("microtimestamp"), element.field("timestamp")))
    of = {name: pl.col(f"event_{name}") for name in _FIELDS}
    channel = text(pl.col("channel"))
    trade = (text(pl.col("event")) == "trade").fill_null(False) & channel.str.starts_with(_CHANNEL)
    return as_trades(
        stream,
        settings,
        NAMES,
        at=_at(of["microtimestamp"], of["timestamp"]),
        symbol=channel.str.strip_prefix(_CHANNEL),
        kind=pl.lit("trades"),
        price=number(pl.coalesce(of["price_str"], of["price"]), trade),
        size=number(pl.coalesce(of["amount_str"], of["amount"]), trade),
        side=text(of["type"]).replace_strict({"0": "buy", "1": "sell"}, default=None),
        venue=pl.lit("Bitstamp"),
        seq=whole(of["id"], trade),
        span=pl.lit(0),
    )


def _at(micro: pl.Expr, seconds: pl.Expr) -> pl.Expr:
    return since_1970(pl.coalesce(text(micro), text(seconds)).cast(pl.Int64, strict=False))


def _channel(event: Any) -> str:
    return str(event.get("channel", "")) if isinstance(event, dict) and "event" in event else ""


def _symbol_and_time(event: Any) -> tuple[Any, Any]:
    data = event.get("data") if isinstance(event, dict) else None
    at = data.get("microtimestamp") if isinstance(data, dict) else None
    return _channel(event).rpartition("_")[2] or None, at


BITSTAMP = AppFormat(
    "bitstamp",
    "Bitstamp's websocket: live trades",
    rows,
    lambda path, head: holds(
        head, lambda one: _channel(one).startswith((_CHANNEL, "order_book", "diff_order"))
    ),
    captured(_symbol_and_time),
    ALL_DAY,
)
