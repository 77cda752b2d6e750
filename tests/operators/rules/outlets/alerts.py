"""Alerts that tests send."""

from __future__ import annotations

from dataclasses import replace

from streamgauge.operators.rules.outlets.grouping import Notification
from streamgauge.rules import Alert

NOON_US = 1_780_315_200_000_000
"""2026-06-01, 12:00 UTC."""

ALERT = Alert(
    "hot",
    "threshold",
    "fired",
    ("hall",),
    NOON_US,
    NOON_US - 60_000_000,
    31.0,
    31.0,
    31.0,
    30.0,
    "31 > 30",
    "iot",
)
EVIL = replace(
    ALERT,
    key=("x`<!channel> @all [a](http://evil.test)\r\nBcc: all@evil.test\x1b[2J\ud800",),
    why="*why* & <https://evil.test|here> `code`\nSubject: forged",
)
"""What an attacker would write into a message."""


def alert(key: str, state: str = "fired", minute: int = 0) -> Alert:
    return replace(ALERT, key=(key,), state=state, at_us=NOON_US + minute * 60_000_000)


def one(*alerts: Alert) -> Notification:
    return Notification(alerts or (ALERT,))
