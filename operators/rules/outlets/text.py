"""The text of a message, line by line: plain text, in which every character from outside is visible."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from ...rendering.names import escaped
from ..alert import Alert
from .grouping import Notification
from .matchers import labels_of
from .page_links import time_in

SHOWN = 20
"""The number of alerts that a message shows."""
_LONGEST_SUBJECT, _LONGEST_LINE = 150, 400


def subject(notification: Notification) -> str:
    """A message's subject.

    >>> alert = Alert("hot", "threshold", "fired", ("hall",), 0, 0, 31.0, 31.0, 31.0, 30.0, "31 > 30", "iot")
    >>> subject(Notification([alert])), subject(Notification([alert, alert], {"rule": "hot"}, more=3))
    ('iot: hot hall fired', 'iot: hot: 5 alerts (2 fired and more)')
    """
    test = "[TEST] " if notification.is_test else ""
    apps = {alert.app for alert in notification.alerts if alert.app}
    app = f"{escaped(apps.pop())}: " if len(apps) == 1 else ""
    if notification.size == 1:
        (alert,) = notification.alerts
        labels = labels_of(alert)
        key = f" {labels['key']}" if "key" in labels else ""
        return test + cut(f"{app}{labels['rule']}{key} {alert.state}", _LONGEST_SUBJECT)
    common = ", ".join(value for name, value in notification.labels.items() if name != "app")
    states = Counter(alert.state for alert in notification.alerts)
    counts = ", ".join(f"{count:,} {state}" for state, count in states.items())
    more = " and more" if notification.more else ""
    return test + cut(
        f"{app}{common}{': ' if common else ''}{notification.size:,} alerts ({counts}{more})",
        _LONGEST_SUBJECT,
    )


def line(alert: Alert, zone: str = "UTC") -> str:
    """An alert in one line: when, in a zone, what, and why."""
    labels = labels_of(alert)
    key = f" {labels['key']}" if "key" in labels else ""
    return cut(
        f"{time_in(alert.at_us, zone)} {labels['rule']}{key} {alert.state}: {escaped(alert.why)}",
        _LONGEST_LINE,
    )


def lines(
    notification: Notification,
    zone: str = "UTC",
    by_template: Callable[[Alert], str] = lambda alert: "",
    escape: Callable[[str], str] = str,
    link: Callable[[Alert], str] = lambda alert: "",
) -> list[str]:
    """The alerts of a message, their times in a zone, and how many are not shown.

    The template writes an alert's line unless it returns an empty string; otherwise `escape` prepares the
    default line for the outlet. Below it is the link from `link`, if not empty.
    """

    def usual(alert: Alert) -> str:
        address = link(alert)
        return escape(line(alert, zone)) + (f"\n{address}" if address else "")

    shown = [by_template(alert) or usual(alert) for alert in notification.alerts[:SHOWN]]
    rest = notification.size - len(shown)
    return [*shown, escape(f"and {rest:,} more")] if rest else shown


def cut(text: str, longest: int) -> str:
    """A text, truncated to `longest` characters."""
    return text if len(text) <= longest else f"{text[: longest - 1]}…"
