"""What an app's rules told lately, in bounded memory, for pages that show it."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Any

from ...operators.rules.alert import Alert
from ...operators.serving.watchers import Watchers
from ..running.outcome import events

MOST_ALERTS = 5_000


class AlertLog:
    """The alerts of one app, each once, the last `most` of them; also an outlet of `Alerting`.

    An event that was told of before these is not known here. Threads may share it.

    >>> log = AlertLog("iot")
    >>> fired = Alert("hot", "threshold", "fired", ("a",), 0, 0, 31.0, 31.0, 31.0, 30.0, "31 > 30", "iot")
    >>> log.take([fired, fired])
    >>> [(event["rule"], event["cleared"]) for event in log.told()["events"]]
    [('hot', None)]
    """

    def __init__(self, app: str, most: int = MOST_ALERTS) -> None:
        self.app = app
        self._most = most
        self._lock = threading.RLock()
        self._alerts: OrderedDict[str, Alert] = OrderedDict()
        self._dropped = 0
        self._number = 0
        self._stale: str | None = None
        self._watchers = Watchers()

    def begin(self) -> None:
        """See `operators.rules.alerting.WritingOutlet`."""

    def write(self, alert: Alert) -> None:
        """See `operators.rules.alerting.WritingOutlet`."""
        self.take([alert])

    def take(self, alerts: Iterable[Alert]) -> None:
        """Take in alerts; those of other apps, which may share a topic, are left out."""
        with self._lock:
            before = self._number
            for alert in alerts:
                if alert.app != self.app:
                    continue
                # One that is told again, as after it was withdrawn, is the latest word.
                self._alerts.pop(alert.id, None)
                self._alerts[alert.id] = alert
                self._number += 1
            while len(self._alerts) > self._most:
                self._alerts.popitem(last=False)
                self._dropped += 1
            changed = self._number != before
        if changed:
            self._changed()

    def is_stale(self, why: str | None) -> None:
        """Say why no alerts can be had for the moment, or that they are had again (None)."""
        if why != self._stale:
            self._stale = why
            self._changed()

    @property
    def number(self) -> int:
        """Grows with each alert that was taken in."""
        return self._number

    @property
    def stale(self) -> str | None:
        """Why no alerts can be had for the moment; None if they can."""
        return self._stale

    @property
    def alerts(self) -> list[Alert]:
        """The last alerts, in the order of event time."""
        with self._lock:
            found = list(self._alerts.values())
        return sorted(found, key=lambda a: (a.at_us, a.rule, str(a.key), a.state != "cleared"))

    def told(self, last: int = 200) -> dict[str, Any]:
        """The last events, those that last first and the latest on top; and how many there are by rule."""
        with self._lock:
            alerts, dropped, number = self.alerts, self._dropped, self._number
        found = events(alerts)
        by_rule: dict[str, int] = {}
        for event in found:
            by_rule[event["rule"]] = by_rule.get(event["rule"], 0) + 1
        found.sort(key=lambda event: (event["cleared"] is None, event["at"]), reverse=True)
        return {
            "number": number,
            "stale": self._stale,
            "dropped": dropped,
            "by_rule": by_rule,
            "events": found[:last],
            "more": max(0, len(found) - last),
        }

    def watch(self, changed: Callable[[], None]) -> Callable[[], None]:
        """Call `changed` from any thread after each change; gives what ends that."""
        return self._watchers.add(changed)

    def _changed(self) -> None:
        self._watchers.changed()
