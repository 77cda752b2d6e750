"""Readings that are unlike what a sensor has at this time of the day and the week."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from itertools import pairwise

import numpy as np
import polars as pl
import pytest

from streamgauge import Stream, StreamTester, last
from streamgauge.operators.rules.evaluation.evaluator import RowByRow
from streamgauge.operators.rules.evaluation.evaluators import evaluator_of
from streamgauge.operators.rules.evaluation.key_columns import KeyColumns
from streamgauge.operators.rules.evaluation.rule_engine import RuleEngine, rule_view
from streamgauge.operators.rules.kinds.seasonal_past import UNKNOWN, measure_deviations
from streamgauge.operators.rules.window_rows import RowColumns, WindowBatch, by_window
from streamgauge.operators.table.window_groups import WindowGroups
from streamgauge.rules import Alert, Alerting, Unusual

from ..plain import Kept

DAY, MONDAY = 86_400, int(datetime(2026, 6, 1, tzinfo=UTC).timestamp())
ROWS = Stream.from_schema({"at": pl.Datetime("us"), "key": pl.String, "value": pl.Float64}, time="at")
READINGS = ROWS.group_by("key", "at").tumbling("10m", delay="1h", max_ahead=None).agg(value=last("value"))
RULE = Unusual("unusual", value="value", above=1.2, release="12h")

Change = Callable[[np.ndarray, np.ndarray], np.ndarray]


def season(times: np.ndarray) -> np.ndarray:
    """Warm days and quiet week ends, as of a building."""
    since = times - MONDAY
    day = 5 * np.sin(2 * math.pi * since / DAY) + 2 * np.sin(4 * math.pi * since / DAY)
    return np.asarray(20 + day * np.where(since // DAY % 7 >= 5, 0.4, 1.0))


def readings(seed: int, days: int = 42, every: int = 300, noise: str = "normal") -> pl.DataFrame:
    times = MONDAY + np.arange(0, days * DAY, every)
    dice = np.random.default_rng(seed)
    chance = {
        "normal": lambda: dice.normal(0, 0.5, len(times)),
        "heavy": lambda: np.clip(dice.standard_t(3, len(times)) / 2, -50, 50),
        "skewed": lambda: dice.exponential(0.5, len(times)),
    }[noise]()
    return frame(times, season(times) + chance)


def frame(times: np.ndarray, values: np.ndarray, key: str = "a") -> pl.DataFrame:
    at = pl.Series("at", (np.asarray(times) * 1_000_000).astype(np.int64)).cast(pl.Datetime("us"))
    return pl.DataFrame({"at": at, "key": [key] * len(at), "value": values})


def changed(frame: pl.DataFrame, change: Change) -> pl.DataFrame:
    """Readings whose values are a function of the days since the first and of the values."""
    days = (frame["at"].dt.epoch("s").to_numpy() - MONDAY) / DAY
    return frame.with_columns(value=pl.Series(change(days, frame["value"].to_numpy())))


def alerts_of(frame: pl.DataFrame, *rules: Unusual) -> list[Alert]:
    kept = Kept()
    tester = StreamTester(READINGS, sinks=[Alerting([*(rules or (RULE,))], to=[kept], at="at")])
    tester.feed(frame)
    tester.finish()
    return kept.alerts


def fired(frame: pl.DataFrame, rule: Unusual = RULE) -> list[float]:
    """On which days something fired, as numbers with fractions."""
    return [(one.at_us / 1e6 - MONDAY) / DAY for one in alerts_of(frame, rule) if one.state == "fired"]


def fired_by_key(frames: Mapping[str, pl.DataFrame], *rules: Unusual) -> dict[tuple[str, str], list[float]]:
    """The same of many keys at once, by rule and key, which costs hardly more than one."""
    keyed = [frame.with_columns(key=pl.lit(key)) for key, frame in frames.items()]
    days: dict[tuple[str, str], list[float]] = defaultdict(list)
    for one in alerts_of(pl.concat(keyed).sort("at", maintain_order=True), *rules):
        if one.state == "fired":
            days[one.rule, str(one.key[0])].append((one.at_us / 1e6 - MONDAY) / DAY)
    return days


def test_many_keys_at_once_are_each_alone() -> None:
    frames = {f"{seed}": readings(seed, 14, 1_800) for seed in range(3)}
    rule = Unusual("record", value="value", above=1, release="12h")
    days = fired_by_key(frames, rule)
    assert {key: days["record", key] for key in frames} == {key: fired(frames[key], rule) for key in frames}
    assert any(days.values())


@pytest.mark.slow
def test_by_chance_it_fires_as_rarely_as_it_says() -> None:
    """Of limit 1 at most on 3/(n + 1) of days, which adds up to so many events; of 1.2 hardly ever."""
    days, seeds = 42, range(3)
    bound = sum(min(3 / (min(n, 35) + 1), 1.0) for n in range(3, days))
    record = Unusual("record", value="value", above=1, release="12h")
    kinds = [(noise, every) for noise in ("normal", "heavy", "skewed") for every in (300, 3_600)]
    frames = {f"{kind} {seed}": readings(seed, days, kind[1], kind[0]) for kind in kinds for seed in seeds}
    of_key = fired_by_key(frames, record, RULE)
    for kind in kinds:
        of_records = [len(of_key["record", f"{kind} {seed}"]) for seed in seeds]
        assert np.mean(of_records) <= bound, kind
        rare = [len(of_key["unusual", f"{kind} {seed}"]) for seed in seeds]
        assert np.mean(rare) <= (2.5 if kind[0] == "heavy" else 1), kind


def test_a_shift_of_the_level_is_one_event_and_then_usual() -> None:
    frames = {f"{n}": changed(readings(n), lambda day, value: value + 9 * (day >= 30)) for n in range(2)}
    of_key = fired_by_key(frames, RULE)
    for key in frames:
        days = of_key[RULE.name, key]
        assert [day for day in days if day > 29.9] and len([day for day in days if day > 29]) == 1, days
        assert 30 <= days[-1] < 30.2


EVENTS: dict[str, tuple[float, Change]] = {
    "spike": (50.5, lambda day, value: value + 15 * (abs(day - 50.5) < 0.001)),
    "drop-out": (50.5, lambda day, value: np.where(abs(day - 50.6) < 0.1, 0.0, value)),
    "too warm for an hour of the night": (50.8, lambda day, value: value + 5 * (abs(day - 50.82) < 0.02)),
}


def test_what_is_unlike_the_season_is_one_event() -> None:
    """Once the week is known, and its first week ends, which were unlike the days before, are forgotten."""
    cases = {f"{name} {seed}": (seed, *EVENTS[name]) for name in EVENTS for seed in range(2)}
    frames = {name: changed(readings(seed, 56), change) for name, (seed, _, change) in cases.items()}
    of_key = fired_by_key(frames, RULE)
    for name, (_, at, _) in cases.items():
        days = [day for day in of_key[RULE.name, name] if 47 < day < 53]
        assert len(days) == 1 and at <= days[0] < at + 1, (name, days)


def test_a_spike_that_comes_every_day_is_usual_and_one_at_another_time_is_not() -> None:
    def spikes(day: np.ndarray, value: np.ndarray) -> np.ndarray:
        return value + 15 * (abs(day % 1 - 0.5) < 0.011) + 15 * (abs(day - 30.25) < 0.002)

    days = fired(changed(readings(3), spikes))
    assert [round(day, 2) for day in days if day > 14] == [30.25]


@pytest.mark.slow
def test_a_season_that_changes_is_learnt() -> None:
    """Summer becomes winter: the day's rhythm is turned round."""
    frame = changed(readings(1, 84), lambda day, value: np.where(day < 42, value, 40 - value))
    days = fired(frame)
    assert [day for day in days if 42 <= day < 43] and not [day for day in days if day > 49], days


