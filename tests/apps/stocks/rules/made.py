"""Rows as the tape has them, and what rules report of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from streamgauge.operators.rules.alert import Alert
from streamgauge.operators.rules.row import Row
from streamgauge.operators.rules.rule import Rule

DAY = 86_400


def us(text: str) -> int:
    """A time in UTC as microseconds since 1970."""
    at = datetime.fromisoformat(text)
    return round((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * 1_000_000)


def trade(
    at: str, price: float, size: float = 100.0, symbol: str = "A", arrived: int = 0, **more: Any
) -> Row:
    """A trade."""
    known = {"open": price, "high": price, "low": price, "price": price, "size": size, "value": price * size}
    rest = {"side": None, "span": 0, "adjusted": None, "split": None, "arrived": arrived, "times": 1}
    seq = more.pop("seq", arrived)
    key = {"symbol": symbol, "venue": more.pop("venue", "X"), "seq": seq}
    return Row(key, us(at), us(at), {**known, **rest, "number": seq, "unpriced": None, **more})


def bar(at: str, prices: Sequence[float], span: int = DAY, **more: Any) -> Row:
    """A bar: open, high, low, close."""
    opened, high, low, price = prices
    return trade(at, price, open=opened, high=high, low=low, span=span, seq=None, venue=None, **more)


def day(at: str, price: float, **more: Any) -> Row:
    """A day on which the price stayed as it is."""
    return bar(at, [price] * 4, **more)


def alerts_of(rule: Rule, rows: Sequence[Row], at_a_time: int = 0) -> list[Alert]:
    """What a rule reports of rows in windows of so many, its state written down and read between them."""
    state, collected = rule.begin(), []
    for low in range(0, len(rows), at_a_time or len(rows) or 1):
        some = rows[low : low + (at_a_time or len(rows))]
        collected += rule.window(state, some, some[0].at_us, some[-1].at_us + 1, 0)
        state = json.loads(json.dumps(state))
    return collected
