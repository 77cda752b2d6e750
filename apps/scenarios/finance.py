"""What people ask of trades."""

from __future__ import annotations

import random
from collections.abc import Iterator

import polars as pl

from ...operators.definition.aggregates import count, first, last
from ...operators.definition.aggregates import sum as sum_
from ...operators.definition.stream import Stream
from .scenario import Row, at, in_order, scenario

TRADES = {
    "at": pl.Datetime("us"),
    "symbol": pl.String,
    "side": pl.String,
    "price": pl.Float64,
    "size": pl.Float64,
}


def _trades(symbol: str, begin: int, end: int, price: float, to: float | None = None) -> Iterator[Row]:
    """Four trades a minute, whose price goes from one value to another."""
    dice, steps = random.Random(symbol), 4 * (end - begin)
    for step in range(steps):
        near = price + ((price if to is None else to) - price) * step / steps
        yield {
            "at": at(begin + step / 4 + 0.01),
            "symbol": symbol,
            "side": dice.choice(("buy", "sell")),
            "price": round(near * (1 + dice.uniform(-0.001, 0.001)), 2),
            "size": float(dice.randrange(1, 200)),
        }


@scenario(
    "finance",
    TRADES,
    lambda: in_order(_trades("AAA", 0, 300, 20), _trades("BBB", 5, 300, 140), _trades("NEWCO", 240, 300, 33)),
    rules="""
        [[rule]]
        name = "new symbol"
        kind = "newterm"
        learn = "2h"
        value = "trades"
    """,
    alerts=[("fired", "NEWCO")],
)
def new_symbol(trades: Stream) -> Stream:
    """A company goes public: a symbol trades for the first time."""
    return trades.group_by("symbol").tumbling("1m").agg(trades=count(), price=first("price"))


@scenario(
    "finance",
    TRADES,
    lambda: in_order(
        _trades("AAA", 0, 90, 20, 21),
        _trades("BBB", 0, 60, 140),
        _trades("BBB", 60, 64, 140, 126),
        _trades("BBB", 64, 90, 126),
    ),
    rules="""
        [[rule]]
        name = "drop"
        kind = "change"
        value = "price"
        against = "high"
        over = "15m"
        by = "percent"
        below = -5
        clear = -2
    """,
    alerts=[("fired", "BBB"), ("cleared", "BBB")],
)
def sharp_drop(trades: Stream) -> Stream:
    """A stock drops sharply."""
    return trades.group_by("symbol").tumbling("1m").agg(price=last("price"))


@scenario(
    "finance",
    TRADES,
    lambda: in_order(_trades("AAA", 0, 400, 20, 20.6), _trades("BBB", 0, 400, 140, 159)),
    rules="""
        [[rule]]
        name = "up 10 %"
        kind = "ratio"
        value = "price"
        to = "opened"
        at_least = 1.1
        clear = 1.08
    """,
    alerts=[("fired", "BBB")],
)
def up_ten_percent(trades: Stream) -> Stream:
    """Stocks that are up 10 % in a day."""
    day_so_far = trades.group_by("symbol").cumulate("1d", every="10m")
    return day_so_far.agg(opened=first("price"), price=last("price"))


def _large() -> Iterator[Row]:
    block = {"symbol": "AAA", "side": "sell", "price": 20.0, "size": 90_000.0}
    return in_order(_trades("AAA", 0, 60, 20), _trades("BBB", 0, 60, 140), [{"at": at(30.005), **block}])


@scenario(
    "finance",
    TRADES,
    _large,
    rules="""
        [[rule]]
        name = "large"
        kind = "threshold"
        value = "dollars"
        at_least = 1000000
        every = true
        unit = "$"
    """,
    readings=True,
    alerts=[("fired", ["AAA", "sell"])],
)
def major_trades(trades: Stream) -> Stream:
    """Major purchases and sales."""
    valued = trades.with_columns(dollars=pl.col("price") * pl.col("size"))
    return valued.group_by("symbol", "side", "at").tumbling("1m").agg(dollars=sum_("dollars"))


@scenario(
    "finance",
    TRADES,
    lambda: in_order(
        _trades("AAA", 0, 60, 20), _trades("BBB", 0, 30, 104, 93), _trades("BBB", 30, 60, 93, 108)
    ),
    rules="""
        [[rule]]
        name = "cheap"
        kind = "threshold"
        value = "price"
        at_most = 95
        clear = 100
        where = { symbol = "BBB" }

        [rule.command]
        topic = "orders"
        fired = { symbol = "$key", side = "buy", quantity = 100, limit = "$limit" }
        cleared = { symbol = "$key", cancel = true }
    """,
    readings=True,
    alerts=[("fired", "BBB"), ("cleared", "BBB")],
    commands=[
        ("orders", {"symbol": "BBB", "side": "buy", "quantity": 100, "limit": 95}),
        ("orders", {"symbol": "BBB", "cancel": True}),
    ],
)
def order_sent(trades: Stream) -> Stream:
    """An order is sent when a price is reached."""
    return trades.group_by("symbol", "at").tumbling("1m").agg(price=last("price"))
