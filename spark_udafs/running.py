"""A query that runs, and how Ctrl-C ends it: in order, between two micro-batches, in one line."""

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
"""How long a micro-batch that runs may go on before it is cut off."""


class Running:
    """Spark's own `StreamingQuery`, but for what Ctrl-C and SIGTERM do to who waits for its end.

    PySpark cancels all jobs then, and the ruins of the micro-batch are shown at every level. A query is asked
    to stop here when its micro-batch is done, and what comes later is read by whoever goes on from its
    checkpoint.
    """

    def __init__(self, query: Any) -> None:
        self._query = query

    def __getattr__(self, name: str) -> Any:
        if name == "_query":
            raise AttributeError(name)
        return getattr(self._query, name)

    def awaitTermination(self, timeout: float | None = None) -> bool:
        """Wait for the end, at most `timeout` seconds; whether it has ended.

        Ctrl-C and SIGTERM end the query in order and are told in one line. Raises what the query failed with.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        with _told_to_end() as told:
            while not told.is_set():
                left = _LOOK_SECONDS if deadline is None else deadline - time.monotonic()
                # A call that is interrupted leaves the connection to Java broken, so they are short.
                if self._query.awaitTermination(max(min(left, _LOOK_SECONDS), 0.001)):
                    return True
                if deadline is not None and time.monotonic() >= deadline:
                    return False
            self._stop()
        print("streamgauge: the query has ended; it goes on from its checkpoint", file=sys.stderr)
        return True

    def _stop(self) -> None:
        """Stop between two micro-batches."""
        deadline = time.monotonic() + _BATCH_SECONDS
        while self._query.isActive and time.monotonic() < deadline:
            if not self._query.status["isTriggerActive"]:
                break
            time.sleep(0.01)
        self._query.stop()


@contextmanager
def _told_to_end() -> Iterator[threading.Event]:
    """An event that the signals set, where they can be heeded: in the main thread."""
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
    """Whether nobody has it ignored, and Python knows who has it now."""
    return signal.getsignal(number) not in (signal.SIG_IGN, None)
