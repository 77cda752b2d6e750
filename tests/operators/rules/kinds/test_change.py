"""Baselines against the same in plain Python and NumPy, over the whole past."""

from __future__ import annotations

import json
import math
import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from streamgauge.operators.rules.row import Row
from streamgauge.rules import Change

from ....cases import each

HOUR = 3_600_000_000


def readings(seed: int, n: int = 300) -> list[tuple[int, float]]:
    dice = random.Random(seed)
    at, collected = 0, []
    for _ in range(n):
        at += dice.randrange(HOUR // 4, 3 * HOUR)
        collected.append((at, dice.gauss(50, 10)))
    return collected


def scores(rule: Change, given: list[tuple[int, float]]) -> list[float | None]:
    """What the rule holds against its limit, with its memory going through JSON each time."""
    memory, collected = {}, []
    for at, value in given:
        memory = json.loads(json.dumps(memory))
        row = Row({}, at, at, {"v": value})
        ((_, figure),) = rule.figures(row)
        measured = rule.measure(memory, row, figure)
        collected.append(None if measured is None else measured.figure.value)
    return collected


def past(given: list[tuple[int, float]], number: int, over: int | None, over_us: int | None) -> np.ndarray:
    before = given[:number]
    if over_us is not None:
        before = [one for one in before if one[0] >= given[number][0] - over_us]
    return np.array([value for _, value in before[-(over or len(before) or 1) :]])


@each("over", [1, 7, 500, "9h"])
@each("against", ["mean", "last", "first", "low", "high"])
def test_rows_of_the_past(against: str, over) -> None:
    given = readings(3)
    rule = Change("c", value="v", above=0, against=against, over=over, by="difference")
    pick = {"mean": np.mean, "last": lambda v: v[-1], "first": lambda v: v[0], "low": np.min, "high": np.max}
    for number, result in enumerate(scores(rule, given)):
        rows, span = (over, None) if isinstance(over, int) else (None, 9 * HOUR)
        before = past(given, number, 1 if against == "last" and rows else rows, span)
        if not len(before):
            assert result is None
        else:
            assert result == pytest.approx(given[number][1] - pick[against](before))


@pytest.mark.parametrize("by", ["z", "deviation", "times", "percent", "poisson", "distance"])
def test_scores(by: str) -> None:
    given = readings(5)
    for number, result in enumerate(scores(Change("c", value="v", above=0, over=20, by=by, warm=4), given)):
        before, value = past(given, number, 20, None), given[number][1]
        if len(before) < 4:
            assert result is None
            continue
        mean, spread = before.mean(), before.std(ddof=1)
        wanted = {
            "z": (value - mean) / spread,
            "deviation": abs(value - mean) / spread,
            "times": value / mean,
            "percent": 100 * (value - mean) / mean,
            "poisson": 2 * (math.sqrt(max(value, 0) + 0.375) - math.sqrt(mean + 0.375)),
            "distance": abs(value - mean),
        }
        assert result == pytest.approx(wanted[by])


def weighted(values: list[float], span: int) -> tuple[float, float]:
    """Mean and standard deviation with the weights written out."""
    weights = np.ones(1)
    for number in range(1, len(values)):
        new = max(2 / (span + 1), 1 / (number + 1))
        weights = np.append(weights * (1 - new), new)
    mean = float(weights @ values)
    return mean, math.sqrt(float(weights @ (np.array(values) - mean) ** 2))


def test_ewma_and_the_hours_of_the_day() -> None:
    given = readings(7)
    for against in ("ewma", "hour"):
        result = scores(Change("c", value="v", above=0, over=9, by="z", against=against), given)
        some = 0
        for number, (at, value) in enumerate(given):
            hour = (at - 1) // HOUR % 24
            values = [v for t, v in given[:number] if against == "ewma" or (t - 1) // HOUR % 24 == hour]
            mean, spread = weighted(values, 9) if values else (0.0, 0.0)
            if spread:
                some += 1
                assert result[number] == pytest.approx((value - mean) / spread)
            else:
                assert result[number] is None
        assert some > 100


def test_the_hours_are_those_of_a_zone_when_its_clocks_change() -> None:
    """Volume is high from 9 to 10 in New York: in UTC that is another hour from 2026-03-08 on."""
    rule = Change("c", value="v", above=3, by="times", against="hour", over=20, warm=3, every=True)
    rows, start = [], datetime(2026, 3, 2, tzinfo=UTC)
    for number in range(14 * 24):
        at = start + timedelta(hours=number)
        busy = at.astimezone(ZoneInfo("America/New_York")).hour == 9
        begin = int(at.timestamp()) * 1_000_000
        rows.append(Row({}, begin, begin + HOUR, {"v": 100.0 if busy else 5.0}))
    span = rows[0].start_us, rows[-1].at_us, HOUR
    assert not list((here := replace(rule, zone="America/New_York")).window(here.begin(), rows, *span))
    reported = [alert.at_us for alert in rule.window(rule.begin(), rows, *span)]
    first = int(datetime(2026, 3, 8, 14, tzinfo=UTC).timestamp()) * 1_000_000
    assert reported[0] == first
    with pytest.raises(ValueError, match="'c': zone must be a time zone such as"):
        Change("c", value="v", above=3, zone="Mars")


def test_nothing_is_said_of_nothing_and_with_too_little_support() -> None:
    constant = [(at, 5.0) for at in range(5)]
    assert scores(Change("c", value="v", above=0, by="z"), constant) == [None] * 5
    assert scores(Change("c", value="v", above=0, by="times"), [(0, 0.0), (1, 3.0)]) == [None, None]
    rule = Change("c", value="v", above=1, by="times", over=3, least=10, every=True)
    state, rows = (
        rule.begin(),
        [Row({}, at, at, {"v": v}) for at, v in enumerate([1, 2, 9, 12, float("nan"), 20])],
    )
    assert [alert.at_us for alert in rule.window(state, rows, 0, 9, 0)] == [3, 5]


def test_bounds_of_an_estimate_become_bounds_of_the_score() -> None:
    rule = Change("c", value="v", above=1.5, by="times", against="last", surely=True)
    answers = [{"estimate": e, "lower": 0.9 * e, "upper": 1.1 * e} for e in (10.0, 16.0, 28.0)]
    rows = [Row({}, at, at, {"v": answer}) for at, answer in enumerate(answers)]
    (alert,) = rule.window(rule.begin(), rows, 0, 9, 0)
    assert alert.at_us == 2 and alert.value == 1.75 and alert.lower == pytest.approx(1.575)


def test_a_key_that_is_quiet_for_long_is_forgotten() -> None:
    rule = Change("c", value="n", above=2, by="times", over=3, absent=0)
    state = rule.begin()
    for minute in range(12):
        rows = [Row({"k": "a"}, minute, minute + 1, {"n": 7})] if minute in (0, 1) else []
        rows.append(Row({"k": "b"}, minute, minute + 1, {"n": 7}))
        list(rule.window(state, rows, minute, minute + 1, 1))
    assert list(state["keys"]) == ['["b"]']
