"""What a worker process reports to its run while both live: its log, that it has loaded, its figures, and the
error it failed with.

Each report is a pickled pair of kind and value, sent over the pipe that was the process's standard output.
"""

from __future__ import annotations

import logging
import os
import pickle
import select
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from logging.handlers import QueueHandler
from typing import IO, Any, Literal

from ...watching.figures import WorkFigures
from ...watching.logs import FIELDS
from ..error_context import in_words
from ..stop_deadline import STOP_SECONDS

Kind = Literal["log", "ready", "figures", "error"]

_UNHEARD_SECONDS = STOP_SECONDS
"""How long a worker whose run has died may deliver what it holds."""
_PARTS = ("name", "levelno", "levelname", "created", "msecs", "msg", "exc_text", "process", "threadName")


class WorkerReporter:
    """The worker's side."""

    def __init__(self, pipe: IO[bytes]) -> None:
        self._pipe = pipe
        self._lock = threading.Lock()

    def log(self, record: logging.LogRecord) -> None:
        """Send a log record whose message is already formatted."""
        fields = (*_PARTS, *(name for name in FIELDS if hasattr(record, name)))
        self._send("log", {name: getattr(record, name, None) for name in fields})

    def ready(self) -> None:
        """Report that everything is loaded and the worker can begin."""
        self._send("ready", None)

    def figures(self, figures: WorkFigures) -> None:
        """Send the worker's current figures."""
        self._send("figures", figures)

    def error(self, error: BaseException) -> None:
        """Send the error it failed with; only its message, if it can't be pickled."""
        try:
            data = pickle.dumps(error)
            pickle.loads(data)
        except Exception:
            data = pickle.dumps(RuntimeError(f"{type(error).__name__}: {in_words(error)}"))
        self._send("error", data)

    def end_unheard(self) -> None:
        """Wait until the run's process has died, and end this one some time after that.

        Nobody else would end a worker that waits for its brokers. Does nothing where a process can't notice.
        """
        if not hasattr(select, "poll"):
            return
        gone = select.poll()
        gone.register(self._pipe.fileno(), 0)  # of a pipe without a reader, an error is always reported
        gone.poll()
        time.sleep(_UNHEARD_SECONDS)
        os._exit(1)

    def _send(self, kind: Kind, value: Any) -> None:
        # If the run has died nobody listens; the worker notices when its standard input closes.
        with self._lock, suppress(OSError):
            pickle.dump((kind, value), self._pipe)
            self._pipe.flush()


class ReportingHandler(QueueHandler):
    """Sends log records to the run, whose handlers write them like the run's own."""

    def __init__(self, reporter: WorkerReporter) -> None:
        super().__init__(None)  # type: ignore[arg-type]
        self._reporter = reporter

    def enqueue(self, record: logging.LogRecord) -> None:
        """Send a record that can be pickled."""
        self._reporter.log(record)


class WorkerListener:
    """The run's side: `run` reads a worker's reports until its pipe ends; `figures` are the latest.

    `ready` is called once the worker can begin.
    """

    def __init__(self, pipe: IO[bytes], ready: Callable[[], None] = lambda: None) -> None:
        self._pipe = pipe
        self._ready = ready
        self.figures = WorkFigures()
        self._error: bytes | None = None

    def run(self) -> None:
        """Read reports until the pipe ends."""
        # A worker that is killed may end in the middle of a report.
        with self._pipe, suppress(EOFError, pickle.UnpicklingError):
            while True:
                kind, value = pickle.load(self._pipe)
                if kind == "log":
                    _log(value)
                elif kind == "ready":
                    self._ready()
                elif kind == "figures":
                    self.figures = value
                else:
                    self._error = value

    def error(self) -> BaseException:
        """The error that the worker failed with."""
        try:
            failure: BaseException = pickle.loads(self._error or b"")
            return failure
        except Exception as error:
            return RuntimeError(f"a worker process failed and its error can't be read: {error}")


def _log(fields: dict[str, Any]) -> None:
    record = logging.makeLogRecord(fields)
    logger = logging.getLogger(record.name)
    if logger.isEnabledFor(record.levelno):
        logger.handle(record)
