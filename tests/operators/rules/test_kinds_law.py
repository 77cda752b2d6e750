"""Every kind that a rules file can name keeps the law of `law`, and forgets keys or says why it does not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import EntryPoint, EntryPoints
from typing import Any

import pytest

from streamgauge.operators.rules.alert import Alert
from streamgauge.operators.rules.row import Row
from streamgauge.operators.rules.rule import LimitRule, Measured, Rule, RuleState
from streamgauge.operators.rules.toml_rules import KINDS, rules_of
from streamgauge.operators.rules.value_with_bounds import Figure
from streamgauge.rules import (
    Absence,
    Beyond,
    Burst,
    Change,
    ClockOffset,
    Flatline,
    NewTerm,
    Rate,
    Ratio,
    RollingSum,
    Slope,
    StaLta,
    Threshold,
    Unusual,
)

from ...cases import seeds
from .law import check, remembered

HOT = {"above": 60, "clear": 45}
RULES: dict[str, list[Rule]] = {
    "threshold": [
        Threshold("hot", value="v", hold="2m", release="1m", cooldown="5m", **HOT),
        Threshold("each", value="v", above=60, every=True, cooldown="3m"),
        Threshold("together", value="v", per=("k",), above=50),
    ],
    "ratio": [Ratio("share", value="n", to="all", above=0.7, clear=0.4, least=10)],
    "rollingsum": [
        RollingSum("sum", value="n", over="5m", above=150, clear=100),
        RollingSum("falling", value="n", over="5m", above=150, clear=100, hold="1m", absent=0),
    ],
    "change": [
        Change("jump", value="v", against="last", by="distance", above=30, every=True),
        Change("drift", value="v", against="ewma", over=12, by="z", above=3, clear=1, warm=5),
        Change("mean", value="v", against="mean", over=10, by="difference", above=20),
    ],
    "unusual": [Unusual("unusual", value="v", above=1.2)],
    "beyond": [Beyond("beyond", value="v", q=0.9, warm=10, above=1.2, every=True)],
    "burst": [Burst("burst", value="n", above=3, least=20, over=20, warm=5)],
    "stalta": [StaLta("quake", value="n", above=1, clear=0.9, short="2m", long="20m", times=1)],
    "slope": [Slope("leak", value="v", over="10m", above=1, rate="1m")],
    "absence": [Absence("gone", longer="4m"), Absence("forgotten", longer="4m", forget="1h")],
    "flatline": [Flatline("stuck", value="v", longer="4m", within=1)],
    "newterm": [NewTerm("new", learn="1m")],
    "clockoffset": [ClockOffset("clock", value="v", above=25, clear=10, windows=2)],
    "rate": [Rate("busy", value="octets", above=3), Rate("idle", value="octets", below=2, hold="2m")],
}
NOT_OF_READINGS = {"burst", "stalta", "clockoffset"}
NOT_OF_WINDOWS = {"unusual"}
KEEPS = {
    "absence": "a key that is gone is what it reports; `forget` ends that",
    "change": "a baseline is the key's whole past",
    "beyond": "a sketch is the key's whole past",
    "unusual": "35 days of each key",
    "flatline": "the value that the key has",
    "newterm": "terms up to `most`; `forget` ends that",
}
"""Kinds that remember keys however long they are gone, and why."""
ALL = [
    pytest.param(rule, readings, id=f"{rule.name} {'readings' if readings else 'windows'}")
    for kind, rules in RULES.items()
    for rule in rules
    for readings in (False, True)
    if kind not in (NOT_OF_READINGS if readings else NOT_OF_WINDOWS)
]


def test_every_kind_is_here() -> None:
    assert set(RULES) == set(KINDS)


@dataclass(frozen=True)
class Tide(LimitRule):
    """A kind as another package has it: how much a value rose since the key's row before."""

    def measure(self, memory: dict[str, Any], row: Row, figure: Figure) -> Measured | None:
        before, memory["value"] = memory.get("value"), figure.value
        return None if before is None else Measured(figure.map(lambda value: value - before), "rose")


@dataclass(frozen=True)
class Fifth(Rule):
    """A kind that looks at windows by itself: each key is reported in every fifth of its windows."""

    def window(
        self, state: RuleState, rows: Sequence[Row], start_us: int, end_us: int, step_us: int
    ) -> Iterator[Alert]:
        for key in sorted({str(row.key["k"]) for row in rows}):
            count = state["keys"][key] = state["keys"].get(key, 0) + 1
            if count % 5 == 0:
                yield self._alert("fired", f'["{key}"]', start_us, end_us, None, None, "fifth")


@pytest.mark.parametrize("readings", [False, True])
def test_the_law_holds_for_kinds_of_plug_ins(readings: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    points = [
        EntryPoint(name, f"{__name__}:{name.title()}", "streamgauge.rules") for name in ("tide", "fifth")
    ]
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: EntryPoints(points))
    text = """
        [[rule]]
        name = "flood"
        kind = "tide"
        value = "v"
        above = 20
        hold = "5s"
        release = "5s"
        cooldown = "5m"
        [[rule]]
        name = "fifth"
        kind = "fifth"
    """
    for rule in rules_of(text):
        assert check(rule, readings, 0, minutes=200)


@pytest.mark.parametrize("seed", seeds(1, 5))
@pytest.mark.parametrize(("rule", "readings"), ALL)
def test_alerts_depend_on_rows_and_times_alone(rule: Rule, readings: bool, seed: int) -> None:
    alerts = check(rule, readings, seed, minutes=80 if seed == 0 else 400)
    assert alerts or isinstance(rule, Unusual)  # which learns for days


@pytest.mark.parametrize(("rule", "readings"), ALL)
def test_keys_that_are_gone_are_forgotten_unless_a_kind_says_why_not(rule: Rule, readings: bool) -> None:
    kind = type(rule).__name__.lower()
    few, many = (remembered(rule, readings, keys)[1] for keys in (50, 200))
    if kind in KEEPS and not getattr(rule, "forget_us", 0):
        assert many > 2 * few  # the reason is out of date
        return
    assert many < few + 100
