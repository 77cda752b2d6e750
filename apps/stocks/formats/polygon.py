"""Polygon's websocket: trades (T), minute and second bars (AM, A), and those of crypto (XT, XA).

Every event is by itself or in a list. ``q`` is the sequence number of a ticker's events, which rises and has
gaps; the exchange ``x`` is Polygon's number for it. A trade of crypto names the taker's side (c: 1 sold, 2
bought); of stocks no feed says so. Official opens and closes (conditions 16 and 15) are filtered: they repeat
the auction's price, and nothing is traded.
"""

from __future__ import annotations

from typing import Any

import polars as pl

from ....operators.definition.stream import Stream
from ...app import AppFormat, Feed, Settings
from ..instruments import instrument_names as names
from .captured import captured, holds
from .frames import events
from .trades import as_trades, auction_of, chosen, number, text, unix_time, whole

_FIELDS = ("ev", "sym", "pair", "x", "p", "s", "t", "q", "i", "c", "o", "h", "l", "v")
_TRADES, _SPANS = ("T", "XT"), {"A": 1, "AM": 60, "XA": 60, "XAS": 1}
_EVENTS = (*_TRADES, *_SPANS)
_OFFICIAL = r"\b(?:15|16)\b"
_AUCTIONS = (
    (r"\b(?:17|25)\b", "opening"),
    (r"\b(?:8|19)\b", "closing"),
    (r"\b(?:18|28)\b", "reopening"),
    (r"\b9\b", "crossing"),
)


def rows(feed: Feed, settings: Settings) -> Stream:
    """The trades and bars of a topic."""
    wanted = chosen(settings, "events", _EVENTS)
    element = {name: pl.element().struct.field(name) for name in _FIELDS}
    stream = events(feed, _FIELDS, _at(element, wanted))
    of = {name: pl.col(f"event_{name}") for name in _FIELDS}
    kind = text(of["ev"])
    conditions = of["c"].cast(pl.String, strict=False).fill_null("")
    official = (kind == "T").fill_null(False) & conditions.str.contains(_OFFICIAL)
    trade = (kind.is_in(_TRADES) & kind.is_in(wanted)).fill_null(False) & ~official
    bar = (kind.is_in(list(_SPANS)) & kind.is_in(wanted)).fill_null(False)
    seq = pl.when(kind == "T").then(whole(of["q"], trade)).otherwise(whole(of["i"], trade))
    return as_trades(
        stream,
        settings,
        names.POLYGON,
        at=_at(of, wanted),
        symbol=pl.coalesce(text(of["sym"]), text(of["pair"])),
        kind=pl.when(trade).then(pl.lit("trades")).when(bar).then(pl.lit("bars")),
        price=pl.coalesce(number(of["p"], trade), number(of["c"], bar)),
        open=number(of["o"], bar),
        high=number(of["h"], bar),
        low=number(of["l"], bar),
        size=pl.coalesce(number(of["s"], trade), number(of["v"], bar, needed=False)),
        side=pl.when(trade & (kind == "XT")).then(
            pl.when(conditions.str.contains("2"))
            .then(pl.lit("buy"))
            .when(conditions.str.contains("1"))
            .then(pl.lit("sell"))
        ),
        venue=pl.when(trade).then(text(of["x"])),
        seq=seq,
        span=kind.replace_strict(_SPANS, default=0),
        auction=pl.when(trade & (kind == "T")).then(auction_of(conditions, _AUCTIONS)),
    )


def _at(of: dict[str, pl.Expr], wanted: list[str]) -> pl.Expr:
    kind = text(of["ev"])
    trade = kind.is_in(_TRADES) & kind.is_in(wanted)
    stamp = pl.when(trade).then(of["t"]).when(kind.is_in(list(_SPANS)) & kind.is_in(wanted)).then(of["s"])
    return unix_time(stamp)


def _event(event: Any) -> dict[str, Any]:
    return event if isinstance(event, dict) else {}


POLYGON = AppFormat(
    "polygon",
    "Polygon's websocket: trades and minute bars, of stocks and crypto",
    rows,
    lambda path, head: holds(head, lambda parsed: isinstance(parsed, dict) and "ev" in parsed),
    captured(
        lambda parsed: (
            _event(parsed).get("sym") or _event(parsed).get("pair"),
            _event(parsed).get("t" if _event(parsed).get("ev") in _TRADES else "s"),
        )
    ),
    {"events": "T,XT,AM,XA"},
)
