"""The end of a demo for people: each app's report, and whether all that was put in was told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rich.console import Console, ConsoleOptions, RenderResult
from rich.rule import Rule
from rich.text import Text

from ..registry import app_of
from ..running.report import AppReport
from ..tables.written import plain


@dataclass(frozen=True)
class DemoReport:
    """The results of a demo's apps by name, as Rich shows them."""

    results: dict[str, Any]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for name, result in self.results.items():
            yield Rule(style="dim")
            yield AppReport(app_of(name), result)
            missing = [one for one in result["put_in"] if not one["told"]]
            if (events := len(result["put_in"])) and not missing:
                told = f"All {events} events that were" if events > 1 else "The event that was"
                yield Text(f"{told} put in {'were' if events > 1 else 'was'} told.", style="green")
            for one in missing:
                key = "" if one["key"] is None else f" of {one['key']}"
                yield Text(plain(f"Not told: {one['rule']}{key}."), style="bold red")
