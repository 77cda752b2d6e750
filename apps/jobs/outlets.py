"""The outlets of a run's alerts, from its command line, and the outcome of alerts."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from ...operators.rules.alerting import Outlet
from ...operators.rules.outlets.account import OutletAccount
from ...operators.rules.outlets.outlet import NotifyingOutlet, all_at_once
from ...operators.rules.outlets.to_output import AlertsToFile
from ...operators.rules.outlets.to_topic import AlertsToKafka
from ...operators.rules.outlets.toml_outlets import outlet_of, read_outlets
from ...operators.rules.outlets.webhook import AlertsToWebhook
from ...operators.watching.terminal import write_line


def alerts_topic_of(group: str) -> str:
    """Return the default topic for a live run's alerts.

    >>> alerts_topic_of("iot-sensors")
    'iot-sensors.alerts'
    """
    return f"{group}.alerts"


def outlets(
    topic: str | None,
    file: Path | None,
    webhook: str | None,
    files: Iterable[Path | None] = (),
    texts: Iterable[str] = (),
) -> list[Outlet]:
    """Collect a run's outlets: its topic, file and webhook, and all outlets from TOML files and options.

    A file that is named twice is read once. Each text of an option is a TOML table on one line. Raises
    `ValueError` for anything that isn't an outlet, and for two outlets with the same name.
    """
    outlets_: list[Outlet] = []
    if topic is not None:
        outlets_.append(AlertsToKafka(topic))
    if file is not None:
        outlets_.append(AlertsToFile(file))
    if webhook is not None:
        outlets_.append(AlertsToWebhook(webhook))
    for path in dict.fromkeys(path.resolve() for path in files if path is not None):
        outlets_ += read_outlets(path)
    outlets_ += map(outlet_of, texts)
    titles = [outlet.title for outlet in outlets_ if isinstance(outlet, NotifyingOutlet)]
    if twice := [title for title in titles if titles.count(title) > 1]:
        raise ValueError(f"two outlets are called {twice[0]!r}; give one of them another name")
    return outlets_


def outlet_accounts(to: Sequence[Outlet]) -> dict[str, OutletAccount]:
    """Return the outcome of the alerts of each outlet to people."""
    return {outlet.title: outlet.account for outlet in to if isinstance(outlet, NotifyingOutlet)}


def end(to: Sequence[Outlet], seconds: float = 10.0) -> dict[str, OutletAccount]:
    """Make outlets send pending alerts at the end; return the outcome of each outlet's alerts."""
    all_at_once(to, lambda outlet: outlet.close(seconds))
    return outlet_accounts(to)


def flush(to: Sequence[Outlet], seconds: float = 10.0) -> None:
    """Make outlets send pending alerts, before a run stores what is pending."""
    all_at_once(to, lambda outlet: outlet.flush(seconds))


@contextmanager
def closing(to: Sequence[Outlet], seconds: float = 10.0) -> Iterator[None]:
    """Make outlets send pending alerts at the end, and print the outcome on standard error."""
    try:
        yield
    finally:
        for title, account in end(to, seconds).items():
            write_line(f"alerts to {title}: {account}", sys.stderr)
