"""A demo at work, as a terminal shows it: where its page is, what each app reads, what was told last."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from rich import box
from rich.console import Console, ConsoleOptions, Group, RenderResult
from rich.live import Live
from rich.table import Table
from rich.text import Text

from ...operators.rules.alert import Alert
from ..tables.written import plain

_TELL_SECONDS = 10.0
_ALERTS = 12


@dataclass(frozen=True)
class AppLook:
    """What one app has come to."""

    name: str
    engine: str
    sent: int
    alerts: Sequence[Alert]


@dataclass(frozen=True)
class DemoView:
    """All of them at one moment, and the seconds that are left."""

    address: str
    left: float
    apps: Sequence[AppLook]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Text.assemble(
            ("the page: ", "bold"),
            (self.address, "bold cyan underline"),
            f"  {self.left:.0f} s left, Ctrl-C ends it",
        )
        table = Table(box=box.SIMPLE_HEAD, header_style="bold")
        table.add_column("app")
        table.add_column("runs on")
        for name in ("messages", "alerts"):
            table.add_column(name, justify="right")
        for app in self.apps:
            table.add_row(app.name, app.engine, f"{app.sent:,}", f"{len(app.alerts):,}")
        yield table
        yield Group(*(Text(line, overflow="ellipsis", no_wrap=True) for line in self._latest()))

    def _latest(self) -> list[str]:
        told = [(alert.at_us, app.name, alert) for app in self.apps for alert in app.alerts]
        told.sort(key=lambda one: one[:2])
        return [f"{name}: {plain(str(alert))}" for _, name, alert in told[-_ALERTS:]]


@contextmanager
def showing(console: Console) -> Iterator[Callable[[DemoView], None]]:
    """Something to call with each view: drawn in place in a terminal, else a line now and then."""
    if console.is_terminal:
        with Live(console=console, auto_refresh=False, transient=True) as live:
            yield lambda view: live.update(view, refresh=True)
        return
    said: list[float] = []

    def tell(view: DemoView) -> None:
        if said and time.monotonic() - said[-1] < _TELL_SECONDS:
            return
        said.append(time.monotonic())
        told = ", ".join(f"{app.name} {app.sent:,} messages, {len(app.alerts)} alerts" for app in view.apps)
        console.print(f"{view.address}: {told}", highlight=False, markup=False, soft_wrap=True)

    yield tell
