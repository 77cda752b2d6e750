"""A value against a quantile of its key's past: as over the whole list, by hour, per symbol."""

from __future__ import annotations

import json
import math
import random

import pytest

from streamgauge.operators.rules.kinds.beyond import learn, quantile
from streamgauge.operators.rules.row import Row
from streamgauge.rules import Beyond

from ....cases import each

HOUR = 3_600_000_000


@each("q", [0.0, 0.25, 0.5, 0.9, 0.999, 1.0])
@each("draw", ["lognormal", "few", "tiny"])
def test_the_quantile_is_within_its_bounds(q: float, draw: str) -> None:
    dice = random.Random(draw)
    ways = {
        "lognormal": lambda: dice.lognormvariate(3, 2),
        "few": lambda: float(dice.randrange(1, 9)),
        "tiny": lambda: dice.random() * 1e-8 + 1e-12,
    }
    past: dict = {}
    values: list[float] = []
    for _ in range(700):
        values.append(ways[draw]())
        learn(past, values[-1])
    values.sort()
    past = json.loads(json.dumps(past))
    result = quantile(past, q)
    for rank in (math.floor(q * (len(values) - 1)), math.ceil(q * (len(values) - 1))):
        assert result.lower * (1 - 1e-9) <= values[rank] <= result.upper * (1 + 1e-9)
    assert abs(result.value / values[math.floor(q * (len(values) - 1))] - 1) <= 0.01 + 1e-9


def test_what_is_not_above_zero_counts_and_has_no_quantile() -> None:
    past: dict = {}
    for value in (0.0, -3.0, 5.0, math.inf):
        learn(past, value)
    assert past["n"] == 4 and quantile(past, 0.3) is None
    assert quantile(past, 0.7).lower <= 5 <= quantile(past, 0.7).upper


def test_it_fires_where_the_list_says_so() -> None:
    dice = random.Random(7)
    rule = Beyond("large", value="size", q=0.9, warm=20, above=1, surely=True, every=True, per=["symbol"])
    rows = [
        Row({"symbol": dice.choice("ab"), "id": at}, at, at, {"size": dice.lognormvariate(2, 1)})
        for at in range(600)
    ]
    reported = [alert.key for alert in rule.window(rule.begin(), rows, 0, 600, 0)]
    for row in rows:
        past = sorted(
            one.answers["size"] for one in rows[: row.at_us] if one.key["symbol"] == row.key["symbol"]
        )
        if len(past) >= 20:
            limit = past[math.floor(0.9 * (len(past) - 1))]
            key = (row.key["symbol"], row.at_us)
            if row.answers["size"] > past[math.ceil(0.9 * (len(past) - 1))] * 1.0203:
                assert key in reported
            if row.answers["size"] <= limit:
                assert key not in reported
    assert 20 < len(reported) < 120


def test_each_hour_has_its_own_past() -> None:
    rule = Beyond("busy", value="n", q=0.5, warm=2, above=2, hourly=True)
    values = [(1, 10.0), (2, 100.0), (25, 11.0), (26, 90.0), (49, 9.0), (50, 95.0), (73, 80.0)]
    rows = [Row({}, (at - 1) * HOUR, at * HOUR, {"n": value}) for at, value in values]
    fired = list(rule.window(rule.begin(), rows, 0, 1, 0))
    assert [alert.at_us // HOUR for alert in fired] == [73] and "p50 of this hour" in fired[0].why


@pytest.mark.parametrize(
    "wrong", [{"q": 2}, {"q": True}, {"warm": 0}, {"hourly": 1}, {"per": "symbol"}, {"per": [3]}]
)
def test_what_it_can_not_be_asked_is_said(wrong: dict) -> None:
    with pytest.raises((ValueError, TypeError), match=f"the rule 'large': {next(iter(wrong))} (is|must be) "):
        Beyond("large", value="size", above=1, **wrong)
