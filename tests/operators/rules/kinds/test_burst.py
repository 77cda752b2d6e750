"""Bursts that were put into a stream of many keys are found, and others are not."""

from __future__ import annotations

import json
import random

import numpy as np
import pytest

from streamgauge.operators.rules.row import Row
from streamgauge.rules import Alert, Burst

MINUTE = 60_000_000
HOUR = 60 * MINUTE


def rows(counts: dict[str, int], at: int) -> list[Row]:
    return [Row({"tag": tag}, at - MINUTE, at, {"n": n}) for tag, n in counts.items() if n]


def alerts_of(rule: Burst, windows: list[dict[str, int]]) -> list[Alert]:
    state, collected = rule.begin(), []
    for number, counts in enumerate(windows):
        end = (number + 1) * MINUTE
        if counts:
            collected += rule.window(state, rows(counts, end), end - MINUTE, end, MINUTE)
        state = json.loads(json.dumps(state))
    return [*collected, *rule.advance(state, len(windows) * MINUTE, MINUTE)]


def stream(seed: int, n: int = 240, tags: int = 3_000) -> tuple[list[dict[str, int]], set[tuple[str, int]]]:
    """Windows of Zipf's tags, whose total has a day's rhythm and a spread beyond Poisson's; and the bursts.

    A burst lasts four windows, of a tag that is rare, common or new.
    """
    dice, plain = np.random.default_rng(seed), random.Random(seed)
    rates = 200 / np.arange(1, tags + 1)
    result, bursts = [], set()
    for number in range(n):
        rhythm = 1 + 0.4 * np.sin(number / 240 * 2 * np.pi)
        counts = dice.poisson(rates * rhythm * dice.gamma(60, 1 / 60, tags))
        result.append({f"t{at}": int(count) for at, count in enumerate(counts) if count})
    for number in plain.sample(range(40, n - 10, 12), 12):
        tag = plain.choice([f"new{number}", f"t{plain.randrange(20, 60)}", f"t{plain.randrange(500, 3_000)}"])
        bursts.add((tag, number + 1))
        for window in result[number : number + 4]:
            window[tag] = window.get(tag, 0) + int(dice.poisson(60))
    return result, bursts


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_precision_and_recall_of_bursts_that_were_put_in(seed: int) -> None:
    windows, bursts = stream(seed)
    rule = Burst("trend", value="n", above=6, clear=2, least=20, over=60, warm=12)
    fired = {
        (alert.key[0], alert.at_us // MINUTE) for alert in alerts_of(rule, windows) if alert.state == "fired"
    }
    assert len(fired & bursts) >= 0.9 * len(bursts)
    assert len(fired & bursts) >= 0.9 * len(fired)


def test_it_is_over_when_the_key_is_gone_even_without_any_rows() -> None:
    rule = Burst("trend", value="n", above=5, least=10, warm=5)
    windows = [{"a": 5, "b": 9}] * 20 + [{"a": 90, "b": 9}] * 3 + [{}] * 4
    result = [(alert.state, alert.key, alert.at_us // MINUTE) for alert in alerts_of(rule, windows)]
    assert result[0] == ("fired", ("a",), 21) and result[1][0] == "cleared" and result[1][2] <= 24


@pytest.mark.parametrize(("daily", "mornings"), [(7, [7]), (0, [7, 31, 55, 79, 103])])
def test_what_comes_each_day_at_an_hour_is_reported_once(daily: int, mornings: list[int]) -> None:
    rule = Burst("trend", value="n", above=4, clear=2, least=10, over=12, warm=6, daily=daily)
    state, fired = rule.begin(), []
    for hour in range(24 * 5):
        counts = {"usual": 100, "morning": 400 if hour % 24 == 7 else 3, "news": 400 if hour == 80 else 3}
        end = (hour + 1) * HOUR
        window = [Row({"tag": tag}, end - HOUR, end, {"n": n}) for tag, n in counts.items()]
        alerts = rule.window(state, window, end - HOUR, end, HOUR)
        fired += [(alert.key[0], hour) for alert in alerts if alert.state == "fired"]
        state = json.loads(json.dumps(state))
    assert [hour for tag, hour in fired if tag == "morning"] == mornings
    assert [hour for tag, hour in fired if tag != "morning"] == [80]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"above": 5, "over": 0}, "over must be an integer ≥ 1, got 0"),
        ({"above": 5, "least": 0}, "least must be a number above 0, got 0"),
        ({"below": 5}, "a burst needs its limit as above or at_least"),
        ({"above": 5, "every": True}, "leave them out"),
    ],
)
def test_what_it_can_not_be_is_said(given: dict, said: str) -> None:
    with pytest.raises(ValueError) as refused:
        Burst("b", value="n", **given)
    assert said in str(refused.value)
