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
from streamgauge.operators.rules.evaluation.evaluators import evaluator_of
from streamgauge.operators.rules.evaluation.key_order import KeyOrder
from streamgauge.operators.rules.row import Row
from streamgauge.rules import Absence, Alert, Alerting, Change, RollingSum, Rule, Threshold

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
        # In whole milliseconds: whether a hold ends before the next reading must not depend on rounding.
        exact = [(round(1000 * at), value) for at, value in own]
        for rule, wanted in ((HOT, (70, 55, 120_000, 60_000)), (HIGH, (90, 90, 0, 0))):
            for state, at in hysteresis(exact, *wanted):
                yield rule.name, state, key, at / 1000
        for (one, _), (two, _) in pairwise(exact):
            if two - one > 600_000:
                yield DEAD.name, "fired", key, (one + 600_000) / 1000
                yield DEAD.name, "cleared", key, two / 1000


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


@pytest.mark.slow
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


def test_a_backlog_at_the_end_of_a_feed_is_not_reported_by_halves() -> None:
    kept = Kept()
    alerting = Alerting([DEAD], to=[kept], at="at", lateness="30m")
    tester = StreamTester(READINGS, sinks=[alerting], start=NOON + timedelta(days=1))
    begin = NOON.replace(tzinfo=None)
    times = [(key, 60 * step) for step in range(60) for key in ("a", "b") if key == "a" or step < 30]
    tester.feed([{"at": begin + timedelta(seconds=at), "key": key, "value": 1.0} for key, at in times])
    silent = 60 * 29 + 600
    assert [(one.state, one.at_us / 1e6 - NOON.timestamp()) for one in kept.alerts] == [("fired", silent)]
    backlog = [begin + timedelta(seconds=60 * step) for step in range(30, 60)]
    tester.feed([{"at": at, "key": "b", "value": 1.0} for at in backlog])
    tester.finish()  # which closes the last windows by silence alone
    assert len(kept.alerts) == 1
    tester.feed([{"at": begin + timedelta(minutes=65), "key": key, "value": 1.0} for key in ("a", "b")])
    tester.finish()
    assert [one.state for one in kept.alerts[1:]] == ["withdrawn"]


@pytest.mark.parametrize(("restated", "stands"), [(None, False), (60.0, False), (92.0, True)])
def test_what_followed_from_a_reading_that_is_restated_is_withdrawn(
    restated: float | None, stands: bool
) -> None:
    """A reading with the key and time of an earlier one replaces it, and one without a value cancels it."""
    kept, begin = Kept(), NOON.replace(tzinfo=None)
    jump = Change("jump", value="value", against="last", by="distance", above=30, every=True)
    alerting = Alerting([HIGH, jump], to=[kept], at="at", lateness="30m")
    tester = StreamTester(READINGS, sinks=[alerting], start=NOON + timedelta(days=1))
    values: dict[int, float | None] = {0: 50.0, 60: 95.0, 120: 55.0}
    quiet = {180 + 60 * step: 55.0 for step in range(5)}
    for rows in (values, quiet, {60: restated}, {600: 50.0, 700: 50.0}):
        readings = [(begin + timedelta(seconds=at), value) for at, value in rows.items()]
        tester.feed([{"at": at, "key": "a", "value": value} for at, value in readings])
    tester.finish()
    events = [("high", "fired", 60), ("jump", "fired", 60), ("high", "cleared", 120), ("jump", "fired", 120)]
    said = [(one.rule, one.state, one.at_us / 1e6 - NOON.timestamp()) for one in kept.alerts]
    assert sorted(said[:4]) == sorted(events)
    withdrawn = [(rule, "withdrawn", at) for rule, _, at in events]
    assert sorted(said[4:]) == ([] if stands else sorted(withdrawn))


def test_the_readings_of_a_series_are_in_order_however_many_keys_it_has() -> None:
    """Trades with a number each, of two venues: one's clock is behind, and a batch of the other is late."""
    trades = Stream.from_schema(
        {"at": pl.Datetime("us"), "symbol": pl.String, "seq": pl.Int64, "price": pl.Float64}, time="at"
    )
    tape = trades.group_by("symbol", "seq", "at").tumbling("5s", delay="5s", keep_late=True)
    dice, begin = random.Random(5), NOON.replace(tzinfo=None)
    prices, coming = dict[str, Readings](), list[tuple[float, str, int, float]]()
    for symbol in "abcd":
        price, own = 100.0, Readings()
        for seq in range(400):
            price += dice.choice([-6.0, -2.0, 0.0, 2.0, 6.0])
            own.append((seq // 2 * 3.0, price))  # two trades at a time
            late = 40 if 100 < seq < 120 else 90 if symbol == "b" else 0
            coming.append((seq // 2 * 3.0 + late, symbol, seq, price))
        prices[symbol] = own
    coming.sort(key=lambda one: (one[0], one[1], one[2]))
    rules = [
        Change("moved", value="price", against="last", by="distance", above=5, every=True, per=("symbol",)),
        RollingSum("many", value="price", over="30s", above=2500, absent=0, per=("symbol",)),
        Threshold("high", value="price", above=120, every=True),
    ]
    kept = Kept()
    alerting = Alerting(rules, to=[kept], at="at", lateness="2m")
    tester = StreamTester(tape.agg(price=last("price")), sinks=[alerting], start=NOON + timedelta(days=1))
    for low in range(0, len(coming), 100):
        some = [
            {
                "at": begin + timedelta(seconds=prices[symbol][seq][0]),
                "symbol": symbol,
                "seq": seq,
                "price": price,
            }
            for _, symbol, seq, price in coming[low : low + 100]
        ]
        tester.feed(some)
        tester.restart()
    tester.feed([{"at": begin + timedelta(hours=1), "symbol": "end", "seq": 0, "price": 0.0}])
    tester.finish()
    left = lasting([one for one in kept.alerts if one.at_us <= (NOON.timestamp() + 597) * 1e6])
    wanted = Counter[tuple[str, str, str, float]]()
    for symbol, own in prices.items():
        for seq, (at, price) in enumerate(own):
            if seq and abs(price - own[seq - 1][1]) > 5:
                wanted["moved", "fired", str([symbol, seq]), at] += 1
            if price > 120:
                wanted["high", "fired", str([symbol, seq]), at] += 1
        on = False
        for step in range(2 * len(own)):
            at = 3.0 * (step // 2)
            total = sum(
                price for number, (t, price) in enumerate(own) if at - 30 < t <= at and number <= step
            )
            if step < len(own) and (total > 2500) != on:
                on = not on
                wanted["many", "fired" if on else "cleared", symbol, at] += 1
    assert left - wanted == Counter()
    assert wanted - left == Counter()


@pytest.mark.slow
def test_of_too_many_keys_the_oldest_are_evicted_and_counted(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("streamgauge.operators.rules.evaluation.key_order.MOST_KEYS", 100)
    order = KeyOrder([evaluator_of(HIGH, readings=True)], 60_000_000, lambda alert: alert)
    for number in range(1_000):
        at = number * 1_000_000
        row = Row({"key": f"s{number}"}, at, at, {"value": 95.0})
        (fired,) = order.evaluate({(at + 5, at): [row]}, 0, True)
        assert [alert.state for alert in fired] == ["fired"]
        order.advance(at + 5, 0)
        state = order.state()
        assert len(state["latest"]) <= 100
        assert max(len(state[part]) for part in ("held", "reported", "final_at")) <= 100
    assert order.evicted + len(order.state()["latest"]) == 1_000
    assert "s999" in str(order.state()["latest"])
    assert caplog.text.count("are evicted") == 1
