"""Alerts to PagerDuty, Opsgenie, Telegram, Matrix, Teams, Google Chat and others, by the library Apprise."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from ....sketches.core.extras import check_extra, naming_extras
from .errors import OutletError
from .grouping import Notification
from .outlet import NotifyingOutlet
from .text import subject


@dataclass(frozen=True)
class AlertsToApprise(NotifyingOutlet):
    """Send alerts to a service that Apprise knows, by its address there: ``pagerduty://…``, ``tgram://…``.

    The message is plain text. It is a failure if an event fires or is unknown, and a success otherwise, by
    which PagerDuty and Opsgenie raise and resolve incidents. Apprise doesn't distinguish refusals from
    failures, so both are retried for `patience`. docs/alerts.md describes the options of all outlets to
    people. Raises `ValueError` for an address that Apprise doesn't know, and `ModuleNotFoundError` without
    the extra ``notify``.

    Source: https://github.com/caronc/apprise, which lists the addresses.

    >>> import streamgauge as sg
    >>> sg.rules.AlertsToApprise("tgram://123456789:abcdefg_hijklmnop/12315544").title
    'apprise Telegram'
    """

    url: str = field(repr=False)
    kind: ClassVar[str] = "apprise"
    _service: Any = field(init=False, repr=False, compare=False)

    def _check(self) -> None:
        super()._check()
        check_extra("apprise")
        with naming_extras():
            from apprise import Apprise
        service = Apprise.instantiate(self.url, suppress_exceptions=True)
        if service is None:
            # An address contains keys, so it isn't shown.
            raise ValueError("apprise: url must be an address that Apprise knows, such as tgram://TOKEN/CHAT")
        object.__setattr__(self, "_service", service)

    @property
    def place(self) -> str:
        """See `NotifyingOutlet`."""
        return str(self._service.service_name)

    def send(self, notification: Notification) -> None:
        """See `NotifyingOutlet`. Raises `OutletError` if the service didn't accept it."""
        from apprise import Apprise, NotifyFormat, NotifyType

        lasts = any(alert.state in ("fired", "unknown") for alert in notification.alerts)
        service = Apprise()
        service.add(self._service)
        accepted = service.notify(
            title=subject(notification),
            body="\n".join(self.lines(notification, self.link)),
            notify_type=NotifyType.FAILURE if lasts else NotifyType.SUCCESS,
            body_format=NotifyFormat.TEXT,
        )
        if not accepted:
            raise OutletError(f"{self.place} didn't accept it; the logger apprise says why", may_pass=True)
