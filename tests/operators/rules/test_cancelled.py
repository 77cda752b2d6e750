"""Readings that are cancelled: what is left of the alerts is what there is without those readings."""

from __future__ import annotations

import random
from collections import Counter
from datetime import datetime, timedelta
from typing import Any

import polars as pl
import pytest

from streamgauge import Stream, StreamTester, last
from streamgauge.rules import Alert, Alerting, Change, RollingSum, Rule, Threshold

from ...cases import seeds
from .plain import NOON, Kept

TYPES = {"at": pl.Datetime("us"), "key": pl.String, "id": pl.Int64, "value": pl.Float64, "gone": pl.Float64}
READINGS = (
    Stream.from_schema(TYPES, time="at")
    .group_by("key", "id", "at")
    .tumbling("10s", delay="10s", keep_late=True)
    .agg(value=last("value"), gone=last("gone"))
)
RULES: list[Rule] = [
    Threshold("hot", value="value", above=80, clear=50, hold="20s", release="5s", per=("key",)),
    Threshold("high", value="value", above=90, every=True),
    Change("jump", value="value", against="last", by="distance", above=60, every=True, per=("key",)),
    RollingSum("sum", value="value", over="40s", above=200, per=("key",)),
]


def readings(seed: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Readings of two keys, some of them cancelled some seconds later; and the same without these."""
    dice, coming, kept = random.Random(seed), list[tuple[float, dict[str, Any]]](), []
    for number in range(600):
        at = (NOON + timedelta(seconds=5 * number)).replace(tzinfo=None)
        row = {"at": at, "key": dice.choice("ab"), "id": number, "value": float(dice.randrange(100))}
        coming.append((5 * number, {**row, "gone": None}))
        if dice.random() < 0.8:
            kept.append({**row, "gone": None})
            continue
        later = dice.randrange(1, 120)
        cancels = {**row, "at": at + timedelta(seconds=later), "value": None, "gone": 1.0}
        coming.append((5 * number + later, cancels))
    coming.sort(key=lambda one: one[0])
    # Another key, whose readings make all windows of before final.
    end = [
        {
            "at": NOON.replace(tzinfo=None) + timedelta(seconds=s),
            "key": "z",
            "id": s,
            "value": 0.0,
            "gone": None,
        }
        for s in range(3_120, 3_240, 5)
    ]
    return [row for _, row in coming] + end, kept + end


def alerts_of(rows: list[dict[str, Any]], seed: int, lateness: str = "5m") -> list[Alert]:
    outlet, dice = Kept(), random.Random(seed)
    alerting = Alerting(RULES, to=[outlet], at="at", lateness=lateness, cancels="gone")
    tester = StreamTester(READINGS, sinks=[alerting], start=NOON + timedelta(days=1))
    while rows:
        some, rows = rows[: (cut := dice.randrange(1, 80))], rows[cut:]
        tester.feed(pl.DataFrame(some, TYPES))
        if dice.random() < 0.5:
            tester.restart()
    tester.finish()
    return outlet.alerts


def left(alerts: list[Alert]) -> Counter[tuple[Any, ...]]:
    """What was reported and not withdrawn."""
    counts: Counter[tuple[Any, ...]] = Counter()
    for alert in alerts:
        state = alert.details["withdrawn"] if alert.state == "withdrawn" else alert.state
        counts[alert.rule, state, alert.key, alert.at_us] += -1 if alert.state == "withdrawn" else 1
    return Counter({alert: n for alert, n in counts.items() if n})


@pytest.mark.parametrize("seed", seeds(2, 20))
def test_within_lateness_the_alerts_are_those_without_the_cancelled_readings(seed: int) -> None:
    coming, kept = readings(seed)
    alerts = alerts_of(coming, seed)
    assert {alert.rule for alert in alerts if alert.state == "withdrawn"} == {rule.name for rule in RULES}
    assert left(alerts) == left(alerts_of(kept, seed))


def test_after_lateness_what_fired_with_a_cancelled_reading_is_withdrawn_and_nothing_else() -> None:
    coming, _ = readings(1)
    gone = {row["id"] for row in coming if row["gone"]}
    alerts = alerts_of(coming, 1, lateness="0s")
    for rule in ("high", "jump"):
        withdrawn = {alert.key for alert in alerts if (alert.rule, alert.state) == (rule, "withdrawn")}
        fired = {alert.key for alert in alerts if (alert.rule, alert.state) == (rule, "fired")}
        # What is cancelled before its window has closed never fires.
        assert withdrawn == {key for key in fired if key[1] in gone} and withdrawn


def test_cancels_must_be_an_answer_of_readings() -> None:
    for given, said in (
        ({"at": "at", "cancels": "busted"}, "cancels is 'busted', which is not an answer of the stream"),
        ({"cancels": "gone"}, "cancels is 'gone', which is for readings"),
    ):
        with pytest.raises(ValueError, match=said):
            StreamTester(READINGS, sinks=[Alerting([RULES[1]], **given)])  # type: ignore[arg-type]


def test_while_nothing_comes_a_cancelled_reading_s_alert_is_withdrawn_at_once_and_once() -> None:
    outlet = Kept()
    tester = StreamTester(READINGS, sinks=[Alerting(RULES[1:2], to=[outlet], at="at", cancels="gone")])
    at = datetime(2026, 1, 1)
    hot = {"at": at, "key": "a", "id": 1, "value": 95.0, "gone": None}
    tester.feed([hot])
    tester.advance(60)
    tester.feed([{**hot, "at": at + timedelta(minutes=1), "value": None, "gone": 1.0}])
    tester.advance(60)
    assert [alert.state for alert in outlet.alerts] == ["fired", "withdrawn"]
    tester.feed([{**hot, "at": at + timedelta(minutes=2), "id": 2, "value": 1.0}])
    tester.advance(60)
    assert [alert.state for alert in outlet.alerts] == ["fired", "withdrawn"]
