"""Coinbase Exchange's websocket: matches, with tickers, order books and subscriptions between them.

The ``side`` of a match is the maker's: a match with side ``sell`` was bought. A ticker repeats a match, with
the taker's side; a `last_match` was before the subscription. So only matches count by default;
``--set events=ticker`` is for feeds that have only tickers.
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
from .trades import ALL_DAY, as_trades, chosen, iso_time, number, text, whole

_FIELDS = ("type", "product_id", "price", "size", "last_size", "side", "time", "trade_id")
_EVENTS = ("match", "last_match", "ticker")
_OTHERS = ("subscriptions", "subscribe", "snapshot", "l2update", "heartbeat", "received", "open", "done")


def rows(feed: Feed, settings: Settings) -> Stream:
    """Read the trades of a topic."""
    events = chosen(settings, "events", _EVENTS)
    kind = text(pl.col("type"))
    trade = kind.is_in(events).fill_null(False)
    at = pl.when(trade).then(iso_time(pl.col("time")))
    stream = feed.stream(
        json({name: field(name, pl.Binary) for name in _FIELDS}), time=at, message={"arrived": "offset"}
    )
    other = {"buy": "sell", "sell": "buy"}
    side = text(pl.col("side"))
    return as_trades(
        stream,
        settings,
        names.COINBASE,
        at=at,
        symbol=pl.when(trade).then(text(pl.col("product_id"))),
        kind=pl.lit("trades"),
        price=number(pl.col("price"), trade),
        size=number(pl.when(kind == "ticker").then("last_size").otherwise("size"), trade),
        side=pl.when(kind == "ticker").then(side).otherwise(side.replace_strict(other, default=None)),
        venue=pl.lit("Coinbase"),
        seq=whole(pl.col("trade_id"), trade),
        span=pl.lit(0),
    )


def _is(event: Any) -> bool:
    if not isinstance(event, dict) or event.get("type") not in (*_EVENTS, *_OTHERS) or "channel" in event:
        return False
    # Other exchanges have events with the same names, but their products have a different field name.
    channels = [one for one in event.get("channels") or () if isinstance(one, dict)]
    listed = "product_ids" in event or any("product_ids" in one for one in channels)
    return listed or "-" in str(event.get("product_id"))


def _symbol_and_time(event: Any) -> tuple[Any, Any]:
    return (event.get("product_id"), event.get("time")) if isinstance(event, dict) else (None, None)


COINBASE = AppFormat(
    "coinbase",
    "Coinbase's websocket: matches, tickers, order books",
    rows,
    lambda path, head: holds(head, _is),
    captured(_symbol_and_time),
    {"events": "match", **ALL_DAY},
)
