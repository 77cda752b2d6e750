"""Alerting that no messages arrive any more, by the wall clock."""

from __future__ import annotations

from ..windows.durations import Duration, duration_text, microseconds
from .alert import Alert, State


class StaleFeed:
    """Fires when no message has arrived for longer than `patience`, and clears when messages arrive again.

    `on` tells whether it has fired and not yet cleared. After a restart, waiting starts over.

    >>> feed = StaleFeed("1m")
    >>> looks = [feed.update(read, now) for read, now in ((5, 0.0), (5, 61.0), (5, 70.0), (6, 90.0))]
    >>> [[alert.state for alert in found] for found in looks]
    [[], ['fired'], [], ['cleared']]
    """

    def __init__(self, patience: Duration, app: str = "") -> None:
        self._patience_us = microseconds(patience)
        self._app = app
        self._known: tuple[int, float] | None = None
        self.on = False

    def update(self, read: int, now: float) -> list[Alert]:
        """The alerts due if so many messages have arrived by now (seconds since 1970)."""
        if self._known is None:
            self._known = read, now
        before, since = self._known
        if read != before:
            self._known = read, now
            was, self.on = self.on, False
            return [self._alert("cleared", since, now, "messages come again")] if was else []
        silent_us = int((now - since) * 1e6)
        if self.on or silent_us <= self._patience_us:
            return []
        self.on = True
        at = since + self._patience_us / 1e6
        return [
            self._alert("fired", since, at, f"no message for longer than {duration_text(self._patience_us)}")
        ]

    def _alert(self, state: State, since: float, at: float, why: str) -> Alert:
        seconds = self._patience_us / 1e6
        value = at - since
        times = int(at * 1e6), int(since * 1e6)
        return Alert("stale feed", "stale", state, (), *times, value, value, value, seconds, why, self._app)
