"""Single trades: blocks, takers, what is large for a symbol, and the order of numbers."""

from __future__ import annotations

import random

from streamgauge.apps.stocks.rules.tape import Block, LargeTrade, OutOfOrder

from ....cases import each
from .made import alerts_of, day, trade


def test_each_block_is_reported_with_its_taker() -> None:
    rows = [
        trade("2026-06-01T14:00:00", 10.0, 500.0, arrived=1),
        trade("2026-06-01T14:00:01", 10.5, 20_000.0, arrived=2),
        trade("2026-06-01T14:00:01", 10.4, 30_000.0, arrived=3),
        trade("2026-06-01T14:00:02", 10.4, 10_000.0, arrived=4, side="buy"),
        day("2026-06-02", 10.0, size=1e9),
    ]
    result = alerts_of(Block("blocks", value="size", at_least=10_000), rows)
    assert [one.plain_key for one in result] == [["A", "X", 2], ["A", "X", 3], ["A", "X", 4]]
    assert [one.why.split(":")[0] for one in result] == [
        "bought, by the tick test",
        "sold, by the tick test",
        "bought",
    ]
    assert result[0].why.endswith("20,000 at 10.5, 210,000 in all; its size is 20,000: at least 10,000")
    assert len({one.id for one in result}) == 3
    by_value = alerts_of(Block("blocks", value="value", at_least=210_000), rows)
    assert [one.value for one in by_value] == [210_000.0, 312_000.0]


def test_large_is_beyond_the_symbol_s_own_sizes() -> None:
    dice = random.Random(4)
    rows = [
        trade(
            f"2026-06-01T14:{n // 60:02d}:{n % 60:02d}",
            10.0,
            dice.uniform(1, 100) * (50 if n % 2 else 1),
            "AB"[n % 2],
            n,
        )
        for n in range(1200)
    ]
    rows += [
        trade("2026-06-01T15:00:00", 10.0, 150.0, "A", 1200),
        trade("2026-06-01T15:00:00", 10.0, 150.0, "B", 1201),
    ]
    result = alerts_of(
        LargeTrade("large", value="size", q=0.999, warm=500, above=1.2, surely=True), rows, 100
    )
    assert [one.plain_key for one in result] == [["A", "X", 1200]]
    assert "the p99.9 of 600 before was about" in result[0].why and result[0].lower > 1.2


@each("at_a_time", [1, 2, 3, 50])
@each("seed", range(5))
def test_numbers_that_fall_as_they_arrive_are_reported(seed: int, at_a_time: int) -> None:
    dice = random.Random(seed)
    numbers = sorted(dice.sample(range(1000), 50))
    sound = [trade(f"2026-06-01T14:00:{n:02d}", 10.0, arrived=n, seq=seq) for n, seq in enumerate(numbers)]
    assert not alerts_of(OutOfOrder("order"), sound, at_a_time)
    swapped = [*numbers[:20], numbers[21], numbers[20], *numbers[22:]]
    rows = [trade(f"2026-06-01T14:00:{n:02d}", 10.0, arrived=n, seq=seq) for n, seq in enumerate(swapped)]
    [result] = alerts_of(OutOfOrder("order"), rows, at_a_time)
    assert result.value == 1 and result.plain_key == ["A", "X"]
    assert result.why.endswith(f"came late: the first is {numbers[20]}, after {numbers[21]}")


def test_a_trade_that_is_delivered_late_is_reported_when_the_others_are_seen() -> None:
    rows = [
        trade("2026-06-01T14:00:00", 10.0, arrived=5, seq=1),
        trade("2026-06-01T14:00:09", 10.0, arrived=2, seq=2),
    ]
    assert [one.value for one in alerts_of(OutOfOrder("order"), rows, 1)] == [1.0]


def test_venues_and_symbols_have_numbers_of_their_own() -> None:
    rows = [
        trade("2026-06-01T14:00:00", 10.0, arrived=1, seq=9, venue="X"),
        trade("2026-06-01T14:00:01", 10.0, arrived=2, seq=3, venue="Y"),
        trade("2026-06-01T14:00:02", 10.0, symbol="B", arrived=3, seq=1),
    ]
    assert not alerts_of(OutOfOrder("order"), rows)
