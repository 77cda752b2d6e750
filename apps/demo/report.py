"""The final report of a demo for people: all apps on one screen, or each app's whole report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from rich.console import Console, ConsoleOptions, RenderResult
from rich.rule import Rule
from rich.text import Text

from ...operators.rendering.answers import plain
from ...operators.rendering.names import amount, visible_key, visible_name
from ..registry import app_of
from ..running.report import AppReport

_ALERTS = 3
"""The number of alerts shown per app, so that all apps fit on a screen."""


@dataclass(frozen=True)
class DemoReport:
    """The results of a demo's apps by name, for Rich; with `details`, all their answers."""

    results: dict[str, Any]
    details: bool = False

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for name, result in self.results.items():
            if self.details:
                yield Rule(style="dim")
            if "error" in result:
                subject = f"{name} has failed on the engine {result['engine']}: {result['error']}"
                yield Text(plain(subject), style="bold red")
                continue
            if self.details:
                yield AppReport(app_of(name), result)
            else:
                yield from _summary(name, result, console)
            missing = [one for one in result["put_in"] if not one["fired"]]
            if (events := len(result["put_in"])) and not missing:
                subject = f"All {events} events that were" if events > 1 else "The event that was"
                yield Text(f"{subject} put in fired.", style="green")
            for one in missing:
                key = "" if one["key"] is None else f" of {visible_key(one['key'])}"
                yield Text(plain(f"Did not fire: {one['rule']}{key}."), style="bold red")
        if not self.details:
            yield Text("--details shows every answer, --json gives all of it", style="dim")


def _summary(name: str, result: dict[str, Any], console: Console) -> Iterator[Text]:
    """Summarise an app's messages, its alerts with reasons, rule by rule, and the comparison with exact
    results."""
    alerts, checked = result["alerts"], list(_flags(result["answers"]))
    inside = sum(checked)
    yield Text.assemble(
        (f"{name} ({result['engine']})", "bold"),
        f": {amount(result['account']['read'], 'message')}, {amount(len(alerts), 'alert')}, ",
        (
            f"{inside:,} of {len(checked):,} estimates inside their bounds",
            "green" if inside == len(checked) else "bold red",
        ),
    )
    for alert in _chosen(alerts):
        key = "" if alert["key"] is None else f" of {visible_key(alert['key'])}"
        yield from _indented(plain(f"{visible_name(alert['rule'])}{key}: {alert['why']}"), console)
    if len(alerts) > _ALERTS:
        rules = Counter(alert["rule"] for alert in alerts)
        counts = ", ".join(f"{n:,} × {visible_name(rule)}" for rule, n in rules.items())
        yield from _indented(f"in all {counts}", console, "dim")


def _indented(text: str, console: Console, style: str = "") -> Iterator[Text]:
    """Wrap a text with an indent, and a larger one after its first line."""
    indent = "  "
    for line in Text(text).wrap(console, console.width - 4):
        yield Text(f"{indent}{line.plain.rstrip()}", style)
        indent = "    "


def _chosen(alerts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Select the first alerts of each rule, so that a frequent one doesn't hide others."""
    turns: Counter[str] = Counter()
    ranked = []
    for at, alert in enumerate(alerts):
        ranked.append((turns[alert["rule"]], at))
        turns[alert["rule"]] += 1
    return [alerts[at] for at in sorted(at for _, at in sorted(ranked)[:_ALERTS])]


def _flags(answers: Any) -> Iterator[bool]:
    """Yield whether each checked estimate lies inside its bounds."""
    if isinstance(answers, dict):
        if "inside_bounds" in answers:
            yield bool(answers["inside_bounds"])
        answers = list(answers.values())
    if isinstance(answers, list):
        for one in answers:
            yield from _flags(one)
