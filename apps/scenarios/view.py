"""Print scenarios: a summary of each, or one with its definition; or as JSON."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator
from typing import Any

from rich.console import RenderableType
from rich.syntax import Syntax
from rich.text import Text

from ...operators.rendering.answers import plain
from ...operators.watching.console import TerminalConsole
from ...operators.watching.terminal import json_line, write_json
from .run import ScenarioResult, chosen, rounded, run
from .scenario import Scenario


def show(names: Iterable[str], as_json: bool) -> bool:
    """Run scenarios and print the result of each; return whether all results are as expected.

    Raises `ValueError` for an unknown name.
    """
    listed = chosen(names)
    console = TerminalConsole(soft_wrap=True)
    if as_json:
        results = [run(one) for one in listed]
        write_json([_as_json(one) for one in results])
        return not any(one.differences for one in results)
    good, field = True, ""
    for one in listed:
        with console.status(f"{one.field}: {one.question}", spinner="dots"):
            result = run(one)
        if len(listed) > 1 and one.field != field:
            console.print(Text(one.field.capitalize(), style="bold"))
        for part in _whole(result) if len(listed) == 1 else _summary(result):
            console.print(part)
        good, field = good and not result.differences, one.field
    if len(listed) > 1:
        console.print(Text("streamgauge demo scenarios NAME shows one with its definition", style="dim"))
    return good


def _summary(result: ScenarioResult) -> Iterator[RenderableType]:
    """Print the result of one scenario in a few lines."""
    one = result.scenario
    mark, style = (" ✗ ", "red") if result.differences else (" ✓ ", "green")
    yield Text.assemble((mark, style), one.question, (f"  {one.name}", "dim"))
    for text in _outcome(result):
        yield Text(f"     {plain(text)}", no_wrap=True, overflow="ellipsis")
    for text in result.differences:
        yield Text(f"     {plain(text)}", style="bold red")


def _whole(result: ScenarioResult) -> Iterator[RenderableType]:
    """Print one scenario with its definition and its rules."""
    one = result.scenario
    yield Text(f"{one.question}: {result.messages:,} made-up messages", style="bold")
    yield ""
    yield Syntax(one.definition, "python", background_color="default")
    if one.rules:
        yield ""
        yield Syntax(textwrap.dedent(one.rules).strip(), "toml", background_color="default")
    yield ""
    for text in _outcome(result):
        yield Text(plain(text))
    for text in result.differences:
        yield Text(plain(text), style="bold red")


def _outcome(result: ScenarioResult) -> Iterator[str]:
    """Yield the alerts, commands and answers of a scenario as lines."""
    yield from map(str, result.alerts)
    for topic, content in result.commands:
        yield f"→ {topic}: {json_line(content)}"
    if result.answers is not None:
        yield json_line(rounded(result.answers))


def _as_json(result: ScenarioResult) -> dict[str, Any]:
    one: Scenario = result.scenario
    return {
        "name": one.name,
        "field": one.field,
        "question": one.question,
        "messages": result.messages,
        "alerts": [alert.to_dict() for alert in result.alerts],
        "commands": [{"topic": topic, "content": content} for topic, content in result.commands],
        "answers": result.answers,
        "differences": result.differences,
    }