@pytest.mark.slow
def test_missing_hours_late_and_repeated_readings_are_no_events() -> None:
    frame = readings(5)
    day = pl.Series((frame["at"].dt.epoch("s") - MONDAY) / DAY)
    gaps = frame.filter((day < 20) | (day > 20.4) & (day < 25) | (day > 28.3))
    twice = pl.concat([gaps, gaps.gather_every(7)]).sort("at", maintain_order=True)
    dice = np.random.default_rng(1)
    late = pl.Series(dice.uniform(0, 1_500, len(twice)) + twice["at"].dt.epoch("s").to_numpy())
    shuffled = twice[late.arg_sort().to_list()]
    alone = fired(gaps)
    assert alone == fired(twice) == fired(shuffled)
    assert len(alone) <= 1


@pytest.mark.slow
def test_a_sensor_that_never_moved_and_rounding_say_nothing() -> None:
    constant = changed(readings(0), lambda day, value: np.full(len(value), 14.2))
    once = changed(readings(0), lambda day, value: np.where(abs(day - 30.5) < 0.001, 15.0, 14.2))
    of_key = fired_by_key({"constant": constant, "once": once}, RULE)
    assert of_key[RULE.name, "constant"] == []
    assert [round(day, 1) for day in of_key[RULE.name, "once"]] == [30.5]


