"""Callbacks that are notified of changes."""

from __future__ import annotations

import threading
from collections.abc import Callable


class Watchers:
    """Callbacks to call after each change. Thread-safe.

    >>> watchers, heard = Watchers(), []
    >>> end = watchers.add(lambda: heard.append("changed"))
    >>> watchers.changed()
    >>> end()
    >>> watchers.changed()
    >>> heard
    ['changed']
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._calls: tuple[Callable[[], None], ...] = ()

    def add(self, call: Callable[[], None]) -> Callable[[], None]:
        """Call `call` after each change, from any thread; returns a function that ends this."""
        with self._lock:
            self._calls = (*self._calls, call)

        def end() -> None:
            with self._lock:
                self._calls = tuple(other for other in self._calls if other is not call)

        return end

    def changed(self) -> None:
        """Notify all current watchers."""
        for call in self._calls:
            call()
