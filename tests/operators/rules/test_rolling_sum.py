"""Sums over several windows against the same in plain Python."""

from __future__ import annotations

import random
from datetime import timedelta

import pytest

from streamgauge import StreamTester
from streamgauge import sum as total
from streamgauge.operators.rules.row import Row
from streamgauge.rules import Alerting, RollingSum

from .plain import MINUTE, NOON, ROWS, Kept, minute_of, row

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
    with pytest.raises(ValueError, match="the rule 'n': over is ''"):
        RollingSum("n", value="bad", at_least=5)
