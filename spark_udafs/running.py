"""A running query, which Ctrl-C ends in order: between two micro-batches, with one line on the terminal."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_LOOK_SECONDS = 0.25
_BATCH_SECONDS = 60.0
"""How long a running micro-batch may still take before it is cut off."""


class Running:
    """Spark's own `StreamingQuery`, except for what Ctrl-C and SIGTERM do while its end is awaited.

    PySpark cancels all jobs on a signal, and each layer prints a traceback of the broken micro-batch. Here
    the query stops when its micro-batch is done; a later run goes on from its checkpoint. `write` gives one
    and shows an example.
    """

    def __init__(self, query: Any) -> None:
        self._query = query

    def __getattr__(self, name: str) -> Any:
        if name == "_query":
            raise AttributeError(name)
        return getattr(self._query, name)

    def awaitTermination(self, timeout: float | None = None) -> bool:
        """Wait for the end, at most `timeout` seconds; gives whether the query has ended.

        Ctrl-C and SIGTERM end the query in order, with one line on the terminal. Raises the error that the
        query failed with.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        with told_to_end() as told:
            while not told.is_set():
                left = _LOOK_SECONDS if deadline is None else deadline - time.monotonic()
                # An interrupted call breaks the connection to Java, so each call is short.
                if self._query.awaitTermination(max(min(left, _LOOK_SECONDS), 0.001)):
                    return True
                if deadline is not None and time.monotonic() >= deadline:
                    return False
            self.end()
        print("streamgauge: the query has ended; it goes on from its checkpoint", file=sys.stderr)
        return True

    def end(self) -> None:
        """Stop it between two micro-batches."""
        deadline = time.monotonic() + _BATCH_SECONDS
        while self._query.isActive and time.monotonic() < deadline:
            if not self._query.status["isTriggerActive"]:
                break
            time.sleep(0.01)
        self._query.stop()


@contextmanager
def told_to_end() -> Iterator[threading.Event]:
    """An event that the signals set; only the main thread can handle them."""
    told = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield told
        return
    heeded = [number for number in (signal.SIGINT, signal.SIGTERM) if _heeded(number)]
    before = [(number, signal.signal(number, lambda *_: told.set())) for number in heeded]
    try:
        yield told
    finally:
        for number, handler in before:
            signal.signal(number, handler)


def _heeded(number: signal.Signals) -> bool:
    """Whether the signal is not ignored, and its handler is one that Python can put back."""
    return signal.getsignal(number) not in (signal.SIG_IGN, None)
