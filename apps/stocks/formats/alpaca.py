"""Alpaca's websocket: trades (t), minute bars (b) and daily ones (d), of stocks and crypto, and statuses (s).

Events come alone or in a list. Crypto trades name the taker's side (``tks``), stock trades don't. A daily
bar is sent again every minute, so daily bars are read only if requested, by ``--set events=d``. If trades
come late, their minute's bar is sent once more (u) and takes the place of the first. Official opens and
closes, and corrected closes (conditions Q, M and 9), are filtered: they repeat the auction's price, and
nothing is traded. A cancellation (x) names a trade by its id ``i``; a correction (c) cancels the trade
``oi``, and the trade ``ci`` takes its place. Statuses have the tapes' codes: H and P, or 2 on tapes A and
B, for a halt; T, or 3, for trading.
"""

from __future__ import annotations

from typing import Any

import polars as pl

from ....operators.definition.stream import Stream
from ...app import AppFormat, Feed, Settings
from ..captured import captured, holds
from ..instruments import instrument_names as names
from .frames import events
from .trades import as_trades, auction_of, chosen, halves, iso_time, number, text, whole
from .us_tapes import CORRECTED, by_codes

_FIELDS = (
    "T",
    "S",
    "i",
    "x",
    "p",
    "s",
    "t",
    "tks",
    "o",
    "h",
    "l",
    "c",
    "v",
    "sc",
    "sm",
    "rc",
    "rm",
    "z",
    "oi",
    "ci",
    "cp",
    "cs",
    "cc",
)
_SPANS = {"b": 60, "d": 86_400, "u": 60}
_EVENTS = ("t", "b", "d", "s")
_STATES = {"H": 1.0, "P": 1.0, "2": 1.0, "T": 0.0, "3": 0.0}
_OFFICIAL = '"[MQ9]"'
_AUCTIONS = (('"O"', "opening"), ('"6"', "closing"), ('"5"', "reopening"), ('"X"', "crossing"))
_CORRECTIONS = ("x", "c")
_KNOWN = {*_EVENTS, "q", "u", "c", "x", "l", "o"}


def rows(feed: Feed, settings: Settings) -> Stream:
    """Read the trades and bars of a topic."""
    wanted = chosen(settings, "events", _EVENTS)
    element = {name: pl.element().struct.field(name) for name in _FIELDS}
    of = {name: pl.col(f"event_{name}") for name in _FIELDS}
    kind = text(of["T"])
    stream = halves(events(feed, _FIELDS, _at(element, wanted)), kind == "c")
    corrects = kind.is_in(_CORRECTIONS).fill_null(False) & ("t" in wanted)
    corrected = corrects & (pl.col("half") == 1)
    busted = corrects & (pl.col("half") == 0)
    conditions = (
        pl.when(corrected).then(of["cc"]).otherwise(of["c"]).cast(pl.String, strict=False).fill_null("")
    )
    official = (kind == "t").fill_null(False) & conditions.str.contains(_OFFICIAL)
    trade = ((kind == "t") & kind.is_in(wanted)).fill_null(False) & ~official
    status = (kind == "s").fill_null(False) & text(of["sc"]).is_in(list(_STATES)) & ("s" in wanted)
    status = status.fill_null(False)
    restated = ((kind == "u") & ("b" in wanted)).fill_null(False)
    bar = (kind.is_in(["b", "d"]) & kind.is_in(wanted)).fill_null(False) | restated
    at = _at(of, wanted)
    unpriced = by_codes(conditions, text(of["z"]))
    return as_trades(
        stream,
        settings,
        names.ALPACA,
        # A day begins at midnight in New York.
        at=pl.when(kind == "d").then(at.dt.truncate("1d")).otherwise(at),
        symbol=text(of["S"]),
        kind=pl.when(trade)
        .then(pl.lit("trades"))
        .when(restated)
        .then(pl.lit("restated"))
        .when(bar)
        .then(pl.lit("bars"))
        .when(status)
        .then(pl.lit("status"))
        .when(corrects)
        .then(pl.lit("corrections")),
        price=pl.coalesce(number(of["p"], trade), number(of["c"], bar), number(of["cp"], corrected)),
        open=number(of["o"], bar),
        high=number(of["h"], bar),
        low=number(of["l"], bar),
        size=pl.coalesce(
            number(of["s"], trade), number(of["v"], bar, needed=False), number(of["cs"], corrected)
        ),
        side=text(of["tks"]).replace_strict({"B": "buy", "S": "sell"}, default=None),
        venue=pl.when(trade | corrects).then(text(of["x"])),
        seq=pl.coalesce(
            whole(of["i"], trade | (kind == "x")), whole(of["oi"], busted), whole(of["ci"], corrected)
        ),
        span=pl.when(~status & ~busted).then(kind.replace_strict(_SPANS, default=0)),
        auction=pl.when(trade | corrected).then(auction_of(conditions, _AUCTIONS)),
        unpriced=pl.when(trade).then(unpriced["unpriced"]).when(corrected).then(pl.lit(CORRECTED)),
        extremes=pl.when(trade).then(unpriced["extremes"]).when(corrected).then(False),
        busted=pl.when(busted).then(1.0),
        halted=pl.when(status).then(
            text(of["sc"]).replace_strict(_STATES, default=None, return_dtype=pl.Float64)
        ),
        reason=pl.when(status).then(
            pl.concat_str(text(of["sm"]), text(of["rc"]), text(of["rm"]), separator=", ", ignore_nulls=True)
        ),
    )


def _at(of: dict[str, pl.Expr], wanted: list[str]) -> pl.Expr:
    kinds = [*wanted, *(_CORRECTIONS if "t" in wanted else ()), *("u" if "b" in wanted else ())]
    return iso_time(pl.when(text(of["T"]).is_in(kinds)).then(of["t"]))


def _is(event: Any) -> bool:
    return isinstance(event, dict) and event.get("T") in _KNOWN and "S" in event


ALPACA = AppFormat(
    "alpaca",
    "Alpaca's websocket: trades and bars, of stocks and crypto",
    rows,
    lambda path, head: holds(head, _is),
    captured(lambda parsed: (parsed.get("S"), parsed.get("t")) if isinstance(parsed, dict) else (None, None)),
    {"events": "t,b,s"},
)
