"""Rules that are evaluated by columns tell what they tell row by row, however windows come in batches."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import fields
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from streamgauge.operators.definition.aggregates import count, distinct, last, quantiles
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.rules.alert import Alert
from streamgauge.operators.rules.evaluation.evaluator import RowByRow
from streamgauge.operators.rules.evaluation.evaluators import evaluator_of
from streamgauge.operators.rules.evaluation.rule_engine import RuleEngine, rule_view
from streamgauge.operators.rules.packed_bytes import unpacked
from streamgauge.operators.table.window_groups import WindowGroups
from streamgauge.operators.testing import StreamTester
from streamgauge.rules import Absence, Change, Flatline, Ratio, RollingSum, Rule, Threshold

from ...cases import seeds

START, MINUTE, MINUTES = 1_767_225_600, 60_000_000, 160
ROWS = Stream.from_schema(
    {"at": pl.Datetime("us"), "k": pl.String, "zone": pl.Int64, "v": pl.Float64}, time="at"
)
WINDOWS = (
    ROWS.group_by("k", "zone")
    .tumbling("1m", max_ahead=None)
    .agg(n=count(), v=last("v"), users=distinct("v", lg_k=4), spread=quantiles("v"))
)
READINGS = ROWS.group_by("k", "zone", "at").tumbling("1m", max_ahead=None).agg(v=last("v"))
LATE = ROWS.group_by("k", "zone", "at").tumbling("1m", max_ahead=None, keep_late=True).agg(v=last("v"))
LATENESS = 4 * MINUTE

OF_BOTH = [
    Threshold("hot", value="v", above=60, clear=40, hold="2m", release="1m", cooldown="9m"),
    Threshold("high", value="v", at_least=70),
    Threshold("low", value="v", below=20, release="3m", where={"k": ["a", None]}),
    Threshold("each high", value="v", at_most=10, every=True, cooldown="3m"),
    Threshold("of the key", value="v", above=55, clear=50, per=("k",)),
    Threshold("each of the zone", value="v", above=90, per=("zone",), every=True, cooldown="1m"),
    Flatline("stuck", value="v", longer="3m", within=2),
    Flatline("stuck in the zone", value="v", longer="1m", within=25, per=("zone",), cooldown="5m"),
    Change("jump", value="v", against="last", by="distance", above=40, every=True),
    Change("often", value="v", against="last", by="distance", above=2, every=True, mute=0.1),
    Threshold("mostly", value="v", above=45, every=True, mute=0.4, cooldown="1m", per=("k",)),
    Change("percent", value="v", against="last", by="percent", above=50, per=("k",)),
    Change("fall", value="v", against="ewma", over=5, by="z", below=-1.5, clear=-0.5, warm=4),
    Change("unusual", value="v", against="hour", over=3, by="deviation", above=0.8, hold="1m", warm=3),
    Change("at home", value="v", against="hour", over=3, by="times", above=1.5, zone="Asia/Kathmandu"),
    Change("long", value="v", against="mean", over=10, by="z", above=2),
    Absence("dead", longer="4m"),
    Absence("gone", longer="2m", forget="6m", where={"zone": 1}),
]
OF_WINDOWS = [
    Threshold("few", value="n", at_most=1, report=["users"]),
    Threshold("surely many", value="users", at_least=3, clear=2, surely=True),
    Threshold("supported", value="spread.p99", above=60, support={"n": 3}),
    Threshold("absent", value="n", below=1, absent=0),
    Ratio("share", value="users", to="n", at_least=0.9, least=2, clear=0.5),
    Ratio("surely", value="users", to="n", below=0.9, surely=True),
    Change("more", value="users", against="last", by="distance", above=1, every=True, least=2),
    Change("by chance", value="n", against="ewma", by="poisson", above=1.5),
]
BY_COLUMNS = {"long", "absent"}
"""Those of above that remember too much, or too much at rest, for columns."""


def row_by_row(rule: Rule) -> Rule:
    """The same rule as a class of somebody's own would be: it sees every row."""
    kind = type(rule)

    def window(self: Any, *window: Any) -> Iterator[Alert]:
        yield from kind.window(self, *window)

    own = type(kind.__name__, (kind,), {"window": window})
    return own(**{field.name: getattr(rule, field.name) for field in fields(rule)})


