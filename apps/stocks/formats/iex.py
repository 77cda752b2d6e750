"""IEX: trades and trading statuses from its API (DEEP, TOPS last) and from HIST's files as JSON.

The API sends ``{"symbol":…,"messageType":"trades","data":{…}}``, and last trades as lists of objects. HIST's
files are packets; programs that read them write one ``{"type":"trade_report",…}`` per line. A trade with the
flag of a single-price cross was in an auction. No feed of IEX names the aggressor.
"""

from __future__ import annotations

from typing import Any

import polars as pl

from ....operators.definition.stream import Stream
from ...app import AppFormat, Feed, Settings
from ..captured import captured, holds
from ..instruments.instrument_names import STOCKS
from .frames import events
from .trades import as_trades, iso_time, number, since_1970, text, whole
from .us_tapes import ODD_LOT

_FIELDS = (
    *("symbol", "messageType", "data", "type", "price", "size", "time", "timestamp"),
    *("trade_id", "flags", "status", "reason"),
)
_INNER = ("price", "size", "timestamp", "tradeId", "isSinglePriceCross", "status", "reason")
_CROSS, _ODD_LOT = 0x08, 0x20
"""The sale condition flags of a single-price cross, and of an odd lot, which doesn't set the last price."""
_STATES = {"T": 0.0, "H": 1.0, "P": 1.0}
"""Trading; halted on all markets; paused. O, in which orders are accepted before an auction, is neither."""
_SAID = {"T": "trading", "H": "halted across all markets", "P": "paused on IEX"}


def rows(feed: Feed, settings: Settings) -> Stream:
    """Read the trades and statuses of a topic."""
    element = {name: pl.element().struct.field(name) for name in _FIELDS}
    stream = events(feed, _FIELDS, _at(element))
    of = {name: pl.col(f"event_{name}") for name in _FIELDS}
    trade, status = _trade(of), _status(of)
    state = pl.coalesce(_inner(of, "status"), text(of["status"]))
    flags = whole(of["flags"], trade)
    crossing = (_inner(of, "isSinglePriceCross") == "true") | ((flags // _CROSS) % 2 == 1)
    odd_lot = (_inner(of, "isOddLot") == "true") | ((flags // _ODD_LOT) % 2 == 1)
    reason = pl.coalesce(_inner(of, "reason"), text(of["reason"]))
    return as_trades(
        stream,
        settings,
        STOCKS,
        at=_at(of),
        symbol=text(of["symbol"]),
        kind=pl.when(trade).then(pl.lit("trades")).when(status).then(pl.lit("status")),
        price=number(pl.coalesce(_inner(of, "price"), text(of["price"])), trade),
        size=number(pl.coalesce(_inner(of, "size"), text(of["size"])), trade),
        venue=pl.lit("IEX"),
        seq=whole(pl.coalesce(_inner(of, "tradeId"), text(of["trade_id"])), trade),
        span=pl.when(trade).then(0),
        auction=pl.when(trade & crossing.fill_null(False)).then(pl.lit("crossing")),
        unpriced=pl.when(trade & odd_lot.fill_null(False)).then(pl.lit(ODD_LOT)),
        halted=pl.when(status).then(state.replace_strict(_STATES, default=None, return_dtype=pl.Float64)),
        reason=pl.when(status).then(
            pl.concat_str(
                state.replace_strict(_SAID, default=""),
                pl.when(reason.str.strip_chars() != "")
                .then(pl.lit(", ") + reason.str.strip_chars())
                .fill_null(""),
            )
        ),
    )


def _inner(of: dict[str, pl.Expr], name: str) -> pl.Expr:
    """A member of an event's `data`."""
    return of["data"].cast(pl.String, strict=False).str.json_path_match(f"$.{name}")


def _trade(of: dict[str, pl.Expr]) -> pl.Expr:
    kind, form = text(of["messageType"]).str.to_lowercase(), text(of["type"])
    last = kind.is_null() & form.is_null() & of["time"].is_not_null() & of["price"].is_not_null()
    return (kind.is_in(["trades", "trade"]) | (form == "trade_report")).fill_null(False) | last


def _status(of: dict[str, pl.Expr]) -> pl.Expr:
    kind, form = text(of["messageType"]).str.to_lowercase(), text(of["type"])
    state = pl.coalesce(_inner(of, "status"), text(of["status"]))
    said = (kind.is_in(["tradingstatus", "trading-status"]) | (form == "trading_status")).fill_null(False)
    return said & state.is_in(list(_STATES)).fill_null(False)


def _at(of: dict[str, pl.Expr]) -> pl.Expr:
    given = pl.coalesce(_inner(of, "timestamp"), text(of["timestamp"]), text(of["time"]))
    numbered = since_1970(given.cast(pl.Int64, strict=False))
    return pl.when(_trade(of) | _status(of)).then(pl.coalesce(numbered, iso_time(given)))


def _is(event: Any) -> bool:
    if not isinstance(event, dict) or "symbol" not in event:
        return False
    if isinstance(event.get("messageType"), str) and "data" in event:
        return True
    hist = event.get("type") in ("trade_report", "trading_status", "quote_update", "price_level_update")
    return hist or event.keys() == {"symbol", "price", "size", "time"}


def _symbol_and_time(event: Any) -> tuple[Any, Any]:
    if not isinstance(event, dict):
        return None, None
    data = event.get("data")
    inner = data.get("timestamp") if isinstance(data, dict) else None
    return event.get("symbol"), inner or event.get("timestamp") or event.get("time")


IEX = AppFormat(
    "iex",
    "IEX: trades and statuses of DEEP and TOPS, and of HIST's files as JSON",
    rows,
    lambda path, head: holds(head, _is),
    captured(_symbol_and_time),
)
