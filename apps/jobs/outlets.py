"""Where a run's alerts go, as its command line says."""

from __future__ import annotations

from pathlib import Path

from ...operators.rules.alerting import Outlet
from ...operators.rules.to_output import AlertsToFile
from ...operators.rules.to_topic import AlertsToKafka
from ...operators.rules.to_webhook import AlertsToWebhook


def alerts_topic_of(group: str) -> str:
    """The topic that a live run sends its alerts to by default.

    >>> alerts_topic_of("iot-sensors")
    'iot-sensors.alerts'
    """
    return f"{group}.alerts"


def outlets(topic: str | None, file: Path | None, webhook: str | None) -> list[Outlet]:
    """Those that were named. Raises `ValueError` for an address that isn't one."""
    outlets_: list[Outlet] = []
    if topic is not None:
        outlets_.append(AlertsToKafka(topic))
    if file is not None:
        outlets_.append(AlertsToFile(file))
    if webhook is not None:
        outlets_.append(AlertsToWebhook(webhook))
    return outlets_
