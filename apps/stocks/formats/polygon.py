"""Polygon's websocket: trades (T), minute and second bars (AM, A), those of crypto (XT, XA), halts (LULD).

Events come alone or in a list. A trade is identified by its id ``i``, which is unique for a ticker at an
exchange and its reporting facility (``trfi``), on a tape (``z``). ``q`` is the sequence number of a ticker's
events, which rises with gaps; trades may share one, and a trade that is sent again may get another. The
exchange ``x`` is Polygon's number for it. Crypto trades name the taker's side (c: 1 sold, 2 bought); no feed
does so for stocks. Official opens and closes, and corrected closes (conditions 16, 15 and 38), are filtered:
they repeat the auction's price, and nothing is traded. Of the limit up, limit down events, only those that
report a halt (indicator 17) or a resumption (18) of trading count, which Polygon sends for stocks listed at
Nasdaq; price bands are filtered. A trade with a correction indicator ``e`` was sent again: 7, 8, 10 and 11
cancel the trade with its id, 12 also reports what was traded instead, and 1 marks the trade that a 12
replaces.
"""

from __future__ import annotations

from typing import Any

import polars as pl

from ....operators.definition.stream import Stream
from ...app import AppFormat, Feed, Settings
from ..captured import captured, holds
from ..instruments import instrument_names as names
from .frames import events
from .trades import as_trades, auction_of, chosen, halves, number, text, unix_time, whole
from .us_tapes import CORRECTED, by_numbers

_FIELDS = ("ev", "sym", "pair", "x", "p", "s", "t", "q", "i", "c", "o", "h", "l", "v", "T", "z", "trfi", "e")
_HALTS = "LULD"
_HALTED, _RESUMED = r"\b17\b", r"\b18\b"
_TRADES, _SPANS = ("T", "XT"), {"A": 1, "AM": 60, "XA": 60, "XAS": 1}
_EVENTS = (*_TRADES, *_SPANS, _HALTS)
_BUSTED, _CORRECTED = (1, 7, 8, 10, 11, 12), 12
_OFFICIAL = r"\b(?:15|16|38)\b"
_AUCTIONS = (
    (r"\b(?:17|25)\b", "opening"),
    (r"\b(?:8|19)\b", "closing"),
    (r"\b(?:18|28)\b", "reopening"),
    (r"\b9\b", "crossing"),
)


def rows(feed: Feed, settings: Settings) -> Stream:
    """Read the trades and bars of a topic."""
    wanted = chosen(settings, "events", _EVENTS)
    element = {name: pl.element().struct.field(name) for name in _FIELDS}
    of = {name: pl.col(f"event_{name}") for name in _FIELDS}
    kind = text(of["ev"])
    correction = whole(of["e"], (kind == "T") & ("T" in wanted))
    stream = halves(events(feed, _FIELDS, _at(element, wanted)), correction == _CORRECTED)
    corrects = correction.is_in(_BUSTED).fill_null(False)
    busted = corrects & (pl.col("half") == 0)
    corrected = corrects & (pl.col("half") == 1)
    conditions = of["c"].cast(pl.String, strict=False).fill_null("")
    official = (kind == "T").fill_null(False) & conditions.str.contains(_OFFICIAL)
    trade = (kind.is_in(_TRADES) & kind.is_in(wanted)).fill_null(False) & ~official & ~corrects
    stock = trade & (kind == "T")
    bar = (kind.is_in(list(_SPANS)) & kind.is_in(wanted)).fill_null(False)
    indicators = pl.when((kind == _HALTS) & (_HALTS in wanted)).then(of["i"].cast(pl.String, strict=False))
    halted, resumed = (indicators.str.contains(one).fill_null(False) for one in (_HALTED, _RESUMED))
    status = halted | resumed
    seq = pl.when(kind == "T").then(whole(of["q"], trade | corrects)).otherwise(whole(of["i"], trade))
    unpriced = by_numbers(conditions)
    return as_trades(
        stream,
        settings,
        names.POLYGON,
        identity=pl.when((kind == "T") & text(of["i"]).is_not_null()).then(
            pl.concat_str(
                *(text(of[name]) for name in ("i", "z", "trfi")),
                # The report that replaces a trade has the same id.
                pl.when(corrected).then(pl.lit(CORRECTED)),
                separator=" ",
                ignore_nulls=True,
            )
        ),
        at=_at(of, wanted),
        symbol=pl.coalesce(text(of["sym"]), text(of["pair"]), pl.when(status).then(text(of["T"]))),
        kind=pl.when(trade)
        .then(pl.lit("trades"))
        .when(bar)
        .then(pl.lit("bars"))
        .when(status)
        .then(pl.lit("status"))
        .when(corrects)
        .then(pl.lit("corrections")),
        price=pl.coalesce(number(of["p"], trade | corrected), number(of["c"], bar)),
        open=number(of["o"], bar),
        high=number(of["h"], bar),
        low=number(of["l"], bar),
        size=pl.coalesce(number(of["s"], trade | corrected), number(of["v"], bar, needed=False)),
        side=pl.when(trade & (kind == "XT")).then(
            pl.when(conditions.str.contains("2"))
            .then(pl.lit("buy"))
            .when(conditions.str.contains("1"))
            .then(pl.lit("sell"))
        ),
        venue=pl.when(trade | corrects).then(text(of["x"])),
        seq=seq,
        span=pl.when(~status & ~busted).then(kind.replace_strict(_SPANS, default=0)),
        auction=pl.when(stock | corrected).then(auction_of(conditions, _AUCTIONS)),
        unpriced=pl.when(stock).then(unpriced["unpriced"]).when(corrected).then(pl.lit(CORRECTED)),
        extremes=pl.when(stock).then(unpriced["extremes"]).when(corrected).then(False),
        busted=pl.when(busted).then(1.0),
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
