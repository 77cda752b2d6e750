"""What people with stocks and coins want to know."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from ...operators.definition.aggregates import (
    count,
    distinct,
    first,
    last,
    quantiles,
    top_k,
    weighted_sample,
)
from ...operators.definition.aggregates import max as max_
from ...operators.definition.aggregates import min as min_
from ...operators.definition.aggregates import sum as sum_
from ...operators.definition.stream import Stream
from ...operators.rules.kinds.change import Change
from ...operators.rules.kinds.threshold import Threshold
from ...operators.rules.rule import Rule
from ..app import App, AppPart, Settings, number
from ..panels import CandlesPanel, LinesPanel, NumberPanel, RankedPanel, RowsPanel, SamplesPanel, SpreadPanel
from .example import EXAMPLE
from .formats.alpaca import ALPACA
from .formats.binance import BINANCE
from .formats.bitstamp import BITSTAMP
from .formats.bybit import BYBIT
from .formats.coinbase import COINBASE
from .formats.databento import DATABENTO
from .formats.deribit import DERIBIT
from .formats.gemini import GEMINI
from .formats.iex import IEX
from .formats.kraken import KRAKEN
from .formats.okx import OKX
from .formats.polygon import POLYGON
from .formats.table import TABLE
from .formats.us_tapes import ODD_LOT
from .formats.venues import FORMATS
from .rules.bands import PriceBand
from .rules.flow import OrderImbalance, with_averages
from .rules.moves import ReturnScore, RollingMove, SessionMove, SplitSeen, UnitChange
from .rules.status import Halt, SilentSymbol
from .rules.tape import Block, LargeTrade, OutOfOrder
from .rules.valuation import NotValued
from .symbol_lists import SymbolList

_INDEX = r"(?i)[\^$]?(I:)?(SPX|GSPC|INX|S&?P[ _-]?500([ _-].*)?)"
"""Market-wide halts depend on the S&P 500: these are its names in feeds."""

_NEW_YORK: dict[str, Any] = {"zone": "America/New_York", "hours": "09:30-16:00"}
"""The zone and the hours in which the rules of US exchanges apply."""

_PRICED = pl.col("kind").is_in(["trades", "bars"])
"""Rows that are trades or bars."""

_BAR = {
    "open": first("open"),
    "high": max_("high"),
    "low": min_("low"),
    "close": last("close"),
    "volume": sum_("size"),
    "value": sum_("value"),
}
"""The bar of all trades and bars in a window."""


def _tape(rows: Stream) -> Stream:
    """Each trade and each bar on its own, in the order of time; duplicates count once.

    A bar that is sent again with other figures takes the place of the first, and is no duplicate.
    """
    name = "identity" if "identity" in rows.columns else "seq"
    return (
        rows.with_columns(sent=pl.when(pl.col("kind") != "restated").then("kind"))
        .group_by("symbol", "venue", name, "at")
        .tumbling("5s", delay="5s")
        .agg(
            number=last("seq"),
            price=last("price"),
            open=last("open"),
            high=last("high"),
            low=last("low"),
            size=last("size"),
            value=last("value"),
            shares=last("shares"),
            side=last("side"),
            span=max_("span"),
            adjusted=last("adjusted"),
            split=last("split"),
            auction=last("auction"),
            unpriced=last("unpriced"),
            busted=max_("busted"),
            halted=last("halted"),
            reason=last("reason"),
            arrived=min_("arrived"),
            times=count("sent"),
        )
    )


def _minutes(rows: Stream) -> Stream:
    """The data for the page's charts: any span of it merges to a bar."""
    return rows.group_by("symbol").tumbling("1m", delay="5s").agg(**_BAR, trades=count())


def _hours(rows: Stream) -> Stream:
    return (
        rows.group_by("symbol", "kind")
        .tumbling("1h", delay="5s")
        .agg(rows=count(), volume=sum_("size"), value=sum_("value"), venues=distinct("venue"))
    )


def _movers(rows: Stream) -> Stream:
    return rows.group_by("symbol", "kind").tumbling("1d", delay="5s").agg(**_BAR)


def _flow(rows: Stream) -> Stream:
    return (
        rows.filter(pl.col("kind") == "trades")
        .group_by("symbol")
        .tumbling("1d", delay="5s")
        .agg(
            trades=count(),
            bought=sum_("bought"),
            sold=sum_("sold"),
            sizes=quantiles("size"),
            venues=distinct("venue"),
            blocks=weighted_sample("trade", weight="weight", k=20),
        )
    )


