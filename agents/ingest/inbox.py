"""A bounded queue of pushed messages, which receiving threads fill and the agent reads."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from .batch import Batch, DeadLine

CAPACITY = 50_000
FULL = "source full"
_MOST = 10_000
"""The most messages in a batch."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """Messages that arrived together, and callbacks for their delivery."""

    values: Sequence[bytes]
    keys: Sequence[bytes | None] | None = None
    dead: Sequence[DeadLine] = ()
    acknowledged: Callable[[], None] | None = None
    refused: Callable[[str], None] | None = None
    position: Any = None

    @property
    def count(self) -> int:
        """The number of messages."""
        return len(self.values) + len(self.dead)


class Inbox:
    """At most `capacity` messages between their senders and the agent.

    >>> inbox = Inbox(2)
    >>> [inbox.offer(Arrival([b"one", b"two"])), inbox.offer(Arrival([b"three"]))]
    [True, False]
    >>> inbox.drop(1, "source full")
    >>> inbox.read(0).account_text
    '3 read: 2 to send, 0 dead, 1 dropped (source full)'
    """

    def __init__(self, capacity: int = CAPACITY, most: int = _MOST) -> None:
        self._capacity, self._most = capacity, most
        self._arrivals: list[Arrival] = []
        self._count = 0
        self._dropped: Counter[str] = Counter()
        self._changed = threading.Condition()
        self.closed = False

    def offer(self, arrival: Arrival) -> bool:
        """Accept messages if there is room for them; return whether they were accepted."""
        with self._changed:
            if self.closed or (self._count and self._count + arrival.count > self._capacity):
                return False
            self._arrivals.append(arrival)
            self._count += arrival.count
            self._changed.notify_all()
            return True

    def put(self, arrival: Arrival) -> bool:
        """Wait for room and accept messages; return False if the inbox was closed meanwhile."""
        while not self.closed:
            if self.offer(arrival):
                return True
            with self._changed:
                self._changed.wait(0.05)
        return False

    def drop(self, count: int, reason: str) -> None:
        """Count messages that were read and dropped."""
        with self._changed:
            self._dropped[reason] += count
            self._changed.notify_all()

    @property
    def count(self) -> int:
        """The number of waiting messages."""
        return self._count

    @property
    def empty(self) -> bool:
        """Whether there is nothing to read."""
        return not self._arrivals and not self._dropped

    def read(self, seconds: float, stream: str = "", part: str | None = None) -> Batch | None:
        """Return the waiting messages as one batch, after at most `seconds`; None if nothing came.

        With `part`, that part of the source's positions is taken from the last arrival.
        """
        with self._changed:
            if self.empty:
                self._changed.wait(seconds)
            if self.empty:
                return None
            taken, count = 0, 0
            while taken < len(self._arrivals) and (not taken or count < self._most):
                count += self._arrivals[taken].count
                taken += 1
            arrivals = self._arrivals[:taken]
            del self._arrivals[:taken]
            self._count -= count
            dropped, self._dropped = dict(self._dropped), Counter()
            self._changed.notify_all()
        return _joined(arrivals, dropped, stream, part)

    def discard(self) -> int:
        """Accept nothing more, and discard all messages; return how many there were."""
        with self._changed:
            self.closed = True
            lost = self._count + sum(self._dropped.values())
            self._arrivals, self._count = [], 0
            self._dropped.clear()
            self._changed.notify_all()
        return lost

    def close(self) -> None:
        """Accept nothing more; senders of the remaining messages are told that they were refused."""
        with self._changed:
            self.closed = True
            arrivals, self._arrivals = self._arrivals, []
            self._changed.notify_all()
        for arrival in arrivals:
            if arrival.refused is not None:
                arrival.refused("the agent ends")


def _joined(arrivals: Sequence[Arrival], dropped: dict[str, int], stream: str, part: str | None) -> Batch:
    def acknowledge() -> None:
        for arrival in arrivals:
            if arrival.acknowledged is not None:
                arrival.acknowledged()

    def refuse(reason: str) -> None:
        for arrival in arrivals:
            if arrival.refused is not None:
                arrival.refused(reason)

    keyed = any(arrival.keys is not None for arrival in arrivals)
    positions = [arrival.position for arrival in arrivals if arrival.position is not None]
    return Batch.of(
        [value for arrival in arrivals for value in arrival.values],
        stream=stream,
        keys=[key for arrival in arrivals for key in arrival.keys or [None] * len(arrival.values)]
        if keyed
        else None,
        dead=[line for arrival in arrivals for line in arrival.dead],
        dropped=dropped,
        positions={part: positions[-1]} if part is not None and positions else {},
        acknowledged=acknowledge,
        refused=refuse,
    )
