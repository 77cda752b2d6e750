"""Alerts of an app's rules, for pages: those that still last, and as many others as fit."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from ...operators.rules.alert import Alert
from ...queries.views.watchers import Watchers
from ..jobs.outcome import events

MOST_ALERTS = 5_000
MOST_ACTIVE = 100_000
"""The most lasting events that are stored; memory is bounded, and the page says so."""


class AlertLog:
    """The alerts of one app, each once: those of events that last, and the last `most` others.

    An event of a rule in `over_at_once` never lasts; an event of any other rule lasts until it is cleared or
    withdrawn, whatever else has fired since. It is also an outlet of `Alerting`, and thread-safe.

    >>> log = AlertLog("iot")
    >>> fired = Alert("hot", "threshold", "fired", ("a",), 0, 0, 31.0, 31.0, 31.0, 30.0, "31 > 30", "iot")
    >>> log.add([fired, fired])
    >>> [(event["rule"], event["active"]) for event in log.describe()["events"]]
    [('hot', True)]
    """

    def __init__(self, app: str, over_at_once: Collection[str] = (), most: int = MOST_ALERTS) -> None:
        self.app = app
        self._over_at_once = frozenset(over_at_once)
        self._most = most
        self._full = most
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
        self.add([alert])

    def add(self, alerts: Iterable[Alert]) -> None:
        """Accept alerts; alerts of other apps, which may share a topic, are ignored."""
        with self._lock:
            before = self._number
            for alert in alerts:
                if alert.app != self.app:
                    continue
                # If an alert fires again, for example after it was withdrawn, the latest one counts.
                self._alerts.pop(alert.id, None)
                self._alerts[alert.id] = alert
                self._number += 1
            if len(self._alerts) > self._full:
                self._drop()
            changed = self._number != before
        if changed:
            self._changed()

    def is_stale(self, why: str | None) -> None:
        """Set why alerts are currently unavailable, or None when they are available again."""
        if why != self._stale:
            self._stale = why
            self._changed()

    @property
    def number(self) -> int:
        """A number that grows with each added alert."""
        return self._number

    @property
    def stale(self) -> str | None:
        """Why alerts are currently unavailable; None if they are available."""
        return self._stale

    @property
    def alerts(self) -> list[Alert]:
        """The last alerts, in order of event time."""
        with self._lock:
            alerts = list(self._alerts.values())
        return sorted(alerts, key=lambda a: (a.at_us, a.rule, str(a.key), a.state != "cleared"))

    def describe(self, last: int = 200, rule: str | None = None, text: str = "") -> dict[str, Any]:
        """Describe at most `last` events, lasting ones first, latest on top, with counts of all, also by
        rule.

        With `rule`, only that rule's events; with `text`, only events with it in their key or reason.
        """
        with self._lock:
            alerts, dropped, number = self.alerts, self._dropped, self._number
        happened = self._events(alerts)
        by_rule: dict[str, int] = {}
        for event in happened:
            by_rule[event["rule"]] = by_rule.get(event["rule"], 0) + 1
        wanted = [event for event in happened if rule in (None, event["rule"]) and _has(event, text)]
        return {
            "number": number,
            "stale": self._stale,
            "dropped": dropped,
            "active": sum(event["active"] for event in happened),
            "by_rule": by_rule,
            "events": wanted[:last],
            "more": max(0, len(wanted) - last),
        }

    def event(self, alert_id: str) -> dict[str, Any] | None:
        """Return the event whose alert has this `id`; None if it is not stored, or was withdrawn."""
        with self._lock:
            alerts = self.alerts if alert_id in self._alerts else []
        return next((event for event in self._events(alerts) if event["id"] == alert_id), None)

    def _events(self, alerts: list[Alert]) -> list[dict[str, Any]]:
        """Return the events of alerts, lasting ones first, latest on top."""
        happened = events(alerts)
        for event, active in zip(happened, self._lasting(happened)):
            event["active"] = active
        happened.sort(key=lambda event: (event["active"], event["at"]), reverse=True)
        return happened

    def events_of(self, key: Any, last: int = 200) -> list[dict[str, Any]]:
        """Return at most `last` events whose key is or begins with this key, as text, latest first."""
        mine = [alert for alert in self.alerts if alert.key and str(alert.key[0]) == str(key)]
        return events(mine)[::-1][:last]

    def _lasting(self, happened: list[dict[str, Any]]) -> list[bool]:
        """Return whether each event, in order of event time, lasts; only the last of a rule and key can."""
        lasting = [False] * len(happened)
        seen: set[tuple[str, str]] = set()
        for place in range(len(happened) - 1, -1, -1):
            event = happened[place]
            which = event["rule"], repr(event["key"])
            if event["cleared"] is None and event["rule"] not in self._over_at_once:
                lasting[place] = which not in seen
            seen.add(which)
        return lasting

    def _drop(self) -> None:
        """Drop the oldest alerts that don't concern a lasting event, down to `most` of these.

        An event is dropped before the alert that cleared or withdrew it; otherwise it would seem to last.
        """
        ordered = sorted(self._alerts.values(), key=lambda alert: (alert.at_us, alert.state != "fired"))
        happened = events(self.alerts)
        lasting = [event["id"] for event, active in zip(happened, self._lasting(happened)) if active]
        kept = set(lasting[-MOST_ACTIVE:])
        over = len(ordered) - len(kept) - self._most
        for alert in [alert for alert in ordered if alert.id not in kept][: max(0, over)]:
            del self._alerts[alert.id]
            self._dropped += 1
        # Sorting at each alert would be slow: sort again when a tenth more have come.
        self._full = len(self._alerts) + self._most // 10

    def watch(self, changed: Callable[[], None]) -> Callable[[], None]:
        """Call `changed` from any thread after each change; return a function that ends this."""
        return self._watchers.add(changed)

    def _changed(self) -> None:
        self._watchers.changed()


def _has(event: Mapping[str, Any], text: str) -> bool:
    """Whether an event's key or reason contains this text, ignoring case."""
    if not text:
        return True
    parts = event["key"] if isinstance(event["key"], list) else [event["key"]]
    wanted = text.casefold()
    return any(wanted in str(part).casefold() for part in (*parts, event["why"]))
