"""OKX's websocket, version 5: the channels ``trades`` and ``trades-all`` of all instruments.

`side` is the taker's. Except for spot, sizes are in contracts, whose size is only in the exchange's file
(``/api/v5/public/instruments``). Other channels and subscriptions are filtered.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import polars as pl

from ....operators.definition.stream import Stream
from ...app import AppFormat, Feed, Settings
from ..captured import captured, holds
from ..instruments.instrument_names import OKX as NAMES
from .listed import ListedFrames, listed_events
from .trades import ALL_DAY, as_trades, chosen, number, text, unix_time, whole

_FIELDS = ("instId", "tradeId", "px", "sz", "side", "ts")
_EVENTS = ("trades", "trades-all")


def rows(feed: Feed, settings: Settings) -> Stream:
    """Read the trades of a topic."""
    channels = "|".join(map(re.escape, chosen(settings, "events", _EVENTS)))
    frames = ListedFrames({"channel": "arg.channel"}, "data", _FIELDS, "channel", channels)
    stream = listed_events(feed, frames, unix_time(pl.element().struct.field("ts")))
    of = {name: pl.col(f"event_{name}") for name in _FIELDS}
    trade = of["instId"].is_not_null()
    return as_trades(
        stream,
        settings,
        NAMES,
        at=unix_time(of["ts"]),
        symbol=text(of["instId"]),
        kind=pl.lit("trades"),
        price=number(of["px"], trade),
        size=number(of["sz"], trade),
        side=text(of["side"]),
        venue=pl.lit("OKX"),
        seq=whole(of["tradeId"], trade),
        span=pl.lit(0),
    )


def _symbol_and_time(event: Any) -> tuple[Any, Any]:
    topic = event.get("arg") if isinstance(event, dict) else None
    data = event.get("data") if isinstance(topic, dict) else None
    first = data[0] if isinstance(data, list) and data and isinstance(data[0], dict) else {}
    return (topic.get("instId") if isinstance(topic, dict) else None, first.get("ts"))


def _is(event: Any) -> bool:
    topic = event.get("arg") if isinstance(event, dict) else None
    if not isinstance(topic, dict) or "channel" not in topic:
        return False
    # Bitget's frames differ only in the names of instruments, which have no hyphen there.
    return "-" in str(topic.get("instId", "-")) and ("data" in event or "event" in event)


def _recognises(path: Path, head: bytes) -> bool:
    # Okcoin's frames look the same, but its trades are not OKX's.
    return b"okcoin.com" not in head.split(b"\n", 1)[0] and holds(head, _is)


OKX = AppFormat(
    "okx",
    "OKX's websocket: trades of spot, swaps, futures, options",
    rows,
    _recognises,
    captured(_symbol_and_time),
    {"events": "trades,trades-all", **ALL_DAY},
)
