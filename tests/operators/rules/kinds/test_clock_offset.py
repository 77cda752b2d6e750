"""Clocks that are wrong, drift or are right again, of which what fires is known."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence

import pytest

from streamgauge.operators.rules.row import Row
from streamgauge.operators.rules.rule import RuleState
from streamgauge.rules import Alert, ClockOffset

MINUTE = 60_000_000
CLOCK = ClockOffset("clock", value="behind", at_least=20, clear=10)


def said(windows: Sequence[Mapping[str, float]], rule: ClockOffset = CLOCK) -> tuple[list[Alert], RuleState]:
    state, alerts = rule.begin(), []
    for minute, behind in enumerate(windows, 1):
        start, end = (minute - 1) * MINUTE, minute * MINUTE
        rows = [Row({"sensor": sensor}, start, end, {"behind": value}) for sensor, value in behind.items()]
        alerts += rule.window(state, rows, start, end, MINUTE)
        alerts += rule.advance(state, end, MINUTE)
        state = json.loads(json.dumps(state))
    return alerts, state


def brief(alerts: Sequence[Alert]) -> list[tuple[str, str, int, str]]:
    return [(one.key[0], one.state, one.at_us // MINUTE, one.why) for one in alerts]


def test_a_clock_behind_the_fleet_and_one_ahead_of_it() -> None:
    windows = [{"a": 0.1, "b": 0.3, "c": 0.2, "slow": 45.2, "fast": -3_600.0} for _ in range(8)]
    windows += [{"a": 0.1, "b": 0.3, "c": 0.2, "slow": 0.2, "fast": 0.2}]
    assert brief(said(windows)[0]) == [
        ("slow", "fired", 5, "clock is 45 s behind the others: at least 20"),
        ("fast", "fired", 5, "clock is 3,600.20 s ahead of the others: at least 20"),
        ("slow", "cleared", 9, "clock is 0 s behind the others: back from at least 20 (clear at 10)"),
        ("fast", "cleared", 9, "clock is 0 s behind the others: back from at least 20 (clear at 10)"),
    ]


def test_when_one_is_ahead_the_others_are_not_behind() -> None:
    # In a recording all readings look as old as the latest one says.
    alerts, state = said([{**dict.fromkeys("abcdef", 45.0), "fast": 0.0} for _ in range(9)])
    assert [(one.key[0], one.state) for one in alerts] == [("fast", "fired")]
    assert list(state["keys"]) == ['["fast"]']


def test_a_backlog_that_is_delivered_is_no_wrong_clock() -> None:
    backlog = [{"a": 0.0, "b": 0.0, "c": 0.0, "gateway": 7_200.0 - 60 * n} for n in range(119)]
    assert said(backlog)[0] == []


def test_one_wrong_time_is_no_wrong_clock() -> None:
    assert said([{"a": 0.0, "b": 0.0, "c": -86_400.0 if n == 7 else 0.0} for n in range(20)])[0] == []


def test_a_drift_fires_once_it_is_past_the_limit() -> None:
    alerts, _ = said([{"a": 0.0, "b": 0.0, "c": 0.5 * n} for n in range(120)])
    # The fifth window from the 41st one on, in which it is 20 s behind.
    assert [(one.state, one.at_us // MINUTE) for one in alerts] == [("fired", 45)]


def test_two_keys_are_compared_with_the_brokers_clock() -> None:
    assert [one.key for one in said([{"a": 0.2, "b": 30.0}] * 6)[0]] == [("b",)]


def test_keys_that_are_right_or_gone_are_forgotten() -> None:
    noise = random.Random(7)
    keys = [f"s{number}" for number in range(40)]
    windows: list[dict[str, float]] = [{key: noise.random() for key in keys} for _ in range(30)]
    windows[3] = {key: 1_000.0 if number < 5 else 0.0 for number, key in enumerate(keys)}
    alerts, state = said(windows)
    assert (alerts, state["keys"]) == ([], {})
    few = dict.fromkeys("abc", 0.0)
    alerts, state = said([{**few, "gone": 99.0}] * 9 + [few] * 1_500)
    assert ([one.key for one in alerts], state["keys"]) == ([("gone",)], {})


def test_wrong_fields_are_refused() -> None:
    with pytest.raises(ValueError, match="windows must be an integer"):
        ClockOffset("clock", value="behind", above=20, windows=0)
    with pytest.raises(ValueError, match="don't apply to clocks"):
        ClockOffset("clock", value="behind", above=20, per=["sensor"])
