"""The results of an app's run: its account, alerts and tables, as one JSON object and for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from ...operators.rendering.names import amount
from ...operators.rules.alert import Alert
from ...operators.rules.late_readings import LateReadings
from ...operators.sketching.account import Account
from ...sketches.core.errors import StreamgaugeError
from .job import least


@dataclass(frozen=True)
class Outcome:
    """An engine's results: the outcome of the messages in each part, all alerts, each shown part's
    final table, and the readings that came late for the rules.
    """

    accounts: Sequence[Account]
    alerts: list[Alert]
    tables: Mapping[str, pa.Table]
    late_readings: LateReadings = field(default_factory=LateReadings)

    @property
    def account(self) -> Account:
        """The outcome of the messages, for the part that has read the least."""
        return least(self.accounts)

    @property
    def counted(self) -> bool:
        """Whether any part has counted any message."""
        return any(account.counted for account in self.accounts)


class NothingCounted(StreamgaugeError, RuntimeError):
    """A run ended cleanly without counting a message, so its results are meaningless."""


def check_counted(results: Mapping[str, Mapping[str, Any]]) -> None:
    """Raise `NothingCounted` if an app counted no message; `results` has the apps' results by name.

    >>> account = {"read": 3, "counted": 0, "filtered": 0, "late": 1, "dead_lettered": 2}
    >>> check_counted({"iot": {"all_inside_bounds": None, "account": account}})
    Traceback (most recent call last):
    streamgauge.apps.jobs.outcome.NothingCounted: nothing was counted: iot read 3 messages: 1 late...
    """
    empty = {name: result for name, result in results.items() if result["all_inside_bounds"] is None}
    if empty:
        raise NothingCounted(
            "nothing was counted: "
            + "; ".join(f"{name} {_destinations(one['account'])}" for name, one in empty.items())
        )


def _destinations(account: Mapping[str, int]) -> str:
    names = {"filtered": "filtered", "late": "late", "dead_lettered": "dead-lettered"}
    parts = [f"{account[part]:,} {name}" for part, name in names.items() if account[part]]
    if not account["read"]:
        return "read no message"
    return f"read {amount(account['read'], 'message')}" + (f": {', '.join(parts)}" if parts else "")


class AlertList:
    """An outlet that collects alerts, each once."""

    def __init__(self) -> None:
        self._by_id: dict[str, Alert] = {}

    def begin(self) -> None:
        """See `operators.rules.alerting.WritingOutlet`."""

    def write(self, alert: Alert) -> None:
        """See `operators.rules.alerting.WritingOutlet`."""
        self._by_id[alert.id] = alert

    @property
    def alerts(self) -> list[Alert]:
        """The alerts in order of event time, which is the same on every engine."""
        alerts = self._by_id.values()
        return sorted(
            alerts, key=lambda alert: (alert.at_us, alert.rule, str(alert.key), alert.state != "cleared")
        )


def events(alerts: list[Alert]) -> list[dict[str, Any]]:
    """Return each event that fired, as JSON, with when it was `cleared`; null while it lasts.

    `unknown` is the time since which an event's state has been unknown. Withdrawn events are left out.

    >>> fired = Alert("hot", "threshold", "fired", ("a",), 0, 0, 31.0, 31.0, 31.0, 30.0, "31 > 30")
    >>> cleared = Alert("hot", "threshold", "cleared", ("a",), 60_000_000, 0, 29.0, 29.0, 29.0, 30.0, "29")
    >>> [event["cleared"] for event in events([fired, cleared, fired])]
    ['1970-01-01T00:01:00+00:00', None]
    """
    events_: list[dict[str, Any]] = []
    open_ones: dict[tuple[str, tuple[Any, ...]], dict[str, Any]] = {}
    wrong = {(a.rule, a.key, a.at_us) for a in alerts if a.state == "withdrawn"}
    for alert in alerts:
        if alert.state == "withdrawn" or (alert.rule, alert.key, alert.at_us) in wrong:
            continue
        fields, which = alert.to_dict(), (alert.rule, alert.key)
        if alert.state == "cleared":
            if which in open_ones:
                open_ones.pop(which)["cleared"] = fields["at"]
            continue
        if alert.state == "unknown":
            if which in open_ones:
                open_ones[which]["unknown"] = fields["at"]
            continue
        del fields["state"]
        open_ones[which] = {**fields, "cleared": None}
        events_.append(open_ones[which])
    return events_
