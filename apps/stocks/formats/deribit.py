"""Deribit's websocket: the channels ``trades``; `direction` is the taker's, `trade_seq` rises per instrument.

Amounts of coin-settled perpetuals and futures are in dollars, of options and linear contracts in coins.
"""

from __future__ import annotations

from typing import Any

import polars as pl

from ....operators.definition.stream import Stream
from ...app import AppFormat, Feed, Settings
from ..captured import captured, holds
from ..instruments.instrument_names import DERIBIT as NAMES
from .listed import ListedFrames, listed_events
from .trades import ALL_DAY, as_trades, number, text, unix_time, whole

_FIELDS = ("trade_seq", "timestamp", "price", "instrument_name", "direction", "amount")


def rows(feed: Feed, settings: Settings) -> Stream:
    """Read the trades of a topic."""
    frames = ListedFrames({"channel": "params.channel"}, "params.data", _FIELDS, "channel", r"trades\..+")
    stream = listed_events(feed, frames, unix_time(pl.element().struct.field("timestamp")))
    of = {name: pl.col(f"event_{name}") for name in _FIELDS}
    trade = of["instrument_name"].is_not_null()
    return as_trades(
        stream,
        settings,
        NAMES,
        negative=True,  # of combinations
        at=unix_time(of["timestamp"]),
        symbol=text(of["instrument_name"]),
        kind=pl.lit("trades"),
        price=number(of["price"], trade),
        size=number(of["amount"], trade),
        side=text(of["direction"]),
        venue=pl.lit("Deribit"),
        seq=whole(of["trade_seq"], trade),
        span=pl.lit(0),
    )


_METHODS = ("subscription", "public/", "private/")


def _params(event: Any) -> dict[str, Any]:
    ours = isinstance(event, dict) and str(event.get("method", "")).startswith(_METHODS)
    params = event.get("params") if ours else None
    return params if isinstance(params, dict) else {}


def _symbol_and_time(event: Any) -> tuple[Any, Any]:
    data = _params(event).get("data")
    first = data[0] if isinstance(data, list) and data else data
    if not isinstance(first, dict):
        return None, None
    return first.get("instrument_name"), first.get("timestamp")


DERIBIT = AppFormat(
    "deribit",
    "Deribit's websocket: trades of futures, options, spot",
    rows,
    lambda path, head: holds(head, lambda one: bool({"channel", "channels"} & _params(one).keys())),
    captured(_symbol_and_time),
    ALL_DAY,
)
