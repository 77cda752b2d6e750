"""Binance's trade streams, ``@trade`` and ``@aggTrade``, plain or in the envelopes of combined streams.

``m`` is whether the buyer is the maker: then the seller was the taker, and the trade is a sale. Order books,
tickers and candles of the same stream are filtered; a candle is sent again with every trade, and adds
nothing.
"""

from __future__ import annotations

from typing import Any

import polars as pl

from ....operators.definition.stream import Stream
from ....operators.formats.json.decoder import json
from ....operators.formats.json.fields import field
from ...app import AppFormat, Feed, Settings
from ..captured import captured, holds
from ..instruments import instrument_names as names
from .trades import ALL_DAY, as_trades, chosen, number, since_1970, text, whole

_FIELDS = ("e", "s", "t", "a", "p", "q", "T", "m")
_EVENTS = ("trade", "aggTrade")


def rows(feed: Feed, settings: Settings) -> Stream:
    """Read the trades of a topic."""
    events = chosen(settings, "events", _EVENTS)
    # A letter names a number in one event and a list in another: all are read as raw JSON.
    alone = {f"alone_{name}": field(name, pl.Binary) for name in _FIELDS}
    enveloped = {f"data_{name}": field(f"data.{name}", pl.Binary) for name in _FIELDS}
    of = {name: pl.coalesce(f"data_{name}", f"alone_{name}") for name in _FIELDS}
    trade = text(of["e"]).is_in(events).fill_null(False)
    at = since_1970(whole(of["T"], trade))
    stream = feed.stream(json({**alone, **enveloped}), time=at, message={"arrived": "offset"})
    maker = text(of["m"])
    return as_trades(
        stream,
        settings,
        names.BINANCE,
        at=at,
        symbol=pl.when(trade).then(text(of["s"])),
        kind=pl.lit("trades"),
        price=number(of["p"], trade),
        size=number(of["q"], trade),
        side=pl.when(maker == "true").then(pl.lit("sell")).when(maker == "false").then(pl.lit("buy")),
        venue=pl.lit("Binance"),
        seq=pl.when(text(of["e"]) == "trade").then(whole(of["t"], trade)).otherwise(whole(of["a"], trade)),
        span=pl.lit(0),
    )


def _event(event: Any) -> dict[str, Any]:
    inner = event.get("data") if isinstance(event, dict) else None
    one = inner if isinstance(inner, dict) else event
    return one if isinstance(one, dict) else {}


def _is(event: Any) -> bool:
    one = _event(event)
    enveloped = isinstance(event, dict) and "@" in str(event.get("stream", "")) and "data" in event
    return enveloped or (one.get("e") in _EVENTS and "s" in one)


BINANCE = AppFormat(
    "binance",
    "Binance's websocket: trades and aggTrades, combined streams or not",
    rows,
    lambda path, head: holds(head, _is),
    captured(lambda parsed: (_event(parsed).get("s"), _event(parsed).get("T") or _event(parsed).get("E"))),
    {"events": "trade,aggTrade", **ALL_DAY},
)
