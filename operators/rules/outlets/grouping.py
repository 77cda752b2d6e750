"""One message for a burst: alerts that agree in some labels are collected for a time, then sent together.

Source: Alertmanager's route options `group_by`, `group_wait` and `group_interval`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ..alert import Alert
from .matchers import labels_of

LISTED = 100
"""The number of alerts that a message contains in full; the others are only counted."""
GROUPS = 1_000
"""The number of groups that collect alerts; beyond that, the group that is due first is sent early."""


@dataclass(frozen=True)
class Notification:
    """Alerts that are sent together: those that are listed, and the number of `more`.

    `labels` are those that all of them share because of their grouping.
    """

    alerts: Sequence[Alert]
    labels: Mapping[str, str] = field(default_factory=dict)
    more: int = 0
    is_test: bool = False

    @property
    def size(self) -> int:
        """The number of alerts that it reports."""
        return len(self.alerts) + self.more


@dataclass
class _Group:
    labels: dict[str, str]
    due: float
    alerts: list[Alert] = field(default_factory=list)
    more: int = 0

    def drain(self) -> Notification:
        notification = Notification(tuple(self.alerts), self.labels, self.more)
        self.alerts, self.more = [], 0
        return notification


class AlertGroups:
    """Groups that collect alerts: by the labels `by`, for `wait` seconds at first, then every `interval`.

    With ``by=None`` nothing is collected: alerts are due at once, in order, at most `LISTED` per
    notification.

    >>> from dataclasses import replace
    >>> groups = AlertGroups(("rule",), wait=30.0, interval=300.0)
    >>> alert = Alert("hot", "threshold", "fired", ("hall",), 0, 0, 31.0, 31.0, 31.0, 30.0, "31 > 30")
    >>> for at, key in ((0.0, "hall"), (10.0, "attic")):
    ...     groups.add(replace(alert, key=(key,)), at)
    >>> groups.due(29.0), [len(one.alerts) for one in groups.due(30.0)]
    ([], [2])
    >>> groups.add(alert, 40.0)
    >>> groups.next_due
    330.0
    """

    def __init__(self, by: Sequence[str] | None, wait: float, interval: float) -> None:
        self._by, self._wait, self._interval = by, wait, interval
        self._groups: dict[tuple[str, ...], _Group] = {}
        self._early: list[Notification] = []

    def add(self, alert: Alert, now: float) -> None:
        """Add an alert to its group."""
        if self._by is None:
            self._add_at_once(alert)
            return
        labels = labels_of(alert)
        key = tuple(labels.get(name, "") for name in self._by)
        group = self._groups.get(key)
        if group is None:
            self._make_room()
            common = {name: labels[name] for name in self._by if name in labels}
            group = self._groups[key] = _Group(common, now + self._wait)
        elif group.due <= now and not group.alerts:
            # Its interval has passed without alerts: the group starts over.
            group.due = now + self._wait
        if len(group.alerts) < LISTED:
            group.alerts.append(alert)
        else:
            group.more += 1

    def _add_at_once(self, alert: Alert) -> None:
        if self._early and len(self._early[-1].alerts) < LISTED:
            last = self._early.pop()
            self._early.append(Notification((*last.alerts, alert)))
        else:
            self._early.append(Notification((alert,)))

    def due(self, now: float, all_groups: bool = False) -> list[Notification]:
        """The notifications that are due, or all notifications."""
        ready, self._early = self._early, []
        for key, group in list(self._groups.items()):
            if not all_groups and group.due > now:
                continue
            if group.alerts:
                ready.append(group.drain())
                group.due = now + self._interval
            else:
                del self._groups[key]
        return ready

    @property
    def next_due(self) -> float | None:
        """When `due` will next have a notification; None if there is no group."""
        return 0.0 if self._early else min((group.due for group in self._groups.values()), default=None)

    @property
    def is_full(self) -> bool:
        """Whether more is ready than fits in one notification."""
        return len(self._early) > 1

    @property
    def alerts(self) -> list[Alert]:
        """The collected alerts, without those that are only counted."""
        early = [alert for one in self._early for alert in one.alerts]
        return early + [alert for group in self._groups.values() for alert in group.alerts]

    def _make_room(self) -> None:
        if len(self._groups) < GROUPS:
            return
        key = min(self._groups, key=lambda key: self._groups[key].due)
        group = self._groups.pop(key)
        if group.alerts:
            self._early.append(group.drain())
