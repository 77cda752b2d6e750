"""Surges against the same computed plainly; what they remember."""

from __future__ import annotations

import json
import math
import random

import pytest

from streamgauge.apps.trending.volume_surge import VolumeSurge
from streamgauge.operators.rules.row import Row

MINUTE = 60_000_000


def surge(**more: object) -> VolumeSurge:
    return VolumeSurge("surge", value="n", **{"against": "ewma", "above": 4, "over": 50, "warm": 10, **more})


def over(rule: VolumeSurge, values: list[float], pause: bool = False) -> list[int]:
    state, fired = rule.begin(), []
    for at, value in enumerate(values):
        row = Row({}, at * MINUTE, (at + 1) * MINUTE, {"n": value})
        alerts = rule.window(state, [row], row.start_us, row.at_us, MINUTE)
        fired += [alert.at_us // MINUTE - 1 for alert in alerts if alert.state == "fired"]
        state = json.loads(json.dumps(state)) if pause else state
    return fired


def plainly(values: list[float], of: int, least: float) -> list[int]:
    """Windows in which the mean of the last `of` is 4 standard deviations above the EWMA of such means."""
    past, past_mean, variance, on, fired = 0, 0.0, 0.0, False, []
    for at, value in enumerate(values):
        last = values[max(at - of + 1, 0) : at + 1]
        mean = sum(last) / len(last)
        if past >= 10 and variance > 0:
            beyond = (mean - past_mean) / math.sqrt(variance) > 4 and value >= least
            fired += [at] if beyond and not on else []
            on = beyond
        weight = max(2 / 51, 1 / (past + 1))
        difference, past = mean - past_mean, past + 1
        past_mean += weight * difference
        variance = (1 - weight) * (variance + weight * difference * difference) if past > 1 else 0.0
    return fired


@pytest.mark.parametrize("of", [1, 3, 5])
def test_surges_are_those_computed_plainly(of: int) -> None:
    dice = random.Random(of)
    values = [float(dice.randrange(20) + (90 if dice.random() < 0.03 else 0)) for _ in range(400)]
    fired = over(surge(mean_of=of, least=12), values, pause=True)
    assert fired == plainly(values, of, 12) and fired


def test_what_lasts_is_a_surge_and_a_peak_of_the_same_height_is_none() -> None:
    usual = [8.0, 12, 9, 11, 10] * 20
    assert over(surge(mean_of=3, above=5), [*usual, 14, *usual]) == []
    assert over(surge(mean_of=3, above=5), [*usual, 14, 14, 14, *usual]) == [101]


def test_windows_without_rows_count_as_absent() -> None:
    rule = surge(absent=0, mean_of=3)
    state = rule.begin()
    for at in (*range(30), 40):
        row = Row({}, at * MINUTE, (at + 1) * MINUTE, {"n": 5.0})
        list(rule.window(state, [row], row.start_us, row.at_us, MINUTE))
    (kept,) = state["keys"].values()
    assert kept["memory"]["last"] == [0.0, 0.0, 5.0] and kept["memory"]["past"]["rows"] == 41


@pytest.mark.parametrize("of", [0, 1.5, True])
def test_a_wrong_number_of_windows_is_refused(of: object) -> None:
    with pytest.raises(ValueError, match="mean_of must be an integer ≥ 1, got"):
        surge(mean_of=of)
