"""Alerts to Alertmanager, which groups, silences, routes and inhibits them together with Prometheus's alerts.

Source: Alertmanager's API v2, `api/v2/openapi.yaml`, ``POST /alerts``.
"""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar

from ...formats.jsonable import jsonable
from ...rendering.names import escaped, visible_name
from ...windows.durations import Duration, microseconds
from ..alert import Alert, moment
from .grouping import Notification
from .http import HttpOutlet
from .matchers import labels_of
from .text import line

_SHORTEST_US = 4_000_000
"""A shorter `lasts` would mean sending more than once per second."""
_TEST_LASTS = timedelta(minutes=1)
ACTIVE = 10_000
"""The most active events, and the most ended ones, that are sent again; beyond that, the oldest are not."""
OVER_LASTS = timedelta(minutes=15)
"""How long the end of an event is sent again, as in Prometheus: an Alertmanager that restarts before it has
forwarded the end forgets it."""
_CHUNK = 500
_OWN = ("alertname", "app", "kind", "key", "state", "test")
"""Labels whose meaning differs from that of a column with this name."""


@dataclass(frozen=True)
class AlertsToAlertmanager(HttpOutlet):
    """Send alerts to an Alertmanager at an address such as ``http://alertmanager:9093``, by its API v2.

    The labels are `alertname` (the rule), `app`, `kind` and `key`, each of the key's columns by its own name,
    such as `sensor`, and in addition `labels`, such as ``{"severity": "page"}``. If another label has a
    column's name, the column gets the prefix ``key_``. The annotations are `summary`, `description`, `value`,
    `limit` and `id`. An event that is over is sent as resolved, and again each minute for 15 minutes. An
    active event is sent again each minute, as Prometheus does, or four times per `lasts` if that is shorter
    than four minutes (it is at least 4s), and ends by itself `lasts` after the last time. Alertmanager does
    the grouping, and may do the silencing; silences defined here never suppress the end of an event.
    docs/alerts.md describes the options of all outlets to people. Raises `ValueError` for invalid options.

    >>> import streamgauge as sg
    >>> sg.rules.AlertsToAlertmanager("http://localhost:9093", labels={"severity": "page"}).title
    'alertmanager localhost'
    """

    labels: Mapping[str, str] = field(default_factory=dict, kw_only=True)
    lasts: Duration = field(default="24h", kw_only=True)
    group_by: Sequence[str] | None = field(default=None, kw_only=True)
    kind: ClassVar[str] = "alertmanager"
    has_text: ClassVar[bool] = False
    silences_ends: ClassVar[bool] = False
    _active: OrderedDict[tuple[tuple[str, str], ...], dict[str, Any]] = field(
        default_factory=OrderedDict, init=False, repr=False, compare=False
    )
    _over: OrderedDict[tuple[tuple[str, str], ...], tuple[datetime, dict[str, Any]]] = field(
        default_factory=OrderedDict, init=False, repr=False, compare=False
    )
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False, compare=False)

    def _check(self) -> None:
        super()._check()
        if not isinstance(self.labels, Mapping) or not all(
            isinstance(name, str) and name.isidentifier() and name.isascii() and isinstance(value, str)
            for name, value in self.labels.items()
        ):
            raise ValueError(
                'alertmanager: labels must map names to strings, as in {"severity": "page"}, got '
                f"{self.labels!r}"
            )
        try:
            lasts_us = microseconds(self.lasts)
        except ValueError as error:
            raise ValueError(f"alertmanager: lasts: {error}") from None
        if lasts_us < _SHORTEST_US:
            raise ValueError(f"alertmanager: lasts must be at least 4s, got {self.lasts!r}")

    @property
    def resend_seconds(self) -> float:
        """See `NotifyingOutlet`: several times while an event lasts, so that one failure doesn't end it."""
        return min(60.0, microseconds(self.lasts) / 4e6)

    def send(self, notification: Notification) -> None:
        """See `NotifyingOutlet`."""
        now = datetime.now(UTC)
        by_labels: OrderedDict[tuple[tuple[str, str], ...], dict[str, Any]] = OrderedDict()
        rounds = [by_labels]
        for alert in notification.alerts:
            entry = self.entry(alert, now, notification.is_test)
            identity = tuple(sorted(entry["labels"].items()))
            if identity in by_labels:  # one request may contain each alert only once
                by_labels = OrderedDict()
                rounds.append(by_labels)
            by_labels[identity] = entry
        for one in rounds:
            self._post_entries(list(one.values()))
            if not notification.is_test:
                self._remember(one, now)

    def entry(self, alert: Alert, now: datetime, is_test: bool = False) -> dict[str, Any]:
        """An alert in the API's form."""
        at, since = (_moment(us, now) for us in (alert.at_us, alert.since_us))
        on = alert.lasts is not False  # an unknown event stays active until its state is known
        ends = now + (_TEST_LASTS if is_test else self._lasting()) if on else max(at, since)
        named = labels_of(alert)
        labels = {**self.labels, "alertname": named["rule"]}
        labels |= {name: named[name] for name in ("app", "kind", "key") if name in named}
        for name, value in key_labels(alert).items():
            labels.setdefault(name if name not in (*_OWN, *self.labels) else f"key_{name}", value)
        if is_test:
            labels["test"] = "true"
        annotations = {"summary": line(alert, self.zone), "description": escaped(alert.why), "id": alert.id}
        annotations |= {
            name: f"{value:g}" if isinstance(value, float) else str(value)
            for name, value in (("value", alert.value), ("limit", alert.limit))
            if value is not None
        }
        starts = at if on else min(since, at)
        return {
            "labels": labels,
            "annotations": annotations,
            "startsAt": starts.isoformat(),
            "endsAt": ends.isoformat(),
            **({"generatorURL": link} if (link := self.link(alert)) else {}),
        }

    def resend(self) -> None:
        """See `NotifyingOutlet`: renews active events, and repeats recent ends."""
        now = datetime.now(UTC)
        ends = (now + self._lasting()).isoformat()
        with self._lock:
            while self._over and next(iter(self._over.values()))[0] + OVER_LASTS <= now:
                self._over.popitem(last=False)
            entries = [{**entry, "endsAt": ends} for entry in self._active.values()]
            entries += [entry for _, entry in self._over.values()]
        for at in range(0, len(entries), _CHUNK):
            self._post_entries(entries[at : at + _CHUNK])

    def _post_entries(self, entries: Sequence[dict[str, Any]]) -> None:
        self.post(f"{self.url.rstrip('/')}/api/v2/alerts", entries)

    def _remember(self, entries: Mapping[tuple[tuple[str, str], ...], dict[str, Any]], now: datetime) -> None:
        with self._lock:
            for identity, entry in entries.items():
                self._active.pop(identity, None)
                self._over.pop(identity, None)
                if datetime.fromisoformat(entry["endsAt"]) > now:
                    self._active[identity] = entry
                else:
                    self._over[identity] = now, entry
            for remembered in (self._active, self._over):
                while len(remembered) > ACTIVE:
                    remembered.popitem(last=False)

    def _lasting(self) -> timedelta:
        return timedelta(microseconds=microseconds(self.lasts))


def key_labels(alert: Alert) -> dict[str, str]:
    """The parts of an alert's key by column, with names that are valid Prometheus labels.

    >>> figures = 5.0, 5.0, 5.0, 5.0
    >>> key, names = ("hall", None, 7), ("room.name", "floor", "7th")
    >>> alert = Alert("hot", "threshold", "fired", key, 0, 0, *figures, "…", key_names=names)
    >>> key_labels(alert)
    {'room_name': 'hall', 'key_7th': '7'}
    """
    labels = {}
    for name, value in zip(alert.key_names, jsonable(list(alert.key))):
        label = re.sub(r"[^a-zA-Z0-9_]", "_", name)
        if not re.match("[a-zA-Z]", label):  # two leading underscores are reserved by Prometheus
            label = f"key_{label}"
        if value is not None and (text := visible_name(value)):
            labels[label] = text
    return labels


def _moment(us: int, now: datetime) -> datetime:
    """An event time, no later than now: a time in the future would delay the beginning or end."""
    try:
        return min(datetime.fromisoformat(moment(us)), now)
    except OverflowError:
        return now
