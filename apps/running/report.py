"""The final report of a replay for people: messages by outcome, alerts with reasons, checked answers."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from rich import box
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from ...operators.formats.jsonable import jsonable
from ...operators.rendering.answers import plain
from ...operators.rendering.names import amount, visible_key, visible_name
from ...operators.rules.late_readings import described
from ...operators.table.schema import END, START
from ..app import App
from ..tables.window_rows import WindowRows

_ALERTS, _ROWS, _REASONS = 30, 12, 5


@dataclass(frozen=True)
class AppReport:
    """The result of `replayed`, for Rich."""

    app: App
    result: dict[str, Any]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        account = self.result["account"]
        yield Text(f"{self.app.title} ({self.result['engine']})", style="bold")
        parts = " + ".join(f"{n:,} {name.replace('_', '-')}" for name, n in account.items() if name != "read")
        yield Text(f"{account['read']:,} read = {parts}")
        for one in self.result["dead_letters"][:_REASONS]:
            reason = one["details"] if one["details"].startswith(one["reason"]) else one["reason"]
            yield Text(f"{one['messages']:,} × {plain(reason)}", style="yellow")
            yield Text(
                f"    the first: {plain(one['first'])}", style="dim", overflow="ellipsis", no_wrap=True
            )
        yield self._alerts()
        yield from self._commands()
        for name, rows in self.result["answers"].items():
            if rows:
                shown = f"the last {_ROWS} of {len(rows):,} rows" if len(rows) > _ROWS else ""
                yield Text("\n" + visible_name(name) + (f": {shown}" if shown else ""), style="bold")
                columns = [name for name in rows[0] if any(_says(row[name]) for row in rows)]
                yield WindowRows([_with_times({n: row[n] for n in columns}) for row in rows[-_ROWS:]])
        yield self._verdict()
        for one in self.result.get("late", ()):
            yield Text(_late(one), style="bold yellow")
        if readings := self.result.get("late_readings"):
            for sentence in described(readings):
                yield Text("\n" + plain(sentence), style="bold yellow")

    def _alerts(self) -> Table | Text:
        alerts = self.result["alerts"]
        if not alerts:
            return Text("\nnothing fired", style="dim")
        by_rule = Counter(alert["rule"] for alert in alerts)
        summary = ", ".join(f"{n:,} × {visible_name(rule)}" for rule, n in by_rule.items())
        table = _table(f"alerts: {summary}", "at (UTC)", "rule", "key", "until", "why")
        for alert in alerts[:_ALERTS]:
            key = plain(visible_key(alert["key"]))
            lasts = f"unknown since {_moment(alert['unknown'])}" if alert.get("unknown") else "–"
            until = _moment(alert["cleared"]) if alert["cleared"] else lasts
            table.add_row(_moment(alert["at"]), plain(alert["rule"]), key, until, plain(alert["why"]))
        if len(alerts) > _ALERTS:
            table.caption = f"and {len(alerts) - _ALERTS:,} more; --json has all of them"
        return table

    def _commands(self) -> Iterator[Table]:
        commands = self.result.get("commands", ())
        if not commands:
            return
        table = _table(f"commands: {len(commands):,}", "at (UTC)", "rule", "key", "to", "what")
        for one in commands[:_ALERTS]:
            key = plain(visible_key(one["key"]))
            what = one.get("refused") or json.dumps(jsonable(one["content"]), ensure_ascii=False)
            to = plain(f"{one['to']} {one['name']}")
            table.add_row(_moment(one["at"]), plain(one["rule"]), key, to, plain(what))
        yield table

    def _verdict(self) -> Text:
        if not self.result["account"]["read"]:
            return Text("\nThe recording holds no message.", style="yellow")
        if self.result["all_inside_bounds"] is None:
            return Text("\nNo message was counted, so there is nothing to compare.", style="bold yellow")
        if self.result["all_inside_bounds"]:
            return Text("\nEvery estimate that was checked lies inside its bounds.", style="green")
        return Text("\nSome estimates lie outside their bounds; --json marks them.", style="bold red")


def _late(late: dict[str, Any]) -> str:
    """Describe how many messages were late for a part, and their keys."""
    keys = ", ".join(f"{visible_name(key) or 'no key'} {n:,}" for key, n in late["of"].items())
    more = f" and {late['other_keys']:,} others" if late["other_keys"] else ""
    return (
        f"\n{amount(late['messages'], 'message')} came too late for {plain(late['part'])}, by up to "
        f"{late['seconds_behind']:,.0f} s: {plain(keys)}{more}; wait for them by --set delay="
    )


def _table(title: str, *columns: str) -> Table:
    table = Table(
        title=Text(f"\n{title}", style="bold"), title_justify="left", box=box.SIMPLE_HEAD, header_style="bold"
    )
    for column in columns:
        table.add_column(column, overflow="fold")
    table.columns[0].no_wrap = True
    return table


def _with_times(row: dict[str, Any]) -> dict[str, Any]:
    """Convert a row's window bounds to times, if they aren't yet, as in JSON."""
    return {**row, **{edge: datetime.fromisoformat(str(row[edge])) for edge in (START, END)}}


def _says(value: Any) -> bool:
    """Whether an answer has any value; for a column that a recording lacks, it has none.

    >>> [_says(value) for value in (0, None, [], {"estimate": 0.0, "lower": 0.0}, {"n": 2, "values": ["a"]})]
    [True, False, False, False, True]
    """
    if isinstance(value, dict) and value.keys() & {"estimate", "n"}:
        return bool(value.get("estimate") or value.get("n"))
    return value not in (None, [])


def _moment(text: str) -> str:
    return text.removesuffix("+00:00").replace("T", " ")
