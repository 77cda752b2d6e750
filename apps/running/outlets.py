"""Where a run's alerts go, as its command line says."""

from __future__ import annotations

from pathlib import Path

from ...operators.rules.alerting import Outlet
from ...operators.rules.to_output import AlertFile
from ...operators.rules.to_topic import AlertTopic
from ...operators.rules.to_webhook import AlertWebhook


def alerts_topic_of(group: str) -> str:
    """The topic that a live run sends its alerts to unless it is told another one.

    >>> alerts_topic_of("iot-sensors")
    'iot-sensors.alerts'
    """
    return f"{group}.alerts"


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