def _vwap(rows: Stream) -> Stream:
    """Trades at the market's price and the volume of auctions, in windows of 15 minutes."""
    continuous = pl.col("auction").is_null() & (
        pl.col("unpriced").is_null() | (pl.col("unpriced") == ODD_LOT)
    )
    of = {name: pl.when(continuous).then(name) for name in ("size", "bought", "sold", "price")}
    return (
        rows.filter(pl.col("kind") == "trades")
        .with_columns(
            size=of["size"],
            bought=of["bought"],
            sold=of["sold"],
            points=of["price"] * pl.col("size"),
            auctioned=pl.when(pl.col("auction").is_not_null()).then("size"),
        )
        .group_by("symbol")
        .tumbling("15m", delay="5s")
        .agg(
            trades=count(),
            volume=sum_("size"),
            points=sum_("points"),
            bought=sum_("bought"),
            sold=sum_("sold"),
            auctioned=sum_("auctioned"),
        )
    )


def _unvalued(rows: Stream) -> Stream:
    """Trades by the reason why they have no value; for trades with a value, reason and symbol are null."""
    return (
        rows.filter(pl.col("kind") == "trades")
        .with_columns(symbol=pl.when(pl.col("unvalued").is_not_null()).then("symbol"))
        .group_by("venue", "unvalued")
        .tumbling("1m", delay="5s")
        .agg(trades=count(), symbols=distinct("symbol"), examples=top_k("symbol", k=3))
    )


def _market(rows: Stream) -> Stream:
    return (
        rows.group_by("kind")
        .tumbling("1d", delay="5s")
        .agg(
            rows=count(),
            unvalued=count("unvalued"),
            symbols=distinct("symbol"),
            top=top_k("symbol", k=20),
        )
    )


def _tape_rules(settings: Settings) -> Sequence[Rule]:
    gain, drop, rolling, fall, score, times = (
        number(settings, name, 0) for name in ("gain", "drop", "rolling", "fall", "score", "times")
    )
    where: dict[str, Any] = {
        "zone": settings["zone"],
        "hours": settings["hours"],
        "splits": number(settings, "splits", 0),
    }
    rules: list[Rule] = [
        SessionMove("session gain", kind="gain", at_least=gain, **where),
        SessionMove("session drop", kind="drop", at_most=-drop, **where),
        RollingMove(
            "rolling gain",
            kind="gain",
            at_least=rolling,
            clear=rolling / 2,
            over=settings["rolling_over"],
            **where,
        ),
        RollingMove(
            "sharp drop",
            kind="drop",
            value="low",
            against="high",
            at_most=-fall,
            clear=-fall / 2,
            over=settings["fall_over"],
            **where,
        ),
        ReturnScore("return score", kind="drop", below=-score, step=settings["score_step"], **where),
        SplitSeen("split", kind="split", above=0, **where),
        UnitChange("unit", kind="unit", above=0, **where),
        *(
            SessionMove(
                f"market-wide level {level}",
                kind="halt",
                value="low",
                at_most=-percent,
                matching=settings["index"],
                until="" if level == 3 else "15:25",
                splits=0,
                **_NEW_YORK,
            )
            for level, percent in ((1, 7), (2, 13), (3, 20))
        ),
    ]
    if _yes(settings, "luld"):
        tier1 = SymbolList.of(settings["tier1"], "tier1").entries
        for name, hold in (("price band", "0s"), ("trading pause", "15s")):
            rules.append(PriceBand(name, kind="luld", at_least=100, hold=hold, tier1=tier1, **_NEW_YORK))
    auctions = _yes(settings, "auctions")
    for name, value in (("block_shares", "shares"), ("block_value", "value")):
        if settings[name]:
            least = number(settings, name, 0)
            block = Block(
                name.replace("_", " by "), kind="block", value=value, at_least=least, auctions=auctions
            )
            rules.append(block)
    if settings["silence"]:
        zone, hours = settings["zone"], settings["hours"]
        rules.append(SilentSymbol("silence", longer=settings["silence"], zone=zone, hours=hours))
    rules += [
        LargeTrade(
            "large trade",
            kind="block",
            value="size",
            q=number(settings, "quantile", 0),
            above=times,
            surely=True,
        ),
        Threshold("duplicate", kind="sequence", value="times", at_least=2, every=True),
        OutOfOrder("out of order", kind="sequence"),
        Halt("trading halt", kind="halt", value="halted", at_least=1),
    ]
    return rules


