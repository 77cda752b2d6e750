"""Silence against a host's own rhythm."""

from __future__ import annotations

import json
from typing import Any

import pytest

from streamgauge.apps.logs.silence import Silence
from streamgauge.operators.rules.row import Row

MINUTE = 60_000_000


def reported(times: list[int], end: int, **given: Any) -> list[tuple[str, int]]:
    """State and minute of what is reported of a host with rows in these minutes, restarted after each."""
    rule = Silence("silence", **{"longer": "1h", **given})
    state, alerts = rule.begin(), []
    for at in times:
        row = Row({"host": "web"}, at * MINUTE, (at + 1) * MINUTE, {})
        alerts += rule.window(state, [row], at * MINUTE, (at + 1) * MINUTE, MINUTE)
        state = json.loads(json.dumps(state))
    alerts += rule.advance(state, end * MINUTE, MINUTE)
    return [(alert.state, alert.at_us // MINUTE) for alert in alerts]


def test_a_host_that_logs_every_minute_is_silent_after_an_hour() -> None:
    assert reported(list(range(30)), 200) == [("fired", 90)]
    assert reported([*range(30), 150], 160) == [("fired", 90), ("cleared", 151)]


def test_a_host_that_pauses_is_silent_after_far_longer_pauses() -> None:
    hours = [60 * n for n in range(20)]
    assert reported(hours, 19 * 60 + 200) == []
    assert reported(hours, 19 * 60 + 400) == [("fired", 19 * 60 + 1 + 4 * 59)]


def test_a_host_that_is_hardly_known_is_never_silent() -> None:
    assert reported(list(range(11)), 5000) == []
    assert reported(list(range(11)), 5000, warm=11) == [("fired", 71)]


def test_a_host_that_is_gone_is_forgotten() -> None:
    rule = Silence("silence", longer="1h", forget="1d")
    state = rule.begin()
    list(rule.window(state, [Row({"host": "a"}, 0, MINUTE, {})], 0, MINUTE, MINUTE))
    list(rule.advance(state, 2000 * MINUTE, MINUTE))
    assert state["keys"] == {}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"longer": "0s"}, "got '0s'"),
        ({"longer": "1h", "times": 0}, "times must be a number ≥ 1"),
        ({"longer": "1h", "warm": 0}, "warm must be an integer ≥ 1"),
        ({"longer": "1h", "forget": "1h"}, "forget must be longer than longer"),
    ],
)
def test_wrong_fields_are_named(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Silence("silence", **given)
