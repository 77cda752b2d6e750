"""Every key has its own clock: fleets of devices whose alerts plain Python knows."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from itertools import pairwise

import polars as pl
import pytest

from streamgauge import Stream, StreamTester, last
from streamgauge.rules import Absence, Alert, Alerting, Rule, Threshold

from .plain import NOON, Kept, hysteresis

ROWS = Stream.from_schema({"at": pl.Datetime("us"), "key": pl.String, "value": pl.Float64}, time="at")
READINGS = ROWS.group_by("key", "at").tumbling("10s", delay="10s", keep_late=True).agg(value=last("value"))
HOURS = 3
Readings = list[tuple[float, float]]
"""A device's times (seconds since noon, by its own clock) and values, in their order."""


def device(dice: random.Random, kind: str) -> tuple[Readings, list[tuple[float, int]]]:
    """A device's readings, and when each comes: its arrival and its number."""
    every = dice.choice([10, 30, 60])
    skew = {"behind": -dice.randrange(15, 300), "ahead": dice.randrange(15, 40)}.get(kind, 0)
    drift = dice.uniform(-0.01, 0.01) if kind == "drifting" else 0.0
    readings, arrivals = Readings(), list[tuple[float, int]]()
    silent = dice.randrange(1800, 7200)
    value, phase = 50.0, dice.random() * every
    for number in range(int(3600 * HOURS / every)):
        true = number * every + phase
        if kind == "silent" and silent < true < silent + 1500:
            continue
        if dice.random() < 0.1:
            value = dice.choice([40.0, 60.0, 80.0, 95.0])
        readings.append((round(true * (1 + drift) + skew, 3), value))
        arrival = true + dice.random()
        if kind in ("backlog", "shuffled") and silent < true < silent + 1200:
            arrival = silent + 1200 + (0 if kind == "backlog" else dice.uniform(0, 200))
        arrivals.append((arrival, len(readings) - 1))
    return readings, arrivals


def fleet(seed: int, devices: int) -> tuple[dict[str, Readings], list[tuple[str, float, float]]]:
    """Each device's readings, and all of them as they come."""
    dice, readings, coming = random.Random(seed), dict[str, Readings](), []
    kinds = ["steady"] * 6 + ["behind", "ahead", "drifting", "silent", "backlog", "shuffled"]
    for number in range(devices):
        key = f"{kinds[number % len(kinds)]} {number}"
        readings[key], arrivals = device(dice, kinds[number % len(kinds)])
        coming += [(arrival, key, at) for arrival, at in arrivals]
    coming.sort()
    return readings, [(key, *readings[key][at]) for _, key, at in coming]


HOT = Threshold("hot", value="value", above=70, clear=55, hold="2m", release="1m")
HIGH = Threshold("high", value="value", above=90)
DEAD = Absence("dead", longer="10m")


def lasting(alerts: list[Alert]) -> Counter[tuple[str, str, str, float]]:
    """What was reported and not withdrawn."""
    left: Counter[tuple[str, str, str, float]] = Counter()
    for alert in alerts:
        state = alert.details["withdrawn"] if alert.state == "withdrawn" else alert.state
        at = round(alert.at_us / 1e6 - NOON.timestamp(), 3)
        left[alert.rule, state, str(alert.plain_key), at] += -1 if alert.state == "withdrawn" else 1
    return Counter({one: n for one, n in left.items() if n})


def known(readings: dict[str, Readings]) -> Iterator[tuple[str, str, str, float]]:
    """What the rules must report of readings in their order."""
    for key, own in readings.items():
        for rule, wanted in ((HOT, (70, 55, 120, 60)), (HIGH, (90, 90, 0, 0))):
            for state, at in hysteresis(own, *wanted):
                yield rule.name, state, key, round(at, 3)
        for (one, _), (two, _) in pairwise(own):
            if two - one > 600:
                yield DEAD.name, "fired", key, round(one + 600, 3)
                yield DEAD.name, "cleared", key, round(two, 3)


def alerts_of(coming: list[tuple[str, float, float]], rules: list[Rule], seed: int) -> list[Alert]:
    """What rules report, with restarts in between."""
    kept, dice = Kept(), random.Random(seed)
    alerting = Alerting(rules, to=[kept], at="at", lateness="30m")
    tester = StreamTester(READINGS, sinks=[alerting], start=NOON + timedelta(days=1))
    while coming:
        some, coming = coming[: (cut := dice.randrange(1, 4000))], coming[cut:]
        frame = pl.DataFrame(
            {
                "at": [(NOON + timedelta(seconds=at)).replace(tzinfo=None) for _, at, _ in some],
                "key": [key for key, _, _ in some],
                "value": [value for _, _, value in some],
            },
            schema=ROWS.columns,
        )
        tester.feed(frame)
        if dice.random() < 0.3:
            tester.restart()
    tester.finish()
    return kept.alerts


@pytest.mark.parametrize(("devices", "seed"), [(24, 1), pytest.param(1_000, 2, marks=pytest.mark.soak)])
def test_a_fleet_of_clocks_gives_each_alert_that_plain_python_knows_and_no_other(
    devices: int, seed: int
) -> None:
    readings, coming = fleet(seed, devices)
    left = lasting(alerts_of(coming, [HOT, HIGH, DEAD], seed))
    wanted = Counter(known(readings))
    ends = {key: own[-1][0] for key, own in readings.items()}
    # Whether something follows a device's last reading depends on how long others went on.
    left = Counter({one: n for one, n in left.items() if one[3] <= ends[one[2]]})
    assert left - wanted == Counter()
    assert wanted - left == Counter()
