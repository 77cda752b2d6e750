"""Polygon's websocket: trades (T), minute and second bars (AM, A), those of crypto (XT, XA), halts (LULD).

Every event is by itself or in a list. A trade is named by its id ``i``, which is unique for a ticker at an
exchange and its reporting facility (``trfi``), on a tape (``z``). ``q`` is the sequence number of a ticker's
events, which rises and has gaps; trades may share one, and a trade that is sent again may get another. The
exchange ``x`` is Polygon's number for it. A trade of crypto names the taker's side (c: 1 sold, 2 bought); of
stocks no feed says so. Official opens and closes, and corrected closes (conditions 16, 15 and 38), are
filtered: they repeat the auction's price, and nothing is traded. Of the events about limit up, limit down
those count that say that trading is halted (indicator 17) or goes on (18), as Polygon has them of stocks
listed at Nasdaq; price bands are filtered.
"""

from __future__ import annotations

from typing import Any

import polars as pl

from ....operators.definition.stream import Stream
from ...app import AppFormat, Feed, Settings
from ..captured import captured, holds
from ..instruments import instrument_names as names
from .frames import events
from .trades import as_trades, auction_of, chosen, number, text, unix_time, whole
from .us_tapes import by_numbers

_FIELDS = ("ev", "sym", "pair", "x", "p", "s", "t", "q", "i", "c", "o", "h", "l", "v", "T", "z", "trfi")
_HALTS = "LULD"
_HALTED, _RESUMED = r"\b17\b", r"\b18\b"
_TRADES, _SPANS = ("T", "XT"), {"A": 1, "AM": 60, "XA": 60, "XAS": 1}
_EVENTS = (*_TRADES, *_SPANS, _HALTS)
_OFFICIAL = r"\b(?:15|16|38)\b"
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
    stock = trade & (kind == "T")
    bar = (kind.is_in(list(_SPANS)) & kind.is_in(wanted)).fill_null(False)
    indicators = pl.when((kind == _HALTS) & (_HALTS in wanted)).then(of["i"].cast(pl.String, strict=False))
    halted, resumed = (indicators.str.contains(one).fill_null(False) for one in (_HALTED, _RESUMED))
    status = halted | resumed
    seq = pl.when(kind == "T").then(whole(of["q"], trade)).otherwise(whole(of["i"], trade))
    unpriced = by_numbers(conditions)
    return as_trades(
        stream,
        settings,
        names.POLYGON,
        identity=pl.when((kind == "T") & text(of["i"]).is_not_null()).then(
            pl.concat_str(*(text(of[name]) for name in ("i", "z", "trfi")), separator=" ", ignore_nulls=True)
        ),
        at=_at(of, wanted),
        symbol=pl.coalesce(text(of["sym"]), text(of["pair"]), pl.when(status).then(text(of["T"]))),
        kind=pl.when(trade)
        .then(pl.lit("trades"))
        .when(bar)
        .then(pl.lit("bars"))
        .when(status)
        .then(pl.lit("status")),
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
        span=pl.when(~status).then(kind.replace_strict(_SPANS, default=0)),
        auction=pl.when(stock).then(auction_of(conditions, _AUCTIONS)),
        unpriced=pl.when(stock).then(unpriced["unpriced"]),
        extremes=pl.when(stock).then(unpriced["extremes"]),
        halted=pl.when(status).then(halted.cast(pl.Float64)),
        reason=pl.when(status).then(
            pl.format("limit up, limit down: {} to {}", text(of["l"]), text(of["h"]))
        ),
    )


def _at(of: dict[str, pl.Expr], wanted: list[str]) -> pl.Expr:
    kind = text(of["ev"])
    trade = (kind.is_in(_TRADES) | (kind == _HALTS)) & kind.is_in(wanted)
    stamp = pl.when(trade).then(of["t"]).when(kind.is_in(list(_SPANS)) & kind.is_in(wanted)).then(of["s"])
    return unix_time(stamp)


def _event(event: Any) -> dict[str, Any]:
    return event if isinstance(event, dict) else {}


POLYGON = AppFormat(
    "polygon",
    "Polygon's websocket: trades and minute bars, of stocks and crypto; halts",
    rows,
    lambda path, head: holds(head, lambda parsed: isinstance(parsed, dict) and "ev" in parsed),
    captured(
        lambda parsed: (
            _event(parsed).get("sym") or _event(parsed).get("pair") or _event(parsed).get("T"),
            _event(parsed).get("t" if _event(parsed).get("ev") in (*_TRADES, _HALTS) else "s"),
        )
    ),
    {"events": "T,XT,AM,XA,LULD"},
)
