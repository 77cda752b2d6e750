"""When a micro-batch is worth its while: with enough new messages, or after waiting long enough for more."""

from __future__ import annotations


class Pace:
    """At least `least` messages a micro-batch, or fewer once the last one is `most_seconds` ago.

    As with Spark's own source the first micro-batch doesn't wait.

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
        """Whether so many new messages make a micro-batch now (seconds of a clock that only rises)."""
        if self._least is None or not waiting:
            return True
        overdue = self._last is None or now - self._last >= self._most_seconds
        if waiting < self._least and not overdue:
            return False
        self._last = now
        return True
