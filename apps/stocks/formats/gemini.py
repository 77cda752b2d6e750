"""Gemini's websocket, version 2: trades between the updates of order books; `side` is the taker's.

The trades in a book's first update were before the subscription, and are filtered with it.
"""

from __future__ import annotations

from typing import Any

import polars as pl

from ....operators.definition.stream import Stream
from ....operators.formats.json.decoder import json
from ....operators.formats.json.fields import field
from ...app import AppFormat, Feed, Settings
from ..captured import captured, holds
from ..instruments.instrument_names import GEMINI as NAMES
from .trades import ALL_DAY, as_trades, number, since_1970, text, whole

_FIELDS = ("type", "symbol", "event_id", "tid", "timestamp", "price", "quantity", "side")
_TYPES = ("trade", "l2_updates")


def rows(feed: Feed, settings: Settings) -> Stream:
    """Read the trades of a topic."""
    trade = (text(pl.col("type")) == "trade").fill_null(False)
    at = since_1970(whole(pl.col("timestamp"), trade))
    decoder = json({name: field(name, pl.Binary) for name in _FIELDS})
    stream = feed.stream(decoder, time=at, message={"arrived": "offset"})
    return as_trades(
        stream,
        settings,
        NAMES,
        at=at,
        symbol=pl.when(trade).then(text(pl.col("symbol"))),
        kind=pl.lit("trades"),
        price=number(pl.col("price"), trade),
        size=number(pl.col("quantity"), trade),
        side=text(pl.col("side")),
        venue=pl.lit("Gemini"),
        seq=pl.coalesce(whole(pl.col("tid"), trade), whole(pl.col("event_id"), trade)),
        span=pl.lit(0),
    )


def _is(event: Any) -> bool:
    if not isinstance(event, dict) or event.get("type") not in _TYPES or "symbol" not in event:
        return False
    return bool({"event_id", "tid", "changes"} & event.keys())


def _symbol_and_time(event: Any) -> tuple[Any, Any]:
    return (event.get("symbol"), event.get("timestamp")) if isinstance(event, dict) else (None, None)


GEMINI = AppFormat(
    "gemini",
    "Gemini's websocket: trades",
    rows,
    lambda path, head: holds(head, _is),
    captured(_symbol_and_time),
    ALL_DAY,
)
