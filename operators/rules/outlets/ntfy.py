"""Alerts to phones and desktops by ntfy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from ....sketches.core.lazy import httpx
from .grouping import Notification
from .http import HttpOutlet
from .text import cut, subject

_LONGEST_BYTES = 3_900
"""ntfy turns a message of more than 4,096 bytes into an attached file."""


@dataclass(frozen=True)
class AlertsToNtfy(HttpOutlet):
    """Publish alerts to a topic of an ntfy server, which phones subscribe to: ``https://ntfy.sh/TOPIC``.

    `priority` is the priority of fired events, from 1 to 5; other messages have the server's default. `tags`
    are shown beside the title. If the server requires a login, set `token`, or `user` and `password`. The
    message is plain text. If `page` is set, a tap opens the first alert's picture on the page, and a message
    about several alerts has a link below each, if all links fit. docs/alerts.md describes the options of all
    outlets to people. Raises `ValueError` for invalid options.

    >>> import streamgauge as sg
    >>> sg.rules.AlertsToNtfy("https://ntfy.example.org/ops", priority=4).place
    'ntfy.example.org'
    """

    priority: int = field(default=4, kw_only=True)
    tags: Sequence[str] = field(default=(), kw_only=True)
    kind: ClassVar[str] = "ntfy"

    def _check(self) -> None:
        super()._check()
        if isinstance(self.priority, bool) or self.priority not in (1, 2, 3, 4, 5):
            raise ValueError(f"ntfy: priority must be a number from 1 to 5, got {self.priority!r}")
        if isinstance(self.tags, str) or not all(isinstance(tag, str) for tag in self.tags):
            raise ValueError(f"ntfy: tags must be a list of strings, got {self.tags!r}")
        if not self.topic:
            raise ValueError("ntfy: url must end with the topic, as in https://ntfy.sh/TOPIC")

    @property
    def topic(self) -> str:
        """The topic's name, the last part of the address."""
        return httpx.URL(self.url).path.rstrip("/").rpartition("/")[2]

    def send(self, notification: Notification) -> None:
        """See `NotifyingOutlet`."""
        url = httpx.URL(self.url)
        folder = url.path.rstrip("/").rpartition("/")[0]
        self.post(str(url.copy_with(path=f"{folder}/", query=None)), self.body(notification))

    def body(self, notification: Notification) -> dict[str, Any]:
        """The message as JSON; no part of it is a header."""
        fires = any(alert.state == "fired" for alert in notification.alerts)
        body = {
            "topic": self.topic,
            "title": subject(notification),
            "message": _fitting(self.linked_lines(notification, self.link, _fits)),
            "tags": [*self.tags, "rotating_light" if fires else "white_check_mark"],
        }
        if link := self.link(notification.alerts[0]) if notification.alerts else "":
            body["click"] = link
        return {**body, "priority": self.priority} if fires else body


def _fits(texts: Sequence[str]) -> bool:
    return sum(len(text.encode("utf-8", "replace")) + 1 for text in texts) <= _LONGEST_BYTES


def _fitting(texts: Sequence[str]) -> str:
    """As many lines as fit in a message; the others are counted."""
    kept: list[str] = []
    size = 0
    for number, text in enumerate(texts):
        size += len(text.encode("utf-8", "replace")) + 1
        if size > _LONGEST_BYTES:
            return "\n".join([*kept, cut(f"and {len(texts) - number:,} more lines", 100)])
        kept.append(text)
    return "\n".join(kept)