@cache
def made(of: str, seed: int, share: float = 1.0) -> pa.Table:
    """The windows of rows of several keys that wander, jump, stick, stay away, and are null or NaN."""
    dice, rows, values = random.Random(seed), [], dict[str, float]()
    keys = ["a", "b", 'c"é', "d", None]
    for second in range(0, 60 * MINUTES, 9):
        key = dice.choice(keys)
        minute = second // 60
        if (key == "b" and minute % 60 > 40) or 100 < minute < 112:
            continue
        if dice.random() < 0.3:
            values[str(key)] = dice.choice([dice.gauss(50, 25), float(dice.randrange(100))])
        value = values.get(str(key))
        value = float("nan") if dice.random() < 0.02 else value
        if dice.random() < share:
            at = (START + second) * 1_000_000 + dice.choice([0, 0, 500_000])
            if of == "late" and key in ("b", "d"):  # a clock that is behind, and a way that takes long
                at -= 3 * MINUTE if key == "b" else dice.choice([0, 0, dice.randrange(6 * MINUTE)])
            rows.append((at, key, dice.randrange(2), value))
    frame = pl.DataFrame(rows, ["at", "k", "zone", "v"], orient="row").with_columns(
        pl.col("at").cast(pl.Datetime("us"))
    )
    tester = StreamTester({"windows": WINDOWS, "readings": READINGS, "late": LATE}[of])
    tester.feed(frame)
    return tester.finish().tables().to_arrow()


def cuts(groups: WindowGroups) -> list[tuple[int, int]]:
    """Where each window's rows lie."""
    begins = np.flatnonzero(np.diff(groups.starts, prepend=groups.starts[0] - 1)).tolist()
    return list(pairwise([*begins, len(groups)]))


def engine_of(
    rules: Sequence[Rule], table: pa.Table, at: str | None, lateness_us: int | None = None
) -> RuleEngine:
    return RuleEngine(rules, rule_view(rules, table.schema, at), "an app", lateness_us)


def said(alerts: Sequence[Alert]) -> list[tuple[str, ...]]:
    return [(str(alert), alert.id, json.dumps(alert.to_dict())) for alert in alerts]


CASES = [("windows", [*OF_BOTH, *OF_WINDOWS], None), ("readings", OF_BOTH, "at")]


