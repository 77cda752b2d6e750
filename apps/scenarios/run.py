"""Run scenarios without a broker: the actual results beside the expected ones."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC
from functools import cache
from importlib import import_module
from typing import Any

from ...operators.definition.stream import Stream
from ...operators.rules.alert import Alert
from ...operators.rules.alerting import Alerting
from ...operators.rules.outlets.to_command import listed_commands
from ...operators.testing import StreamTester
from .scenario import SCENARIOS, Scenario

FIELDS = ("social", "logs", "finance", "astronomy", "things")
"""The modules in display order."""


@cache
def scenarios() -> dict[str, Scenario]:
    """Return all scenarios by name."""
    for name in FIELDS:
        import_module(f".{name}", __package__)
    return {one.name: one for name in FIELDS for one in SCENARIOS.values() if one.field == name}


def chosen(names: Iterable[str]) -> list[Scenario]:
    """Return the scenarios with these names, or of these fields; all if no name is given.

    Raises `ValueError` for an unknown name.
    """
    known, listed = scenarios(), list[Scenario]()
    for name in names:
        matching = [one for one in known.values() if name in (one.name, one.field)]
        if not matching:
            fields = ", ".join(FIELDS)
            raise ValueError(
                f"{name!r} is not a scenario; there are the fields {fields}, and {', '.join(known)}"
            )
        listed += [one for one in matching if one not in listed]
    return listed or list(known.values())


@dataclass
class Kept:
    """An outlet that stores alerts in memory."""

    alerts: list[Alert] = field(default_factory=list)

    def begin(self) -> None:
        """See `operators.rules.alerting.WritingOutlet`."""

    def write(self, alert: Alert) -> None:
        """See `operators.rules.alerting.WritingOutlet`."""
        self.alerts.append(alert)


@dataclass(frozen=True)
class ScenarioResult:
    """The result of a scenario's messages."""

    scenario: Scenario
    messages: int
    alerts: list[Alert]
    answers: Any

    @property
    def commands(self) -> list[tuple[str, Any]]:
        """The resulting commands, each with its topic."""
        rules = self.scenario.rule_list()
        sent = [one for alert in self.alerts for one in listed_commands(rules, alert)]
        return [(one["name"], one["content"]) for one in sent]

    @property
    def differences(self) -> list[str]:
        """The differences from the expected results, in words; empty if there are none."""
        return list(differences(self.scenario, self.alerts, self.commands, self.answers))


def differences(
    scenario: Scenario, alerts: Iterable[Alert], commands: Iterable[tuple[str, Any]], answers: Any
) -> Iterator[str]:
    """Return how a scenario's results, on any engine, differ from the expected ones."""
    results = {
        "alerts": [(alert.state, alert.plain_key) for alert in alerts],
        "commands": list(commands),
        "answers": answers,
    }
    wanted = {"alerts": scenario.alerts, "commands": scenario.commands, "answers": scenario.answers}
    for name, value in results.items():
        if rounded(value) != rounded(wanted[name]):
            yield f"{name}: {json.dumps(rounded(wanted[name]))} expected, got {json.dumps(rounded(value))}"


def rounded(value: Any) -> Any:
    """Convert a value for comparison: tuples to lists as in JSON, numbers to six digits."""
    if isinstance(value, list | tuple):
        return [rounded(one) for one in value]
    if isinstance(value, dict):
        return {name: rounded(one) for name, one in value.items()}
    return round(value, 6) if isinstance(value, float) else value


def run(scenario: Scenario) -> ScenarioResult:
    """Feed the messages of a scenario to its stream and rules, in this process."""
    rows, kept = scenario.rows(), Kept()
    stream = scenario.stream(Stream.from_schema(scenario.schema, time="at"))
    sinks = [alerting(scenario, kept)] if scenario.rules else []
    end = rows["at"][-1].replace(tzinfo=UTC)
    tester = StreamTester(stream, start=end, sinks=sinks)
    tester.feed(rows)
    tester.finish()
    answers = scenario.answer(tester.windows()) if scenario.answer else None
    return ScenarioResult(scenario, rows.height, kept.alerts, answers)


def alerting(scenario: Scenario, outlet: Any) -> Alerting:
    """Return the sink with a scenario's rules."""
    return Alerting(scenario.rule_list(), to=[outlet], at="at" if scenario.readings else None)
