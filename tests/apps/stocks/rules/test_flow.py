"""The flow of orders: imbalance, average prices and shares, against the plain computation."""

from __future__ import annotations

import json
import random
from collections import defaultdict
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from streamgauge.apps.stocks.rules.flow import OrderImbalance, imbalance
from streamgauge.operators.rules.row import Row

from ..tried import tried
from .made import alerts_of

START = datetime(2026, 6, 1, tzinfo=UTC)


def test_the_windows_of_a_feed(tmp_path: Path) -> None:
    dice = random.Random(3)
    path, trades = tmp_path / "binance.jsonl", []
    for number in range(400):
        at = START + timedelta(seconds=number * 10)
        symbol = dice.choice(["BTCUSDT", "ETHUSDT"])
        trades.append((symbol, at, dice.uniform(90, 110), dice.uniform(0.1, 5), dice.random() < 0.7))
    lines = [
        {
            "e": "trade",
            "s": s,
            "t": n,
            "p": str(p),
            "q": str(q),
            "T": int(at.timestamp() * 1000),
            "m": not buy,
        }
        for n, (s, at, p, q, buy) in enumerate(trades)
    ]
    path.write_text("\n".join(map(json.dumps, lines)) + "\n")
    result = tried(path, {"imbalance": "0.3"}, exactly=True, parts=["vwap"])
    windows = defaultdict(list)
    for symbol, at, price, size, buy in trades:
        windows[symbol, at - (at - START) % timedelta(minutes=15)].append((price, size, buy))
    rows = {(row["symbol"], row["window_start"]): row for row in result.answers["vwap"]}
    assert rows.keys() == windows.keys()
    fired = set()
    for (symbol, start), mine in windows.items():
        row, volume = rows[symbol, start], sum(size for _, size, _ in mine)
        assert row["vwap"] == pytest.approx(sum(p * q for p, q, _ in mine) / volume)
        day = sum(q for (s, _), other in windows.items() if s == symbol for _, q, _ in other)
        assert row["share"] == pytest.approx(volume / day)
        wanted = sum(q if buy else -q for _, q, buy in mine) / volume
        assert row["imbalance"] == pytest.approx(wanted)
        if len(mine) >= 50 and abs(wanted) >= 0.3:
            fired.add(symbol)
    assert fired and {one["key"] for one in result.of("order imbalance")} == fired
    assert sum(row["share"] for (symbol, _), row in rows.items() if symbol == "BTCUSDT") == pytest.approx(1)


@pytest.mark.parametrize(
    ("bought", "sold", "why"),
    [
        (90.0, 10.0, "80 % more was bought: 90 bought, 10 sold: at least 0.8"),
        (10.0, 90.0, "80 % more was sold: 10 bought, 90 sold: at least 0.8"),
        (None, 5.0, "100 % more was sold: 0 bought, 5 sold: at least 0.8"),
        (5.0, None, "100 % more was bought: 5 bought, 0 sold: at least 0.8"),
        (60.0, 40.0, None),
        (None, None, None),
    ],
)
def test_one_side_alone_fires_either_way(bought: float | None, sold: float | None, why: str | None) -> None:
    rule = OrderImbalance("imbalance", at_least=0.8, support={"trades": 3})
    row = Row({"symbol": "A"}, 0, 1, {"bought": bought, "sold": sold, "trades": 3})
    assert [one.why for one in alerts_of(rule, [row])] == ([] if why is None else [why])
    assert not alerts_of(rule, [Row({"symbol": "A"}, 0, 1, {**row.answers, "trades": 2})])


def test_nothing_traded_is_no_balance() -> None:
    assert imbalance(0.0, None) is None
