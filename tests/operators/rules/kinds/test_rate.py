"""Rates of counters that are reset and wrap, against rates that are known."""

from __future__ import annotations

import json
import random

import pytest

from streamgauge.operators.rules.row import Row
from streamgauge.rules import Alert, Rate

SECOND = 1_000_000


def alerts_of(rule: Rate, counts: list[int]) -> list[Alert]:
    state, alerts = rule.begin(), []
    for number, count in enumerate(counts):
        at = number * 10 * SECOND
        alerts += rule.window(state, [Row({"port": "a"}, at, at, {"octets": count})], at, at, 0)
        state = json.loads(json.dumps(state))
    return alerts


@pytest.mark.parametrize("bits", [32, 64])
def test_only_the_bursts_are_past_the_limit(bits: int) -> None:
    dice = random.Random(bits)
    # Floats of 53 bits count in steps of 2^11 near 2^64.
    unit = 1 if bits == 32 else 2**20
    total, counts, bursts = 2**bits - 40_000 * unit, list[int](), list[int]()
    for number in range(500):
        burst = dice.random() < 0.02 and number > 0
        total += dice.randrange(20_000, 30_000) * unit if burst else dice.randrange(0, 9_000) * unit
        if burst:
            bursts.append(number)
        counts.append(total % 2**bits)
    counts += [7 * unit, 9 * unit, 9 * unit]  # it was reset
    alerts = alerts_of(Rate("busy", value="octets", above=1_000 * unit, every=True), counts)
    assert [alert.at_us // (10 * SECOND) for alert in alerts] == bursts
    assert len(bursts) > 5


def test_a_counter_that_stands_still() -> None:
    counts = [0, 50, 100, 100, 100, 100, 150]
    rule = Rate("stuck", value="octets", at_most=0, hold="20s", rate="1m", unit="B")
    assert [(one.state, one.at_us // SECOND, one.why) for one in alerts_of(rule, counts)] == [
        ("fired", 50, "octets grows by 0 B per 1m: at most 0 for 20s"),
        ("cleared", 60, "octets grows by 300 B per 1m: back from at most 0"),
    ]


def test_keys_are_forgotten() -> None:
    rule = Rate("busy", value="octets", above=1)
    state = rule.begin()
    list(rule.window(state, [Row({"port": "a"}, 0, 0, {"octets": 1})], 0, 0, 0))
    for day in range(6):
        list(rule.advance(state, day * 86_400 * SECOND, 0))
    assert state["keys"] == {}


def test_wrong_fields_are_refused() -> None:
    with pytest.raises(ValueError, match="rate must be longer than 0"):
        Rate("busy", value="octets", above=1, rate="0s")
    with pytest.raises(ValueError, match="absent doesn't apply"):
        Rate("busy", value="octets", above=1, absent=0)
