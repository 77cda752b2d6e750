"""STA/LTA against the same by looking at every second, and on recorded tweets of two earthquakes."""

from __future__ import annotations

import csv
import json
import random
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from streamgauge.operators.rules.row import Row
from streamgauge.rules import Alert, StaLta

SECOND = 1_000_000


def alerts_of(rule: StaLta, counts: Mapping[int, float], upto: int, every: int = 1) -> list[Alert]:
    """What a rule says of counts by second, its state going through JSON; windows pass now and then."""
    state, collected = rule.begin(), []
    for at in range(min(counts), upto):
        begin, end = at * SECOND, (at + 1) * SECOND
        if at in counts:
            collected += rule.window(state, [Row({}, begin, end, {"n": counts[at]})], begin, end, SECOND)
        if at % every == 0:
            collected += rule.advance(state, end, SECOND)
            state = json.loads(json.dumps(state))
    return collected


def second_by_second(counts: Mapping[int, float], upto: int, clear: float, release: int) -> list[Any]:
    """The same with sums over all seconds: fires at one with a count, is over at any."""
    first, on, back, collected = min(counts), False, None, []
    for now in range(first + 1, upto + 1):
        short = sum(n for at, n in counts.items() if now - 60 <= at < now)
        known = min(max(now - first, 60), 3600)
        long = sum(n for at, n in counts.items() if now - 3600 <= at < now) * 60 / known
        ratio = short / (5 * long + 2)
        if not on and ratio >= 1 and now - 1 in counts:
            on, back = True, None
            collected.append(("fired", now))
        elif on:
            back = None if ratio > clear else now if back is None else back
            if back is not None and now - back >= release:
                on = False
                collected.append(("cleared", now))
    return collected


@pytest.mark.slow
@pytest.mark.parametrize("every", [1, 97])
@pytest.mark.parametrize(("clear", "release"), [(0.5, 0), (0.5, 40), (0.2, 200)])
def test_it_is_what_every_second_shows(clear: float, release: int, every: int) -> None:
    dice = random.Random(release)
    counts = dict.fromkeys(sorted(dice.sample(range(9_000), 60)), 1.0)
    for begin in (3_000, 3_400, 7_000):
        counts |= {begin + int(dice.expovariate(1 / 50)): float(dice.randrange(1, 4)) for _ in range(40)}
    counts = dict(sorted(counts.items()))
    rule = StaLta("quake", value="n", at_least=1, clear=clear, release=f"{release}s")
    result = [(alert.state, alert.at_us / SECOND) for alert in alerts_of(rule, counts, 10_000, every)]
    wanted = second_by_second(counts, 10_000, clear, release)
    # While nothing comes, the long average only falls: the ratio is looked at when the short one does.
    assert [one for one, _ in result] == [one for one, _ in wanted] and len(wanted) >= 4
    assert all(abs(one[1] - other[1]) <= 60 for one, other in zip(result, wanted))
    assert [at for state, at in result if state == "fired"] == [at for s, at in wanted if s == "fired"]


def test_a_busy_stream_that_only_begins_is_no_onset_and_a_forgotten_key_leaves_nothing() -> None:
    rule = StaLta("onset", value="n", at_least=1)
    assert alerts_of(rule, dict.fromkeys(range(900), 30.0), 900) == []
    state = rule.begin()
    list(rule.window(state, [Row({"k": "a"}, 0, SECOND, {"n": 1})], 0, SECOND, SECOND))
    list(rule.advance(state, 3_602 * SECOND, SECOND))
    assert state["keys"] == {}


def test_bounds_and_support() -> None:
    rows = [Row({}, 0, SECOND, {"n": {"estimate": 3.0, "lower": 1.0, "upper": 4.0}})]
    for least, surely, fires in ((3, False, True), (4, False, False), (0, True, False)):
        rule = StaLta("o", value="n", at_least=1, times=0, least=least, surely=surely)
        assert len(list(rule.window(rule.begin(), rows, 0, SECOND, SECOND))) == fires
    rule = StaLta("o", value="n", at_least=1, times=0)
    (alert,) = rule.window(rule.begin(), rows, 0, SECOND, SECOND)
    assert (alert.lower, alert.value, alert.upper) == (0.5, 1.5, 2.0) and "may be short" in alert.why


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"at_least": 1, "short": "1h"}, "short must be shorter than long, got '1h' and '1h'"),
        ({"below": 1}, "a rising rate needs its limit as above or at_least"),
        ({"at_least": 1, "absent": 0}, "absent and every don't apply here"),
        ({"at_least": 1, "times": 0, "offset": 0}, "times and offset are both 0"),
        ({"at_least": 1, "offset": -2}, "offset must be a number ≥ 0, got -2"),
    ],
)
def test_what_it_can_not_be_is_said(given: dict, said: str) -> None:
    with pytest.raises(ValueError) as refused:
        StaLta("o", value="n", **given)
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("file", "origin", "within", "most"),
    [
        ("2012_Costa_Rica", "2012-09-05T14:42:07+00:00", 233, 8),
        ("2012_Guatemala", "2012-11-07T16:35:47+00:00", 127, 6),
    ],
)
def test_earthquakes_are_reported_on_time_and_never_before(
    recordings: Path, file: str, origin: str, within: int, most: int
) -> None:
    path = recordings / "social" / f"{file}_earthquake-tweetids_entire_period.csv"
    with path.open() as lines:
        ids = [int(record[1]) for record in list(csv.reader(lines))[1:]]
    counts: dict[int, float] = {}
    for at in sorted(((one >> 22) + 1_288_834_974_657) // 1_000 for one in ids):
        counts[at] = counts.get(at, 0) + 1
    rule = StaLta("quake", value="n", at_least=1, clear=0.2, release="10m", cooldown="6h")
    result = alerts_of(rule, counts, max(counts) + 9_000, every=600)
    times = [alert.at_us / SECOND - datetime.fromisoformat(origin).timestamp() for alert in result]
    fired = [at for at, alert in zip(times, result) if alert.state == "fired"]
    assert 0 < fired[0] <= within and len(fired) <= most
