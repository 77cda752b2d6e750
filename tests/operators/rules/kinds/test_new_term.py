"""New terms against the same in plain Python, over the whole past."""

from __future__ import annotations

import json
import random
from datetime import timedelta

import pytest

from streamgauge import StreamTester, top_k
from streamgauge.operators.rules.row import Row
from streamgauge.rules import Alerting, NewTerm

from ..plain import MINUTE, NOON, ROWS, Kept, minute_of, row

BY_KEY = ROWS.group_by("key").tumbling("1m").agg(tags=top_k("key"))


def feed(seed: int, minutes: int = 200) -> list[dict]:
    """Keys that come ever more rarely: half of all rows are of one, a quarter of the next."""
    dice = random.Random(seed)
    collected = []
    for second in range(0, minutes * 60, 13):
        key = min(int(dice.expovariate(0.5)), 12)
        collected.append(row(second / 60, f"k{key}"))
    return collected


def plain(fed: list[dict], learn: int, forget: int | None, most: int) -> list[tuple[str, float]]:
    """By a look at all windows before, for each key of each window, in minutes."""
    windows: dict[int, list[str]] = {}
    for one in fed:
        minute = int((one["at"] - NOON.replace(tzinfo=None)).total_seconds() // 60)
        windows[minute] = sorted({*windows.get(minute, []), one["key"]})
    reported, first = [], min(windows)
    seen: list[tuple[int, str]] = []  # every sight of a term, in order
    for minute in sorted(windows):
        kept = known(seen, most)
        for key in windows[minute]:
            last = kept.get(key)
            fresh = last is None or (forget is not None and minute - last > forget)
            if fresh and minute - first >= learn:
                reported.append((key, minute + 1.0))
            seen.append((minute + 1, key))
            kept = {**kept, key: minute + 1}
    return reported


def known(seen: list[tuple[int, str]], most: int) -> dict[str, int]:
    """The terms that were seen last, as many as are remembered."""
    last: dict[str, int] = {}
    for minute, key in seen:
        last.pop(key, None)
        last[key] = minute
    return dict(list(last.items())[-most:])


@pytest.mark.parametrize(("learn", "forget", "most"), [(30, None, 100), (10, 25, 100), (20, None, 13)])
def test_terms_are_reported_once_as_in_plain_python(learn: int, forget: int | None, most: int) -> None:
    kept, fed = Kept(), feed(learn)
    rule = NewTerm("new", learn=f"{learn}m", forget=f"{forget or 0}m", most=most)
    tester = StreamTester(BY_KEY, sinks=[Alerting([rule], to=[kept])], start=NOON + timedelta(days=1))
    for low in range(0, len(fed), 37):
        tester.feed(fed[low : low + 37])
        tester.restart()
    tester.finish()
    tester.advance(60)
    alerts = [(str(alert.plain_key), minute_of(alert)) for alert in kept.alerts]
    assert alerts == plain(fed, learn, forget, most) and alerts


def test_memory_is_bounded_and_what_was_forgotten_is_said() -> None:
    rule = NewTerm("new", learn="1m", most=50)
    state = rule.begin()
    collected = []
    for minute in range(300):
        one = Row({"key": f"term {minute}"}, minute * MINUTE, (minute + 1) * MINUTE, {})
        collected += rule.window(state, [one], minute * MINUTE, (minute + 1) * MINUTE, MINUTE)
        state = json.loads(json.dumps(state))
        assert len(state["keys"]) <= 50
    assert len(collected) == 299 and collected[40].why == "first seen, after 1m of learning"
    assert collected[-1].why == "first seen, after 1m of learning; 249 terms beyond 50 were forgotten"


def test_items_of_a_list_are_terms_and_rare_ones_show_nothing() -> None:
    kept = Kept()
    rule = NewTerm("tag", learn="2m", value="tags", each=True, least=2)
    stream = ROWS.tumbling("1m").agg(tags=top_k("key"))
    tester = StreamTester(stream, sinks=[Alerting([rule], to=[kept])], start=NOON + timedelta(days=1))
    for minute, keys in enumerate(["aa", "ab", "abc", "bb", "ccaabb"]):
        tester.feed([row(minute + place / 60, key) for place, key in enumerate(keys)])
    tester.finish()
    assert [(a.plain_key, minute_of(a), a.value) for a in kept.alerts] == [("b", 4.0, 2.0), ("c", 5.0, 2.0)]
    assert kept.alerts[0].why == "tags is 2, first seen, after 2m of learning"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "the rule 'n': learn: '' is not a duration"),
        ({"learn": "0s"}, "learn must be a duration such as '1d', got '0s'"),
        ({"learn": "1d", "forget": "1h"}, "forget is '1h', so terms are forgotten before learning ends"),
        ({"learn": "1d", "most": 0}, "most must be an integer ≥ 1, got 0"),
        ({"learn": "1d", "each": True}, "each and least are about a value"),
        ({"learn": "1d", "value": "n", "least": 0}, "least must be a number above 0, got 0"),
    ],
)
def test_wrong_fields_are_named(given: dict, said: str) -> None:
    with pytest.raises(ValueError) as refused:
        NewTerm("n", **given)
    assert said in str(refused.value)


def test_beyond_a_cap_new_terms_are_reported_together() -> None:
    from streamgauge.operators.rules.row import Row
    from streamgauge.rules import NewTerm

    hour = 3_600_000_000
    rule, kept = NewTerm("new", learn="1h", cap=2, digest="1d"), []
    state = rule.begin()
    for at, names in {0: "a", 2: "bcde", 3: "b", 25: "f", 60: "a"}.items():
        rows = [Row({"term": name}, at * hour, (at + 1) * hour, {}) for name in names]
        kept += rule.window(state, rows, at * hour, (at + 1) * hour, hour)
        kept += rule.advance(state, (at + 1) * hour, hour)
    kept += rule.advance(state, 100 * hour, hour)
    assert [(alert.key, alert.at_us // hour, alert.value) for alert in kept] == [
        (("b",), 3, None),
        (("c",), 3, None),
        ((), 24, 2.0),
        (("f",), 26, None),
    ]
    assert kept[2].why == "2 more, first seen in 1d: d; e"
    with pytest.raises(ValueError, match="cap must be an integer"):
        NewTerm("new", learn="1h", cap=-1)
