"""A running query, which Ctrl-C ends cleanly: between two micro-batches, with one line on the terminal."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from pyspark.errors import StreamingQueryException

from ...operators.watching.terminal import write_line
from ...sketches.core.errors import RunError, StreamgaugeError
from ..slow_starts import begin_again, is_slow_start
from ..worker_errors import last_error

_LOOK_SECONDS = 0.25
_BATCH_SECONDS = 60.0
"""How long a running micro-batch may still take before it is cancelled."""
_DAMAGED = ("CANNOT_LOAD_STATE_STORE", "Corruption:", "CHECKSUM_VERIFICATION_FAILED", "Checksum error")
"""Messages of Spark, RocksDB and Hadoop about damaged state."""
_UNREACHABLE = (
    *("ParentNotDirectoryException", "AccessControlException", "AccessDeniedException", "Permission denied"),
    *("No space left on device", "Read-only file system", "Stale file handle", "Input/output error"),
    *("ConnectException", "NoRouteToHostException", "UnknownHostException", "SocketTimeoutException"),
)
"""Messages of Java and Hadoop about a file system that can't be used now, whatever Spark calls the state."""


class DamagedState(StreamgaugeError, RuntimeError):
    """The state in a query's checkpoint can't be read; the message names the folder and the remedy."""


class QueryFailed(RunError, StreamingQueryException):
    """A query that has ended with an error, in one line; Spark's own error is its cause (``__cause__``).

    It is also a `StreamingQueryException`, without its condition and stack traces.
    """

    def __init__(self, message: str) -> None:
        StreamingQueryException.__init__(self, message)
        self._line = message

    def __str__(self) -> str:
        return self._line


class Running:
    """Spark's own `StreamingQuery`, except for the effect of Ctrl-C and SIGTERM while its end is awaited.

    PySpark cancels all jobs on a signal, and each layer prints a traceback of the broken micro-batch. Here
    the query stops when its micro-batch is done; a later run resumes from its checkpoint. `write` returns one
    and shows an example.
    """

    def __init__(self, query: Any, checkpoint: str, begin: Callable[[], Any] | None = None) -> None:
        """`begin` restarts the query if Spark didn't wait for its Python process (`slow_starts`)."""
        self._query = query
        self._checkpoint = checkpoint
        self._begin = begin
        self._tries = 1
        self._beginning = threading.Lock()
        self._at_end: list[Callable[[], None]] = []

    def __getattr__(self, name: str) -> Any:
        if name == "_query":
            raise AttributeError(name)
        return getattr(self._query, name)

    def at_end(self, call: Callable[[], None]) -> None:
        """Register `call`, to be called once, in the thread that ends the query or has waited for its end."""
        self._at_end.append(call)

    def _ended_for_good(self) -> None:
        while self._at_end:
            self._at_end.pop(0)()

    @property
    def isActive(self) -> bool:
        """Whether the query is running, or was restarted."""
        return bool(self._query.isActive) or self._begun_again()

    def exception(self) -> Any:
        """Return the error that ended the query; None while it runs or if it was restarted."""
        return None if self._begun_again() else self._query.exception()

    def stop(self) -> None:
        """Stop the query immediately, for good."""
        with self._beginning:
            self._begin = None
        self._query.stop()
        self._ended_for_good()

    def _begun_again(self) -> bool:
        """Restart the query if it failed because a Python process started too late."""
        with self._beginning:
            if self._begin is None or self._query.isActive or not is_slow_start(self._query.exception()):
                return False
            if not begin_again(f"the query of {self._checkpoint}", self._tries):
                return False
            self._tries += 1
            self._query = self._begin()
            return True

    def awaitTermination(self, timeout: float | None = None) -> bool:
        """Wait for the end, at most `timeout` seconds; returns whether the query has ended.

        Ctrl-C and SIGTERM end the query cleanly, with one line on the terminal. Raises `QueryFailed` with the
        error of a failed query, and `DamagedState` if state in its checkpoint can't be read; Spark's own
        error is the cause of both.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        with end_signalled() as signalled:
            while not signalled.is_set():
                left = _LOOK_SECONDS if deadline is None else deadline - time.monotonic()
                # An interrupted call breaks the connection to Java, so each call is short.
                if self._ended(max(min(left, _LOOK_SECONDS), 0.001)):
                    return True
                if deadline is not None and time.monotonic() >= deadline:
                    return False
            self.end()
        write_line("streamgauge: the query has ended; it resumes from its checkpoint", sys.stderr)
        return True

    def _ended(self, seconds: float) -> bool:
        try:
            ended = bool(self._query.awaitTermination(seconds))
            if ended:
                self._ended_for_good()
            return ended
        except StreamingQueryException as error:
            if is_slow_start(error) and self.isActive:
                return False
            self._ended_for_good()
            text = str(error)
            if not any(sign in text for sign in _DAMAGED):
                raise failed(error) from error
            if reason := next((sign for sign in _UNREACHABLE if sign in text), None):
                raise QueryFailed(
                    f"the checkpoint {self._checkpoint} can't be used now: {reason}. Nothing is lost: start "
                    "the query again once Spark can read and write it"
                ) from error
            raise DamagedState(
                f"the state of this query can't be read: files in {self._checkpoint}/state are damaged or "
                "missing. Nothing was computed from them. Restore a copy of the whole checkpoint, or begin "
                "with a new one, which counts the rows of open windows that the source still has"
            ) from error

    def end(self) -> None:
        """Stop the query between two micro-batches."""
        with self._beginning:
            self._begin = None
        deadline = time.monotonic() + _BATCH_SECONDS
        while self._query.isActive and time.monotonic() < deadline:
            if not self._query.status["isTriggerActive"]:
                break
            time.sleep(0.01)
        self._query.stop()
        self._ended_for_good()


def failed(error: StreamingQueryException) -> QueryFailed:
    """Return Spark's error of a query in one line, with its notes."""
    text = str(error)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    mine = QueryFailed(last_error(text) or (lines[0] if lines else type(error).__name__))
    for note in getattr(error, "__notes__", ()):
        mine.add_note(note)
    return mine


@contextmanager
def end_signalled() -> Iterator[threading.Event]:
    """Yield an event that the signals set; only the main thread can handle signals."""
    signalled = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield signalled
        return
    heeded = [number for number in (signal.SIGINT, signal.SIGTERM) if _heeded(number)]
    before = [(number, signal.signal(number, lambda *_: signalled.set())) for number in heeded]
    try:
        yield signalled
    finally:
        for number, handler in before:
            signal.signal(number, handler)


def _heeded(number: signal.Signals) -> bool:
    """Whether the signal is not ignored, and Python can restore its handler."""
    return signal.getsignal(number) not in (signal.SIG_IGN, None)
