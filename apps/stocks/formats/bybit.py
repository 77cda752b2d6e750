"""Bybit's websocket: ``publicTrade`` of version 5, and ``trade`` of earlier versions.

`side` is the taker's. Sizes of inverse contracts are in dollars, all others in coins. Ids are numbers or
UUIDs, which are not in order. Order books, tickers and subscriptions are filtered.
"""

from __future__ import annotations

from typing import Any

import polars as pl

from ....operators.definition.stream import Stream
from ...app import AppFormat, Feed, Settings
from ..captured import captured, holds
from ..instruments.instrument_names import BYBIT as NAMES
from .listed import ListedFrames, listed_events
from .trades import ALL_DAY, as_trades, name_number, number, since_1970, text

_FIELDS = ("T", "s", "S", "v", "p", "i", "trade_time_ms", "symbol", "side", "size", "price", "trade_id")


def rows(feed: Feed, settings: Settings) -> Stream:
    """Read the trades of a topic."""
    frames = ListedFrames({"topic": "topic"}, "data", _FIELDS, "topic", r"(?:publicTrade|trade)\..+")
    element = pl.element().struct
    stream = listed_events(feed, frames, _at(element.field("T"), element.field("trade_time_ms")))
    of = {name: pl.col(f"event_{name}") for name in _FIELDS}
    symbol = pl.coalesce(text(of["s"]), text(of["symbol"]))
    trade = symbol.is_not_null()
    return as_trades(
        stream,
        settings,
        NAMES,
        at=_at(of["T"], of["trade_time_ms"]),
        symbol=symbol,
        kind=pl.lit("trades"),
        price=number(pl.coalesce(of["p"], of["price"]), trade),
        size=number(pl.coalesce(of["v"], of["size"]), trade),
        side=pl.coalesce(text(of["S"]), text(of["side"])).str.to_lowercase(),
        venue=pl.lit("Bybit"),
        seq=name_number(pl.coalesce(of["i"], of["trade_id"]), trade),
        span=pl.lit(0),
    )


def _at(now: pl.Expr, before: pl.Expr) -> pl.Expr:
    return since_1970(pl.coalesce(text(now), text(before)).cast(pl.Int64, strict=False))


def _topic(event: Any) -> str:
    return str(event.get("topic", "")) if isinstance(event, dict) else ""


def _symbol_and_time(event: Any) -> tuple[Any, Any]:
    kind, _, symbol = _topic(event).rpartition(".")
    data = event.get("data") if kind else None
    first = data[0] if isinstance(data, list) and data and isinstance(data[0], dict) else {}
    return symbol or None, first.get("T") or first.get("trade_time_ms")


BYBIT = AppFormat(
    "bybit",
    "Bybit's websocket: trades of spot, linear and inverse contracts",
    rows,
    lambda path, head: holds(head, lambda one: _topic(one).startswith(("publicTrade.", "trade."))),
    captured(_symbol_and_time),
    ALL_DAY,
)
