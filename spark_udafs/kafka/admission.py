"""Start a micro-batch when there are enough new messages, or after waiting long enough for more."""

from __future__ import annotations


class Pace:
    """At least `least` messages per micro-batch, or fewer if the last one was `most_seconds` ago.

    As with Spark's own source, the first micro-batch doesn't wait.

    >>> pace = Pace(100, 900.0)
    >>> pace.enough(1, 0.0), pace.enough(99, 10.0), pace.enough(100, 20.0), pace.enough(1, 900.0)
    (True, False, True, False)
    >>> pace.enough(1, 920.0)
    True
    """

    def __init__(self, least: int | None, most_seconds: float) -> None:
        self._least = least
        self._most_seconds = most_seconds
        self._last: float | None = None

    def enough(self, waiting: int, now: float) -> bool:
        """Whether this many new messages start a micro-batch `now` (seconds of a monotonic clock)."""
        if self._least is None or not waiting:
            return True
        overdue = self._last is None or now - self._last >= self._most_seconds
        if waiting < self._least and not overdue:
            return False
        self._last = now
        return True
