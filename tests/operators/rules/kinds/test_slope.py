"""Slopes against the median of all pairs in plain Python, their interval against lines with noise."""

from __future__ import annotations

import random
from datetime import timedelta
from itertools import combinations
from statistics import median

import numpy as np
import pytest

from streamgauge import StreamTester
from streamgauge.operators.rules.kinds.slope import theil_sen
from streamgauge.operators.rules.row import Row
from streamgauge.rules import Alerting, Slope

from ....cases import each
from ..plain import MINUTE, NOON, READINGS, WINDOWS, Kept, minute_of, row


@pytest.mark.slow
@pytest.mark.parametrize("restarts", [False, True])
def test_a_leak_fires_at_the_window_where_the_median_of_all_pairs_is_past_the_limit(restarts: bool) -> None:
    dice, kept = random.Random(3), Kept()
    leaking = {minute: 300 + (minute - 60) * 2.0 * (60 <= minute < 120) for minute in range(180)}
    values = {minute: value + dice.gauss(0, 5) for minute, value in leaking.items()}
    values |= dict.fromkeys(range(5, 180, 30), 5000.0)
    rule = Slope("leak", value="value", above=1, clear=0.2, over="30m", rate="1m", least=10)
    tester = StreamTester(WINDOWS, sinks=[Alerting([rule], to=[kept])], start=NOON + timedelta(days=1))
    for minute, value in values.items():
        tester.feed([row(minute + 0.5, "a", value)])
        if restarts:
            tester.restart()
    tester.finish()
    wanted, on = [], False
    for minute in range(180):
        mine = [(one, values[one]) for one in range(max(minute - 29, 0), minute + 1)]
        slope = median((y - b) / (x - a) for (a, b), (x, y) in combinations(mine, 2)) if len(mine) > 1 else 0
        if len(mine) >= 10 and (slope > 1 if not on else slope <= 0.2):
            on = not on
            wanted.append(("fired" if on else "cleared", minute + 1))
    assert [(alert.state, minute_of(alert)) for alert in kept.alerts] == wanted and len(wanted) == 2


def test_the_interval_holds_the_true_slope_as_often_as_it_says() -> None:
    rng = np.random.default_rng(11)
    inside = 0
    for _ in range(2_000):
        n = int(rng.integers(8, 40))
        times = np.sort(rng.choice(10_000, n, replace=False))
        slope = theil_sen(times, 0.25 * times + rng.standard_t(3, n) * 50)
        assert slope.lower <= slope.value <= slope.upper
        inside += slope.lower <= 0.25 <= slope.upper
    # 95 % within three standard deviations of 2,000 trials; the interval of few rows is wider.
    assert 0.935 <= inside / 2_000 <= 0.985


def test_a_fall_and_what_is_past_only_by_its_nearer_bound() -> None:
    noise = random.Random(1)
    rows = [Row({}, m * MINUTE, m * MINUTE, {"value": -0.5 * m + noise.gauss(0, 6)}) for m in range(40)]
    fall = Slope("fall", value="value", below=0, over="1h", rate="1m")
    surely = Slope("fall", value="value", below=0, over="1h", rate="1m", surely=True)
    alert, *_ = fall.window(fall.begin(), rows, 0, 0, 0)
    sure, *_ = surely.window(surely.begin(), rows, 0, 0, 0)
    assert alert.value is not None and alert.value < 0 and alert.at_us < sure.at_us
    assert sure.upper is not None and sure.upper < 0


def test_many_readings_take_the_memory_of_few_and_what_rests_is_forgotten() -> None:
    rule = Slope("rise", value="value", above=1e9, over="1h")
    state = rule.begin()
    rows = [Row({"key": "a"}, at, at, {"value": 1.0}) for at in range(0, 7_200_000_000, 1_000_000)]
    assert list(rule.window(state, rows, 0, 0, 0)) == []
    assert len(state["keys"]['["a"]']["memory"]["at"]) <= 121
    list(rule.advance(state, 2 * 3_600_000_000, 0))
    assert list(state["keys"]) == ['["a"]']
    list(rule.advance(state, 4 * 3_600_000_000, 0))
    assert not state["keys"]


@pytest.mark.slow
def test_readings_of_every_cut_give_the_same() -> None:
    fed = [row(minute / 4, "ab"[minute % 2], minute / 8 * (minute % 400 > 250)) for minute in range(800)]
    rule = Slope("rise", value="value", above=0.1, over="20m", rate="1m", surely=True)
    runs = []
    for cut in (1, 7, 800):
        kept = Kept()
        alerting = Alerting([rule], to=[kept], at="at")
        tester = StreamTester(READINGS, sinks=[alerting], start=NOON + timedelta(days=1))
        for low in range(0, len(fed), cut):
            tester.feed(fed[low : low + cut])
        tester.finish()
        runs.append(kept.alerts)
    assert runs[0] == runs[1] == runs[2]
    assert {(alert.plain_key, alert.state) for alert in runs[0]} == {
        (key, state) for key in "ab" for state in ("fired", "cleared")
    }


@each(
    ("given", "message"),
    [
        ({"over": "0s"}, "over must be longer than 0"),
        ({"rate": "0s"}, "rate must be longer than 0"),
        ({"least": 1}, "least must be an integer from 2 to 120, got 1"),
        ({"least": 121}, "least must be an integer"),
        ({"over": "long"}, "over: 'long' is not a duration"),
    ],
)
def test_wrong_fields_are_named(given: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Slope("rise", value="value", above=1, **given)
