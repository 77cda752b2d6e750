"""Alerts to a topic of an MQTT broker."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from ...formats.encode import json_bytes
from ..alert import Alert
from .grouping import Notification
from .mqtt_publisher import MqttPublisher
from .outlet import NotifyingOutlet


@dataclass(frozen=True)
class AlertsToMqtt(NotifyingOutlet):
    """Publish each alert as JSON to ``mqtt://HOST:PORT/TOPIC`` (``mqtts://`` by TLS), at QoS 1.

    `user` and `password` are for the broker; in the address they would be visible. A test has the member
    `test`, which is true. docs/alerts.md describes the options of all outlets to people; nothing is grouped.
    Raises `ValueError` for invalid options.

    >>> import streamgauge as sg
    >>> sg.rules.AlertsToMqtt("mqtt://localhost/alerts/iot").title
    'mqtt localhost:1883/alerts/iot'
    """

    url: str = field(repr=False)
    user: str = field(default="", kw_only=True)
    password: str = field(default="", repr=False, kw_only=True)
    group_by: Sequence[str] | None = field(default=None, kw_only=True)
    kind: ClassVar[str] = "mqtt"
    has_text: ClassVar[bool] = False
    _publisher: MqttPublisher = field(init=False, repr=False, compare=False)

    def _check(self) -> None:
        super()._check()
        object.__setattr__(self, "_publisher", MqttPublisher(self.url, self.user, self.password))

    @property
    def place(self) -> str:
        """See `NotifyingOutlet`."""
        return self._publisher.place

    def send(self, notification: Notification) -> None:
        """See `NotifyingOutlet`."""
        for alert in notification.alerts:
            self._publisher.publish(_payload(alert, notification.is_test, self.link(alert)))

    def disconnect(self) -> None:
        """See `NotifyingOutlet`."""
        self._publisher.close()


def _payload(alert: Alert, is_test: bool, link: str) -> bytes:
    test, linked = {"test": True} if is_test else {}, {"link": link} if link else {}
    return json_bytes({**alert.to_dict(), **test, **linked})
