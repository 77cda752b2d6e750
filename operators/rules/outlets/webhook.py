"""Alerts to a web address, as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from ...formats.jsonable import jsonable
from .grouping import Notification
from .http import HttpOutlet


@dataclass(frozen=True)
class AlertsToWebhook(HttpOutlet):
    """POST each alert as JSON to an address, in order, with additional `headers`.

    A status from 200 to 299 means that the alert was accepted. The header ``Idempotency-Key`` has the alert's
    id, because after a crash the last alerts may be sent again. A test has the member `test`, which is true.
    docs/alerts.md describes the options of all outlets to people; nothing is grouped. Raises `ValueError` for
    an address that isn't a web address.

    >>> import streamgauge as sg
    >>> sg.rules.AlertsToWebhook("ftp://example.org")
    Traceback (most recent call last):
    ValueError: webhook: url must begin with http:// or https://
    """

    group_by: Sequence[str] | None = field(default=None, kw_only=True)
    kind: ClassVar[str] = "webhook"
    has_text: ClassVar[bool] = False

    def send(self, notification: Notification) -> None:
        """See `NotifyingOutlet`."""
        for alert in notification.alerts:
            body = {**alert.to_dict(), "test": True} if notification.is_test else alert.to_dict()
            if link := self.link(alert):
                body["link"] = link
            self.post(self.url, jsonable(body), {"Idempotency-Key": alert.id})