def test_a_broken_value_is_one_event_and_hides_nothing() -> None:
    def values(broken: float) -> Change:
        return lambda day, value: np.where(
            abs(day - 20.5) < 0.001, broken, value + 15 * (abs(day - 24.25) < 0.001)
        )

    frames = {f"{broken}": changed(readings(1), values(broken)) for broken in (65_535.0, -1e30)}
    of_key = fired_by_key(frames, RULE)
    for key in frames:
        assert [round(day, 2) for day in of_key[RULE.name, key] if day > 14] == [20.5, 24.25], key


@pytest.mark.slow
def test_a_constant_that_becomes_another_one_is_one_event_that_ends() -> None:
    def values(before: float, after: float) -> Change:
        return lambda day, value: np.where(day < 30, before, after)

    cases = ((14.2, 19.0), (0.0, 1.0), (1e9, 0.0))
    frames = [
        changed(readings(0), values(*case)).with_columns(key=pl.lit(f"{n}")) for n, case in enumerate(cases)
    ]
    alerts = alerts_of(pl.concat(frames).sort("at", maintain_order=True))
    for number, case in enumerate(cases):
        own = [one for one in alerts if one.key == (f"{number}",)]
        assert [(one.state, round((one.at_us / 1e6 - MONDAY) // DAY)) for one in own] in (
            [("fired", 30), ("cleared", 30)],
            [("fired", 30), ("cleared", 31)],
        ), case


def test_readings_each_second_need_no_other_setting() -> None:
    frame = readings(2, days=5, every=10)
    frame = changed(frame, lambda day, value: value + 12 * (abs(day - 4.5) < 0.0002))
    assert [round(day, 2) for day in fired(frame) if day > 4.4] == [4.5]


def test_what_lasts_shows_in_readings_of_each_second() -> None:
    """From each second to the next a mean of half an hour rises by next to nothing."""
    times = MONDAY + np.arange(0, 5 * DAY)
    day = (times - MONDAY) / DAY
    values = np.random.default_rng(1).normal(20, 0.5, len(times)) + 3 * ((day > 4.3) & (day < 4.32))
    memory = KeyColumns(UNKNOWN)
    places = np.repeat(memory.add(["a"]), len(times))
    measured = measure_deviations(memory, places, times * 1_000_000, values, 300, 1.2)
    unlike = (measured[0] > 1.2) & (measured[1] >= 1_800)
    assert not unlike[day < 4.3].any()
    first = int(np.flatnonzero(unlike)[0])
    assert day[first] < 4.31


@pytest.mark.slow
def test_an_event_hides_none_of_the_next_day() -> None:
    """Whether it is one reading or an hour of them."""

    def events(long: float) -> Change:
        return lambda day, value: (
            value + 60 * ((day > 50.3) & (day < 50.3 + long)) + 15 * (abs(day - 51.25) < 0.002)
        )

    frames = {f"{long}": changed(readings(6, 60), events(long)) for long in (0.004, 0.04)}
    of_key = fired_by_key(frames, RULE)
    for key in frames:
        assert [round(day, 1) for day in of_key[RULE.name, key] if 49 < day < 53] == [50.3, 51.2], key


@pytest.mark.slow
def test_what_is_not_finite_or_huge_harms_nothing() -> None:
    frame = changed(
        readings(4),
        lambda day, value: np.where(abs(day - 10.5) < 0.01, 1e308, np.where(day < 0.1, -1e308, value)),
    )
    alerts = alerts_of(frame)
    assert all(math.isfinite(alert.value or 0) for alert in alerts)
    odd = frame.with_columns(value=pl.when(pl.col("at").dt.day() == 9).then(math.nan).otherwise("value"))
    assert all(math.isfinite(alert.value or 0) for alert in alerts_of(odd))


def test_it_says_why() -> None:
    frame = changed(readings(0), lambda day, value: value + 15 * (abs(day - 30.5) < 0.001))
    rule = Unusual("unusual", value="value", above=1.2, release="12h", unit="°C")
    (why,) = [
        one.why
        for one in alerts_of(frame, rule)
        if one.state == "fired" and one.at_us / 1e6 > MONDAY + 28 * DAY
    ]
    numbers = re.fullmatch(
        r"value is (\S+) °C, (\S+) °C above what it was lately at this time of the (?:day|week), (\S+) °C; "
        r"the largest deviation of 30 days was (\S+) °C, times (\S+): above 1.2",
        why,
    )
    assert numbers, why
    value, apart, usual, before, times = map(float, numbers.groups())
    assert value == pytest.approx(35, abs=2) and usual == pytest.approx(20, abs=2)
    assert apart == pytest.approx(value - usual, rel=0.01) and times == pytest.approx(
        apart / before, rel=0.01
    )


@pytest.mark.slow
def test_days_are_those_of_its_zone() -> None:
    """What is usual at eight in Rome is so by the clock, before and after it is put forward."""
    times = int(datetime(2026, 2, 22, tzinfo=UTC).timestamp()) + np.arange(0, 42 * DAY, 300)
    local = pl.Series((times * 1_000_000).astype(np.int64)).cast(pl.Datetime("us", "UTC"))
    hours = local.dt.convert_time_zone("Europe/Rome").dt
    rush = ((hours.hour() == 8) & (hours.minute() < 30)).to_numpy()
    values = np.random.default_rng(0).normal(20, 0.5, len(times)) + 10 * rush
    shift = datetime(2026, 3, 29, tzinfo=UTC).timestamp() * 1e6
    zones = {"Europe/Rome": False, "UTC": True}
    rules = [Unusual(zone, value="value", above=1.2, release="12h", zone=zone) for zone in zones]
    alerts = [one for one in alerts_of(frame(times, values), *rules) if one.state == "fired"]
    for zone, expected in zones.items():
        after = [one for one in alerts if one.rule == zone and shift < one.at_us < shift + DAY * 1e6]
        assert bool(after) == expected, zone


def test_rows_one_by_one_and_restarts_say_the_same_as_columns() -> None:
    table = StreamTester(READINGS)
    for key, seed in (("a", 1), ("b", 2)):
        table.feed(readings(seed, 12, 1_800).with_columns(key=pl.lit(key)))
    table.finish()
    groups = WindowGroups.of_table(table.tables().to_arrow())
    rules = [Unusual("unusual", value="value", above=1.05, warm=100, zone="Asia/Kathmandu")]
    view = rule_view(rules, groups.schema, "at")
    by_columns = RuleEngine(rules, view)
    assert not isinstance(evaluator_of(rules[0]), RowByRow)
    one_by_one = RowByRow(rules[0])
    alerts: list[Alert] = []
    cuts = np.flatnonzero(np.diff(groups.starts, prepend=groups.starts[0] - 1)).tolist()
    for number, (start, end) in enumerate(pairwise([*cuts, len(groups)])):
        alerts += by_columns.evaluate(groups.slice(start, end), final=True)
        if number % 100 == 0:
            state, by_columns = by_columns.state(), RuleEngine(rules, view)
            by_columns.restore(state)
    columns = RowColumns(groups, view.keys, view.answers, view.at)
    batch = WindowBatch(by_window(columns, slice(0, len(groups))))
    assert alerts == [one.alert for one in one_by_one.evaluate(batch, 0, False)]
    assert len(alerts) > 4


def test_a_key_takes_three_kilobytes() -> None:
    memory = KeyColumns(UNKNOWN)
    size = sum(memory[name][0].nbytes for name in UNKNOWN)
    assert 2_000 <= size <= 3_072


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"above": 0.5}, "a number ≥ 1"),
        ({"below": 2}, "a number ≥ 1"),
        ({"above": 2, "warm": 0}, "warm must be an integer ≥ 1, got 0"),
        ({"above": 2, "zone": "Rome"}, "got 'Rome'"),
        ({"above": 2, "each": True}, "each doesn't apply"),
        ({"above": 2, "absent": 0}, "absent doesn't apply"),
        ({}, "none is given"),
    ],
)
def test_what_it_cannot_have_is_named(given: dict[str, object], said: str) -> None:
    with pytest.raises(ValueError, match=f"the rule 'unusual': .*{said}"):
        Unusual("unusual", value="value", **given)  # type: ignore[arg-type]
