"""Alerts to a channel of Slack, or of Mattermost, by an incoming webhook."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from ..alert import Alert
from .grouping import Notification
from .http import HttpOutlet
from .text import subject

_COLOURS = {"fired": "#c62828", "cleared": "#2e7d32"}
_LONGEST = 3_000


@dataclass(frozen=True)
class AlertsToSlack(HttpOutlet):
    """Post alerts to a channel by its incoming webhook, whose address is a secret.

    Names and reasons come from messages, so they are in code spans, where neither Slack nor Mattermost turns
    text into links, mentions or formatting. If `page` is set, a title links to the first alert's picture on
    the page, and a message about several alerts has a link below each, if all links fit. Mattermost accepts
    the same format (`AlertsToMattermost`). docs/alerts.md describes the options of all outlets to people.
    Raises `ValueError` for invalid options.

    >>> import streamgauge as sg
    >>> sg.rules.AlertsToSlack("https://hooks.slack.com/services/T0/B0/secret").place
    'hooks.slack.com'
    """

    kind: ClassVar[str] = "slack"
    entities: ClassVar[bool] = True
    """Whether ``&``, ``<`` and ``>`` are written as entities, even in code spans."""

    def send(self, notification: Notification) -> None:
        """See `NotifyingOutlet`."""
        self.post(self.url, self.body(notification))

    def body(self, notification: Notification) -> dict[str, Any]:
        """The message as JSON."""
        states = {alert.state for alert in notification.alerts}
        title = self.escape(subject(notification))
        text, size = [], 0
        for number, line in enumerate(self.linked_lines(notification, self._link_line, _fits)):
            size += len(line) + 1
            if size > _LONGEST:
                text.append(f"and {notification.size - number:,} more")
                break
            text.append(line)
        colour = _COLOURS.get(states.pop(), "#f9a825") if len(states) == 1 else "#f9a825"
        attachment: dict[str, Any] = {
            "color": colour,
            "text": "\n".join(text),
            "fallback": title,
            "mrkdwn_in": ["text"],
        }
        # A separate field, so that nothing in an address is interpreted as formatting.
        if link := self.link(notification.alerts[0]) if notification.alerts else "":
            attachment |= {"title": "Show it on the page", "title_link": link}
        return {"text": title, "attachments": [attachment]}

    def _link_line(self, alert: Alert) -> str:
        """A link, in brackets, so that nothing in its address is interpreted as formatting."""
        link = self.link(alert)
        return f"<{link.replace('&', '&amp;') if self.entities else link}>"

    def escape(self, text: str) -> str:
        """See `NotifyingOutlet`: a code span, which no character in the text can end."""
        text = text.replace("`", "ˋ")
        if self.entities:
            text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        return f"`{text}`"


def _fits(texts: Sequence[str]) -> bool:
    return sum(len(text) + 1 for text in texts) <= _LONGEST


@dataclass(frozen=True)
class AlertsToMattermost(AlertsToSlack):
    """Post alerts to a channel of Mattermost, as `AlertsToSlack` does to one of Slack.

    Raises `ValueError` for invalid options.

    >>> import streamgauge as sg
    >>> sg.rules.AlertsToMattermost("https://chat.example.org/hooks/secret").title
    'mattermost chat.example.org'
    """

    kind: ClassVar[str] = "mattermost"
    entities: ClassVar[bool] = False
