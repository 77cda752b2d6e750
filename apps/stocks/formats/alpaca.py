"""Alpaca's websocket: trades (t), minute bars (b) and daily ones (d), of stocks and crypto.

Every event is by itself or in a list. Trades of crypto name the taker's side (``tks``), those of stocks
don't. A daily bar is sent again every minute, so days are read only if requested, by ``--set events=d``. Bars
that are corrected later (u), corrections (c) and cancellations (x) are filtered.
"""

from __future__ import annotations

from typing import Any

import polars as pl

from ....operators.definition.stream import Stream
from ...app import AppFormat, Feed, Settings
from .captured import captured, holds
from .frames import events
from .trades import as_trades, chosen, iso_time, number, text, whole

_FIELDS = ("T", "S", "i", "x", "p", "s", "t", "tks", "o", "h", "l", "c", "v")
_SPANS = {"b": 60, "d": 86_400}
_EVENTS = ("t", *_SPANS)
_KNOWN = {*_EVENTS, "q", "u", "c", "x", "s", "l", "o"}


def rows(feed: Feed, settings: Settings) -> Stream:
    """The trades and bars of a topic."""
    wanted = chosen(settings, "events", _EVENTS)
    element = {name: pl.element().struct.field(name) for name in _FIELDS}
    stream = events(feed, _FIELDS, _at(element, wanted))
    of = {name: pl.col(f"event_{name}") for name in _FIELDS}
    kind = text(of["T"])
    trade = ((kind == "t") & kind.is_in(wanted)).fill_null(False)
    bar = (kind.is_in(list(_SPANS)) & kind.is_in(wanted)).fill_null(False)
    at = _at(of, wanted)
    return as_trades(
        stream,
        # A day begins at midnight in New York.
        at=pl.when(kind == "d").then(at.dt.truncate("1d")).otherwise(at),
        symbol=text(of["S"]),
        kind=pl.when(trade).then(pl.lit("trades")).otherwise(pl.lit("bars")),
        price=pl.coalesce(number(of["p"], trade), number(of["c"], bar)),
        open=number(of["o"], bar),
        high=number(of["h"], bar),
        low=number(of["l"], bar),
        size=pl.coalesce(number(of["s"], trade), number(of["v"], bar, needed=False)),
        side=text(of["tks"]).replace_strict({"B": "buy", "S": "sell"}, default=None),
        venue=pl.when(trade).then(text(of["x"])),
        seq=whole(of["i"], trade),
        span=kind.replace_strict(_SPANS, default=0),
    )


def _at(of: dict[str, pl.Expr], wanted: list[str]) -> pl.Expr:
    return iso_time(pl.when(text(of["T"]).is_in(wanted)).then(of["t"]))


def _is(event: Any) -> bool:
    return isinstance(event, dict) and event.get("T") in _KNOWN and "S" in event


ALPACA = AppFormat(
    "alpaca",
    "Alpaca's websocket: trades and bars, of stocks and crypto",
    rows,
    lambda path, head: holds(head, _is),
    captured(lambda parsed: (parsed.get("S"), parsed.get("t")) if isinstance(parsed, dict) else (None, None)),
    {"events": "t,b"},
)
