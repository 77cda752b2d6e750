"""Sums over several windows against the same in plain Python."""

from __future__ import annotations

import random
from datetime import timedelta

import pytest

from streamgauge import StreamTester
from streamgauge import sum as total
from streamgauge.operators.rules.row import Row
from streamgauge.rules import Alerting, RollingSum

from ..plain import MINUTE, NOON, ROWS, Kept, minute_of, row

BY_KEY = ROWS.group_by("key").tumbling("1m").agg(bad=total("bad"))


@pytest.mark.parametrize(("over", "limit"), [(10, 12), (3, 6), (1, 3)])
def test_sums_of_the_last_windows_as_in_plain_python(over: int, limit: int) -> None:
    dice, kept = random.Random(over), Kept()
    fed = [
        row(second / 60, dice.choice("aab"), bad=int(dice.random() < 0.4)) for second in range(0, 7200, 17)
    ]
    fed = [one for one in fed if not 40 < (one["at"].minute + 60 * one["at"].hour) % 90 < 55]
    rule = RollingSum("many", value="bad", at_least=limit, over=f"{over}m", absent=0)
    tester = StreamTester(BY_KEY, sinks=[Alerting([rule], to=[kept])], start=NOON + timedelta(days=1))
    for low in range(0, len(fed), 40):
        tester.feed(fed[low : low + 40])
        tester.restart()
    tester.finish()
    wanted: list[tuple[str, str, float]] = []
    on = {"a": False, "b": False}
    begin = NOON.replace(tzinfo=None)
    last = max(int((one["at"] - begin).total_seconds() // 60) for one in fed)
    for minute in range(1, last + 2):
        span = begin + timedelta(minutes=minute - over), begin + timedelta(minutes=minute)
        for key in "ab":
            mine = [one["bad"] for one in fed if one["key"] == key and span[0] <= one["at"] < span[1]]
            if (sum(mine) >= limit) != on[key]:
                on[key] = not on[key]
                wanted.append((key, "fired" if on[key] else "cleared", float(minute)))
    alerts = [(str(alert.plain_key), alert.state, minute_of(alert)) for alert in kept.alerts]
    assert sorted(alerts) == sorted(wanted) and len(alerts) > 3


def test_what_rests_is_forgotten_and_a_wrong_length_is_named() -> None:
    rule = RollingSum("many", value="bad", at_least=5, over="3m", absent=0)
    state, kept = rule.begin(), []
    for minute in range(5):
        rows = [Row({"key": "a"}, minute * MINUTE, (minute + 1) * MINUTE, {"bad": 1})] if not minute else []
        assert list(rule.window(state, rows, minute * MINUTE, (minute + 1) * MINUTE, MINUTE)) == []
        kept.append(list(state["keys"]))
    assert kept == [['["a"]']] * 3 + [[]] * 2
    with pytest.raises(ValueError, match="the rule 'n': over: '' is not a duration"):
        RollingSum("n", value="bad", at_least=5)


@pytest.mark.parametrize("restarts", [False, True])
def test_sums_of_readings_are_true_to_the_second(restarts: bool) -> None:
    dice, kept = random.Random(8), Kept()
    seconds = sorted(dice.randrange(6000) for _ in range(120))
    fed = [row(second / 60, dice.choice("aab"), bad=dice.randrange(3)) for second in seconds]
    rule = RollingSum("many", value="bad", per=("key",), at_least=6, over="4m", absent=0, clear=2)
    each = ROWS.group_by("key", "at").tumbling("1m", delay="10s").agg(bad=total("bad"))
    alerting = Alerting([rule], to=[kept], at="at")
    tester = StreamTester(each, sinks=[alerting], start=NOON + timedelta(days=1))
    for low in range(0, len(fed), 10):
        tester.feed(fed[low : low + 10])
        if restarts:
            tester.restart()
    tester.feed([row(150, "c", bad=0)])
    tester.finish()
    begin, wanted = NOON.replace(tzinfo=None), list[tuple[str, str, float]]()
    mine = {key: [(one["at"] - begin).total_seconds() for one in fed if one["key"] == key] for key in "ab"}
    for key, times in mine.items():
        on = False
        for second in sorted({*times, *(time + 240 for time in times)}):
            total_then = sum(
                one["bad"]
                for one in fed
                if one["key"] == key and second - 240 < (one["at"] - begin).total_seconds() <= second
            )
            if total_then >= 6 if not on else total_then <= 2:
                on = not on
                wanted.append((key, "fired" if on else "cleared", second / 60))
    alerts = [(str(alert.plain_key), alert.state, minute_of(alert)) for alert in kept.alerts]
    assert len(alerts) == len(wanted) > 3
    for one, other in zip(sorted(alerts), sorted(wanted)):
        assert one[:2] == other[:2] and one[2] == pytest.approx(other[2])
    assert not rule.needs_steps
