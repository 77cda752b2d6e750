"""A running demo in a terminal: the address of its page, and a line for each app."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from rich import box
from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.table import Table
from rich.text import Text

from ...operators.rendering.answers import plain
from ...operators.rendering.names import amount, visible_key
from ...operators.rules.alert import Alert

_LINE_SECONDS = 10.0


@dataclass(frozen=True)
class AppLook:
    """The progress of one app; `state` is what it is doing, such as starting."""

    name: str
    engine: str
    state: str
    sent: int
    alerts: Sequence[Alert]

    @property
    def fired(self) -> int:
        """The number of events that have begun, counted as in the final report."""
        return sum({"fired": 1, "withdrawn": -1}.get(alert.state, 0) for alert in self.alerts)


@dataclass(frozen=True)
class DemoView:
    """The progress of all apps at one moment, and the seconds left."""

    address: str
    left: float
    apps: Sequence[AppLook]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Text.assemble(
            ("the page: ", "bold"), (self.address, "bold cyan underline"), f"  {self._rest()}, Ctrl-C ends it"
        )
        table = Table(box=box.SIMPLE_HEAD, header_style="bold", expand=True)
        for name in ("app", "runs on", "now"):
            table.add_column(name, no_wrap=True)
        for name in ("messages", "alerts"):
            table.add_column(name, justify="right", no_wrap=True)
        table.add_column("the last alert", no_wrap=True, overflow="ellipsis", ratio=1)
        for app in self.apps:
            last = Text(_short(app.alerts[-1])) if app.alerts else ""
            table.add_row(app.name, app.engine, app.state, f"{app.sent:,}", f"{app.fired:,}", last)
        yield table

    def line(self) -> str:
        """The view in one line."""
        apps = ", ".join(
            f"{app.name} {amount(app.sent, 'message')}, {amount(app.fired, 'alert')} ({app.state})"
            for app in self.apps
        )
        return f"{self.address}: {apps}"

    def _rest(self) -> str:
        return f"{self.left:.0f} s left" if self.left > 0 else "closing the last windows"


def _short(alert: Alert) -> str:
    """Describe an alert without its time, because a line has little room."""
    key = f" {visible_key(alert.plain_key)}" if alert.key else ""
    return plain(f"{alert.rule}{key} {alert.state}: {alert.why}")


@contextmanager
def showing(console: Console) -> Iterator[Callable[[DemoView], None]]:
    """Yield a function to call with each view: it redraws in a terminal, else prints a line occasionally."""
    if console.is_terminal:
        with Live(console=console, auto_refresh=False, transient=True) as live:
            yield lambda view: live.update(view, refresh=True)
        return
    written: list[float] = []

    def write(view: DemoView) -> None:
        if written and time.monotonic() - written[-1] < _LINE_SECONDS:
            return
        written.append(time.monotonic())
        console.print(view.line(), highlight=False, markup=False, soft_wrap=True)

    yield write
