"""Connections that a worker process keeps between tasks: a limited number, and only while they are used."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

T = TypeVar("T")

_IDLE_SECONDS = 60.0


class ConnectionPool(Generic[T]):
    """At most `most` connections by key; a connection is closed if unused for a minute.

    A caller that borrows a connection puts it back, or closes it if it failed.

    >>> kept = ConnectionPool(2, close=print)
    >>> for name in "abc":
    ...     kept.put(name, name.upper())
    A
    >>> kept.borrow("b"), kept.borrow("b")
    ('B', None)
    """

    def __init__(
        self, most: int, close: Callable[[T], object], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._most = most
        self._close = close
        self._clock = clock
        self._held: OrderedDict[Hashable, tuple[T, float]] = OrderedDict()

    def borrow(self, key: Hashable) -> T | None:
        """Remove and return the connection for `key`, if there is one."""
        connection = self._held.pop(key, None)
        self._tidy()
        return None if connection is None else connection[0]

    def put(self, key: Hashable, connection: T) -> None:
        """Store a connection until it is needed."""
        self._held[key] = connection, self._clock()
        self._tidy()

    def _tidy(self) -> None:
        before = self._clock() - _IDLE_SECONDS
        while self._held and (len(self._held) > self._most or next(iter(self._held.values()))[1] < before):
            self._close(self._held.popitem(last=False)[1][0])
