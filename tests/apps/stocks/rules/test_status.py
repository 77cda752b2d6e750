"""Halts and silence: an event of each, and no silence while nothing may be traded."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from streamgauge.apps.stocks.rules.status import Halt, SilentSymbol
from streamgauge.operators.rules.alert import Alert
from streamgauge.operators.rules.row import Row
from streamgauge.operators.rules.rule import Rule

from .made import alerts_of, trade, us


def at(text: str, halted: float | None = None, symbol: str = "A", reason: str | None = None) -> Row:
    """A trade, or a status."""
    return trade(text, 10.0, symbol=symbol, halted=halted, reason=reason)


def heard(rule: Rule, rows: Sequence[Row], until: str) -> list[Alert]:
    """What it reports of rows as they come, its state written down and read between them."""
    state, collected = rule.begin(), []
    for row in rows:
        collected += rule.advance(state, row.at_us, 0)
        collected += rule.window(state, [row], row.at_us, row.at_us + 1, 0)
        state = json.loads(json.dumps(state))
    return [*collected, *rule.advance(state, us(until), 0)]


def said(alerts: Sequence[Alert]) -> list[tuple[Any, ...]]:
    return [(one.state, one.plain_key, one.to_dict()["at"][11:19]) for one in alerts]


def test_a_halt_is_one_event_with_its_reason() -> None:
    rows = [
        at("2026-06-01T14:00:00", 0.0),
        at("2026-06-01T14:01:00", 1.0, reason="T1"),
        at("2026-06-01T14:02:00", 1.0, reason="T2"),
        at("2026-06-01T14:03:00", 1.0, symbol="B"),
        at("2026-06-01T14:09:00", 0.0, reason="R4"),
    ]
    rule = Halt("halt", value="halted", at_least=1)
    result = alerts_of(rule, rows, 1)
    assert [(one.state, one.plain_key, one.why) for one in result] == [
        ("fired", "A", "trading is halted: T1"),
        ("fired", "B", "trading is halted: no reason is given"),
        ("cleared", "A", "trading continues: R4"),
    ]


def test_silence_fires_at_its_time_and_clears_with_the_next_trade() -> None:
    rule = SilentSymbol("silence", longer="5m")
    rows = [at("2026-06-01T14:00:00"), at("2026-06-01T14:04:00"), at("2026-06-01T14:12:00")]
    assert said(heard(rule, rows, "2026-06-01T14:14:00")) == [
        ("fired", "A", "14:09:00"),
        ("cleared", "A", "14:12:00"),
    ]
    assert said(heard(rule, rows[:1], "2026-06-01T14:05:00")) == []
    assert said(heard(rule, rows[:1], "2026-06-01T14:05:01")) == [("fired", "A", "14:05:00")]


def test_silence_during_a_halt_is_none() -> None:
    rule = SilentSymbol("silence", longer="5m")
    rows = [at("2026-06-01T14:00:00"), at("2026-06-01T14:01:00", 1.0), at("2026-06-01T14:30:00", 0.0)]
    assert not heard(rule, rows, "2026-06-01T14:34:00")
    assert said(heard(rule, rows, "2026-06-01T14:36:00")) == [("fired", "A", "14:35:00")]
    assert not heard(rule, [*rows, at("2026-06-01T14:33:00")], "2026-06-01T14:37:00")
    # Trades that are reported late come during a halt, and don't end it.
    late = [*rows[:2], at("2026-06-01T14:02:00")]
    assert not heard(rule, late, "2026-06-01T14:20:00")


def test_silence_while_the_market_is_closed_is_none() -> None:
    rule = SilentSymbol("silence", longer="10m", zone="America/New_York", hours="09:30-16:00")
    # 19:55 in UTC is 15:55 in New York; it opens at 13:30 UTC.
    rows = [at("2026-06-01T19:55:00")]
    assert not heard(rule, rows, "2026-06-02T13:35:00")
    assert said(heard(rule, rows, "2026-06-02T13:36:00")) == [("fired", "A", "13:35:00")]
    before = [at("2026-06-02T11:00:00")]
    assert said(heard(rule, before, "2026-06-02T13:50:00")) == [("fired", "A", "13:40:00")]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"longer": ""}, "longer: '' is not a duration"),
        ({"longer": "soon"}, "longer: 'soon' is not a duration"),
        ({"longer": "5m", "zone": "Mars"}, "Mars"),
        ({"longer": "5m", "hours": "9"}, "got '9'"),
    ],
)
def test_what_it_can_not_have_is_refused(given: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SilentSymbol("silence", **given)
