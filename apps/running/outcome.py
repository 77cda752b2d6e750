"""What a run of an app found: its account, its alerts, its tables; as one JSON object and for people."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from ...operators.rules.alert import Alert
from ...operators.sketching.accounting import Account


@dataclass(frozen=True)
class Outcome:
    """What an engine found: what became of the messages, all that was told, each shown part's final table."""

    account: Account
    alerts: list[Alert]
    tables: Mapping[str, pa.Table]


class AlertList:
    """An outlet that keeps what it is told, each alert once."""

    def __init__(self) -> None:
        self._told: dict[str, Alert] = {}

    def begin(self) -> None:
        """See `operators.rules.alerting.WritingOutlet`."""

    def write(self, alert: Alert) -> None:
        """See `operators.rules.alerting.WritingOutlet`."""
        self._told[alert.id] = alert

    @property
    def alerts(self) -> list[Alert]:
        """What was told, in the order of event time: the same however it was found."""
        found = self._told.values()
        return sorted(
            found, key=lambda alert: (alert.at_us, alert.rule, str(alert.key), alert.state != "cleared")
        )


def events(alerts: list[Alert]) -> list[dict[str, Any]]:
    """Each event that fired, as JSON, with when it was `cleared`; null while it lasts.

    Those that were withdrawn never were.

    >>> fired = Alert("hot", "threshold", "fired", ("a",), 0, 0, 31.0, 31.0, 31.0, 30.0, "31 > 30")
    >>> cleared = Alert("hot", "threshold", "cleared", ("a",), 60_000_000, 0, 29.0, 29.0, 29.0, 30.0, "29")
    >>> [event["cleared"] for event in events([fired, cleared, fired])]
    ['1970-01-01T00:01:00+00:00', None]
    """
    found: list[dict[str, Any]] = []
    open_ones: dict[tuple[str, tuple[Any, ...]], dict[str, Any]] = {}
    wrong = {(a.rule, a.key, a.at_us) for a in alerts if a.state == "withdrawn"}
    for alert in alerts:
        if alert.state == "withdrawn" or (alert.rule, alert.key, alert.at_us) in wrong:
            continue
        told, which = alert.to_dict(), (alert.rule, alert.key)
        if alert.state == "cleared":
            if which in open_ones:
                open_ones.pop(which)["cleared"] = told["at"]
            continue
        del told["state"]
        open_ones[which] = {**told, "cleared": None}
        found.append(open_ones[which])
    return found