def test_rules_are_evaluated_as_this_test_says() -> None:
    for rule in (*OF_BOTH, *OF_WINDOWS):
        assert isinstance(evaluator_of(rule), RowByRow) == (rule.name in BY_COLUMNS), rule
        assert isinstance(evaluator_of(row_by_row(rule)), RowByRow), rule


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds(1, 10))
@pytest.mark.parametrize(("of", "rules", "at"), CASES, ids=["windows", "readings"])
def test_any_batches_and_restarts_give_what_single_windows_give_row_by_row(
    of: str, rules: list[Rule], at: str | None, seed: int
) -> None:
    table, dice = made(of, seed), random.Random(seed)
    groups, plain = WindowGroups.of_table(table), engine_of(list(map(row_by_row, rules)), table, at)
    wanted = [alert for cut in cuts(groups) for alert in plain.evaluate(groups.slice(*cut), final=True)]
    end = int(groups.ends.max()) + 10 * MINUTE
    wanted += plain.advance(end, end)
    if seed == 0:  # with others, rules that need a coincidence may say nothing
        assert {alert.rule for alert in wanted} >= {rule.name for rule in rules} - {"surely many"}
    for most in (1, 1_000):
        engine, alerts, windows = engine_of(rules, table, at), list[Alert](), cuts(groups)
        while windows:
            some = [windows.pop(0) for _ in range(min(len(windows), dice.randint(1, most)))]
            alerts += engine.evaluate(groups.slice(some[0][0], some[-1][1]), final=True)
            if dice.random() < 0.2:
                kept, engine = engine.state(), engine_of(rules, table, at)
                engine.restore(kept)
        alerts += engine.advance(end, end)
        assert said(alerts) == said(wanted)


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds(1, 10))
@pytest.mark.parametrize(("of", "rules", "at"), CASES, ids=["windows", "readings"])
def test_windows_that_come_again_and_silences_are_the_same_both_ways(
    of: str, rules: list[Rule], at: str | None, seed: int
) -> None:
    """Some batches come first without all of their rows, for now, and then whole and for good."""
    whole, part = (WindowGroups.of_table(made(of, seed, share)) for share in (1.0, 0.5))
    engines = [engine_of(list(map(row_by_row, rules)), whole.table, at), engine_of(rules, whole.table, at)]
    dice, alerts = random.Random(seed), [list[Alert](), list[Alert]()]
    windows = cuts(whole)
    while windows:
        some = [windows.pop(0) for _ in range(min(len(windows), dice.randint(1, 6)))]
        final = whole.slice(some[0][0], some[-1][1])
        first, until = int(final.ends.min()), int(final.ends.max())
        inside = np.flatnonzero((part.ends >= first) & (part.ends <= until))
        early = dice.random() < 0.4 and len(inside) > 0
        restarts = dice.random() < 0.3
        for number, engine in enumerate(engines):
            if early:
                alerts[number] += engine.evaluate(part.slice(inside[0], inside[-1] + 1), final=False)
                alerts[number] += engine.advance(first - MINUTE, until + 2 * MINUTE)
            if restarts:
                kept, rules_ = engine.state(), engine._rules
                engines[number] = engine = engine_of(rules_, whole.table, at)
                engine.restore(kept)
            alerts[number] += engine.evaluate(final, final=True)
            alerts[number] += engine.advance(until, until)
    assert said(alerts[1]) == said(alerts[0])
    assert {"fired", "cleared", "withdrawn"} == {alert.state for alert in alerts[0]}


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds(1, 10))
@pytest.mark.parametrize("lateness", [0, LATENESS])
def test_late_readings_give_the_same_in_any_batches_and_restarts_and_both_ways(
    lateness: int, seed: int
) -> None:
    rules = [*OF_BOTH, RollingSum("sum", value="v", over="5m", above=250, absent=0)]
    table, dice = made("late", seed), random.Random(seed)
    groups = WindowGroups.of_table(table)
    plain = engine_of(list(map(row_by_row, rules)), table, "at", lateness)
    end = int(groups.ends.max()) + 20 * MINUTE
    wanted = [alert for cut in cuts(groups) for alert in plain.evaluate(groups.slice(*cut), final=True)]
    wanted += plain.advance(end, end)
    states = {"fired", "cleared"} | ({"withdrawn"} if lateness else set())
    assert {alert.state for alert in wanted} == states
    assert any("detected_late" in alert.details for alert in wanted)
    for most in (1, 1_000):
        engine, alerts, windows = engine_of(rules, table, "at", lateness), list[Alert](), cuts(groups)
        while windows:
            some = [windows.pop(0) for _ in range(min(len(windows), dice.randint(1, most)))]
            alerts += engine.evaluate(groups.slice(some[0][0], some[-1][1]), final=True)
            if dice.random() < 0.2:
                kept, engine = engine.state(), engine_of(rules, table, "at", lateness)
                engine.restore(kept)
            if dice.random() < 0.3:
                alerts += engine.advance(*[int(groups.ends[some[-1][0]])] * 2)
        alerts += engine.advance(end, end)
        assert said(alerts) == said(wanted)


def test_a_damaged_state_is_refused() -> None:
    table = made("readings", 0)
    engine = engine_of([Absence("dead", longer="4m")], table, "at")
    engine.evaluate(WindowGroups.of_table(table), final=True)
    kept = json.loads(engine.state())
    for damaged in ("", "AAAA", kept["rules"]["dead"][1]["columns"]["on"]):
        kept["rules"]["dead"][1]["columns"]["seen"] = damaged
        with pytest.raises(ValueError, match=r"column|reshape|buffer"):
            engine.restore(json.dumps(kept))


def test_a_state_that_lists_its_keys_is_restored() -> None:
    """As earlier versions stored it."""
    table = made("readings", 0)
    rules = [
        Absence("dead", longer="4m"),
        Change("jump", value="v", against="last", by="distance", above=40, every=True),
    ]
    engine, again = (engine_of(rules, table, "at") for _ in range(2))
    engine.evaluate(WindowGroups.of_table(table), final=True)
    kept = json.loads(engine.state())
    for _, known in kept["rules"].values():
        known["keys"] = json.loads(unpacked(known["keys"]))
        assert '["a",1]' in known["keys"]
    again.restore(json.dumps(kept | {"form": 2}))
    assert again.state() == engine.state()


def test_a_state_of_another_form_is_refused() -> None:
    table = made("readings", 0)
    engine = engine_of(OF_BOTH, table, "at")
    kept = json.loads(engine.state())
    with pytest.raises(ValueError, match=r"the form of a state of rules must be 2 or 3, got None"):
        engine.restore(json.dumps({name: part for name, part in kept.items() if name != "form"}))
