"""Where a run's alerts go, as its command line says."""

from __future__ import annotations

from pathlib import Path

from ...operators.rules.alerting import Outlet
from ...operators.rules.to_output import AlertFile
from ...operators.rules.to_topic import AlertTopic
from ...operators.rules.to_webhook import AlertWebhook


def outlets(topic: str | None, file: Path | None, webhook: str | None) -> list[Outlet]:
    """Those that were named. Raises `ValueError` for an address that isn't one."""
    found: list[Outlet] = []
    if topic is not None:
        found.append(AlertTopic(topic))
    if file is not None:
        found.append(AlertFile(file))
    if webhook is not None:
        found.append(AlertWebhook(webhook))
    return found
