"""Databento's records as JSON, plain or pretty: trades, MBO, TBBO, bars, and the trading status.

Prices are whole numbers of billionths, or decimals if `pretty_px` was requested; times are nanoseconds since
1970, or ISO 8601. `side` is the aggressor's: A sold, B bought. In MBO, the trades (T) count, not the fills
(F) of resting orders. Records have a symbol if `map_symbols` was requested; otherwise, the instrument's id
takes its place. A sequence number belongs to a packet, which may hold several trades, so it identifies no
trade.

Sizes are shares if the publisher is a US stock exchange. For all others, such as futures, only the
definitions tell (`--set instruments=`, of the schema ``definition`` as JSON).
"""

from __future__ import annotations

from typing import Any

import polars as pl

from ....operators.definition.stream import Stream
from ....operators.formats.json.decoder import json
from ....operators.formats.json.fields import field
from ...app import AppFormat, Feed, Settings
from ..captured import captured, holds
from ..instruments.instrument_names import STOCKS
from .trades import as_trades, chosen, iso_time, number, since_1970, text, whole

_HEADER = ("ts_event", "rtype", "publisher_id", "instrument_id")
_FIELDS = ("symbol", "action", "side", "price", "size", "open", "high", "low", "close", "volume", "reason")
_TRADES = {"trades": "0", "tbbo": "1", "mbo": "160"}
_BARS = {"ohlcv-1s": "32", "ohlcv-1m": "33", "ohlcv-1h": "34", "ohlcv-1d": "35"}
_SPANS = {"32": 1, "33": 60, "34": 3_600, "35": 86_400}
_EVENTS = (*_TRADES, *_BARS, "status")
_STATUS = "18"
_STATES = {"7": 0.0, "8": 1.0, "9": 1.0, "10": 1.0}
"""Trading; a halt, a pause, a suspension. Other actions don't tell whether there is trading."""
_SAID = {"7": "trading", "8": "halt", "9": "pause", "10": "suspend"}
_NOT_STOCKS = (1, *range(20, 38), 57, 58, 61, 84, 85, *range(97, 107))
"""The publishers of futures and options, among numbers up to 107."""
_LAST = 107


def rows(feed: Feed, settings: Settings) -> Stream:
    """Read the trades, bars and statuses of a topic."""
    wanted = chosen(settings, "events", _EVENTS)
    header = {name: field(f"hd.{name}", pl.Binary) for name in _HEADER}
    kind, action = text(pl.col("rtype")), text(pl.col("action"))
    trade = (kind.is_in([_TRADES[one] for one in wanted if one in _TRADES]) & (action == "T")).fill_null(
        False
    )
    bar = kind.is_in([_BARS[one] for one in wanted if one in _BARS]).fill_null(False)
    status = (kind == _STATUS) & action.is_in(list(_STATES)) & ("status" in wanted)
    status = status.fill_null(False)
    given = text(pl.col("ts_event"))
    at = pl.when(trade | bar | status).then(
        pl.coalesce(since_1970(given.cast(pl.Int64, strict=False)), iso_time(pl.col("ts_event")))
    )
    decoder = json({**header, **{name: field(name, pl.Binary) for name in _FIELDS}})
    stream = feed.stream(decoder, time=at, message={"arrived": "offset"})
    publisher = whole(pl.col("publisher_id"), pl.lit(True))
    return as_trades(
        stream,
        settings,
        STOCKS,
        ~publisher.is_in(_NOT_STOCKS) & publisher.is_between(1, _LAST),
        negative=True,
        at=at,
        symbol=pl.coalesce(text(pl.col("symbol")), text(pl.col("instrument_id"))),
        kind=pl.when(trade)
        .then(pl.lit("trades"))
        .when(bar)
        .then(pl.lit("bars"))
        .when(status)
        .then(pl.lit("status")),
        price=pl.coalesce(_price("price", trade), _price("close", bar)),
        open=_price("open", bar),
        high=_price("high", bar),
        low=_price("low", bar),
        size=pl.coalesce(number(pl.col("size"), trade), number(pl.col("volume"), bar)),
        side=pl.when(trade).then(
            text(pl.col("side")).replace_strict({"A": "sell", "B": "buy"}, default=None)
        ),
        venue=text(pl.col("publisher_id")),
        span=pl.when(trade).then(0).otherwise(kind.replace_strict(_SPANS, default=0)),
        halted=pl.when(status).then(action.replace_strict(_STATES, default=None, return_dtype=pl.Float64)),
        reason=pl.when(status).then(
            pl.concat_str(
                action.replace_strict(_SAID, default=""),
                pl.lit(", reason ") + pl.coalesce(text(pl.col("reason")), pl.lit("none")),
            )
        ),
    )


def _price(name: str, where: pl.Expr) -> pl.Expr:
    """Read a price; a decimal point is inserted into a whole number of billionths, as division would
    round."""
    given = text(pl.col(name))
    digits = given.str.strip_prefix("-").str.zfill(10)
    sign = pl.when(given.str.starts_with("-")).then(pl.lit("-")).otherwise(pl.lit(""))
    point = pl.concat_str(sign, digits.str.head(-9), pl.lit("."), digits.str.tail(9))
    whole_number = given.str.contains(r"^-?\d+$").fill_null(False)
    return pl.coalesce(number(point, where & whole_number), number(pl.col(name), where & ~whole_number))


def _is(event: Any) -> bool:
    header = event.get("hd") if isinstance(event, dict) else None
    return isinstance(header, dict) and "rtype" in header and "publisher_id" in header


def _symbol_and_time(event: Any) -> tuple[Any, Any]:
    if not _is(event):
        return None, None
    header = event["hd"]
    return event.get("symbol") or header.get("instrument_id"), header.get("ts_event")


DATABENTO = AppFormat(
    "databento",
    "Databento's records as JSON: trades, MBO, TBBO, bars, status",
    rows,
    lambda path, head: holds(head, _is),
    captured(_symbol_and_time),
    {"events": "trades,tbbo,mbo,ohlcv-1m,ohlcv-1d,status"},
)
