"""How long a partition has been silent, with no message left that is certain to arrive.

Messages after an open transaction, and unread messages, are certain to arrive: a partition that has any is
not silent. Messages without a usable event time (bad ones, filtered ones) don't advance event time: a
partition with only such messages is silent, however many there are.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Rest:
    """The silence of an idle partition, in microseconds.

    `us` is how long it has been silent, `patience_us` the silence after which it counts as idle, and `now_us`
    the wall clock at that moment. A `patience_us` of 0 means that it has ended: a bounded run has read all of
    it.
    """

    us: int
    patience_us: int
    now_us: int

    @property
    def ended(self) -> bool:
        """Whether nothing more will arrive at all."""
        return self.patience_us == 0


class IdleTimer:
    """Measures the silence of one partition; times are seconds of a clock that never goes back.

    >>> silence = IdleTimer(now=0.0)
    >>> silence.update(position=7, end=7, now=4.0), silence.update(position=7, end=9, now=6.0)
    (4.0, 0.0)
    >>> silence.heard(now=6.5)
    >>> silence.update(position=9, end=9, now=8.0)
    1.5
    """

    def __init__(self, now: float) -> None:
        self._heard = self._read = now
        self._last_check: tuple[int, int, float] | None = None

    def heard(self, now: float) -> None:
        """Record that a row with an event time has arrived."""
        self._heard = now

    def since(self, now: float) -> float:
        """Seconds since the last row with an event time, even if messages are unread."""
        return now - self._heard

    def update(self, position: int, end: int, now: float) -> float:
        """Seconds of silence; 0 while an unread message may have an event time.

        `position` is the next offset to read, `end` the offset after the last message, open transactions
        included. If messages without event time never cease, there are always unread ones; then it is enough
        that everything was read that existed at the previous call.
        """
        if position >= end:
            self._read, self._last_check = now, None
            return max(0.0, self._read - self._heard)
        if self._last_check is None or position >= self._last_check[1]:
            if self._last_check is not None and position > self._last_check[0]:
                self._read = self._last_check[2]
                self._last_check = position, end, now
                return max(0.0, self._read - self._heard)
            self._last_check = position, end, now
        return 0.0
