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
    """POST each alert as JSON to an address, in their order, with `headers` besides.

    An answer from 200 to 299 takes it; the header ``Idempotency-Key`` holds the alert's id: after a crash the
    last alerts may be sent again. A test has the member `test`, true. The other options are those of all
    outlets to people (docs/alerts.md); nothing is grouped. Raises `ValueError` for an address that isn't one
    of the web.

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