def _hour_rules(settings: Settings) -> Sequence[Rule]:
    return [
        Change(
            "unusual volume",
            kind="volume",
            value="volume",
            against="hour",
            zone=settings["zone"],
            over=20,
            by="times",
            above=number(settings, "volume", 0),
            warm=5,
        ),
        Change(
            "few venues",
            kind="venues",
            value="venues",
            against="hour",
            zone=settings["zone"],
            over=20,
            by="times",
            below=0.5,
            surely=True,
            warm=5,
        ),
    ]


def _flow_rules(settings: Settings) -> Sequence[Rule]:
    if not settings["imbalance"]:
        return []
    least = number(settings, "imbalance", 0)
    return [OrderImbalance("order imbalance", kind="flow", at_least=least, support={"trades": 50})]


def _value_rules(settings: Settings) -> Sequence[Rule]:
    if not settings["block_value"]:
        return []
    return [NotValued("not valued", kind="instruments", value="trades", at_least=1)]


def _yes(settings: Settings, name: str) -> bool:
    if settings[name] not in ("yes", "no"):
        raise ValueError(f"--set {name} must be yes or no, got {settings[name]}")
    return settings[name] == "yes"


APP = App(
    name="stocks",
    title="Stocks and coins: gains, drops, bands, blocks, unusual volume",
    formats=(
        *(BINANCE, COINBASE, OKX, BYBIT, KRAKEN, BITSTAMP, GEMINI, DERIBIT),
        *FORMATS,
        *(POLYGON, ALPACA, DATABENTO, IEX, TABLE),
    ),
    parts=(
        AppPart("hours", _hours, _hour_rules, shown=False, of=_PRICED),
        # Duplicate trades are reported there.
        AppPart(
            "tape",
            _tape,
            _tape_rules,
            at="at",
            shown=False,
            repeats=True,
            keep_late=True,
            # Every trade of this time is stored.
            lateness="10s",
            cancels="busted",
        ),
        AppPart("minutes", _minutes, shown=False, of=_PRICED),
        AppPart("movers", _movers, of=_PRICED),
        AppPart("flow", _flow),
        AppPart("vwap", _vwap, _flow_rules, derive=with_averages),
        AppPart("market", _market, of=_PRICED),
        AppPart("unvalued", _unvalued, _value_rules, shown=False),
    ),
    kinds={
        "session": SessionMove,
        "rolling": RollingMove,
        "score": ReturnScore,
        "split": SplitSeen,
        "unit": UnitChange,
        "band": PriceBand,
        "block": Block,
        "large": LargeTrade,
        "order": OutOfOrder,
        "halted": Halt,
        "silence": SilentSymbol,
        "imbalance": OrderImbalance,
    },
    settings={
        "gain": "10",
        "drop": "10",
        "rolling": "10",
        "rolling_over": "24h",
        "fall": "5",
        "fall_over": "5m",
        "score": "6",
        "score_step": "1m",
        "block_shares": "10000",
        "block_value": "200000",
        "quantile": "0.999",
        "times": "1",
        "volume": "3",
        "zone": "America/New_York",
        "hours": "09:30-16:00",
        "splits": "3",
        "actions": "",
        "symbols": "",
        "instruments": "",
        "currency": "USD",
        "rates": "",
        "auctions": "no",
        "silence": "",
        "imbalance": "",
        "luld": "yes",
        "tier1": "",
        "index": _INDEX,
    },
    event=("event",),
    example=EXAMPLE,
    panels=(
        RankedPanel(
            "Movers", "minutes", "close", "symbol", "open", against="change", both_ways=True, unit="%"
        ),
        LinesPanel(
            "Prices",
            "minutes",
            "close",
            by="symbol",
            lower="low",
            upper="high",
            limits=False,
            from_first=True,
        ),
        CandlesPanel("Candles", "minutes", by="symbol", value="value"),
        LinesPanel("Volume by hour", "hours", "volume", by="symbol"),
        SamplesPanel("Blocks", "flow", "blocks"),
        RankedPanel("Most traded", "market", "top", unit="trades"),
        LinesPanel(
            "VWAP",
            "vwap",
            "points",
            to="volume",
            against="factor",
            by="symbol",
            unit="points",
            limits=False,
            from_first=True,
        ),
        SpreadPanel("Trade sizes", "flow", "sizes"),
        NumberPanel("Trades", "minutes", "trades", unit="trades"),
        NumberPanel("Traded value", "minutes", "value", unit="{currency}"),
        NumberPanel("Distinct symbols", "market", "symbols", unit="symbols"),
        RowsPanel("Symbols", "minutes", order="-value", units={"value": "{currency}"}),
        RowsPanel(
            "Taker",
            "flow",
            {"symbol": "symbol", "trades": "trades", "bought": "bought", "sold": "sold", "venues": "venues"},
            order="-trades",
        ),
    ),
)
