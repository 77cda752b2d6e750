"""A sketching worker as a process of its own, forked from the program's server (`worker_server`).

Where processes can't be forked it is ``python -m streamgauge.operators.consumer.worker.process``. The plans
arrive pickled over standard input, which then stays open: a byte on it tells the worker to begin. When it
closes, because the run ends or its process died, the worker delivers what it holds and ends. Its log, figures
and error are sent back over the pipe that was its standard output (`worker_ipc`); whatever it or the user's
decoder prints goes to standard error.
"""

from __future__ import annotations

import atexit
import logging
import os
import pickle
import signal
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import copy_context
from functools import cache
from typing import TYPE_CHECKING

import cloudpickle

from ...definition.stream import Stream
from ...subprocess_module import child
from ...warm_up.sketching import SketchingKinds
from ...watching.figures import WorkFigures
from ..error_context import in_words
from ..run_plan import Plans
from ..signals import STOP_SIGNALS
from .worker_ipc import ReportingHandler, WorkerListener, WorkerReporter
from .worker_server import WorkerServer, serve

if TYPE_CHECKING:
    from .worker import Worker

PROCESS = "streamgauge.operators.consumer.worker.process"
"""This module, for `python -m`."""
_BEGIN = b"b"
_REPORT_SECONDS = 0.5
_LAST_WORDS_SECONDS = 1.0


class WorkerProcess:
    """The run's side of one worker process.

    Processes share the barrier `start`: none of them joins the group before all can, or have ended. Otherwise
    the first one would be assigned all partitions, and have to give some up again.
    """

    def __init__(
        self, plans: Plans, server: WorkerServer | None = None, start: threading.Barrier | None = None
    ) -> None:
        self._start = start or threading.Barrier(1)
        self._process = child(PROCESS) if server is None else server.fork()
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._hearing = WorkerListener(self._process.stdout, self._begin)
        self._reading = threading.Thread(
            target=copy_context().run, args=(self._hear,), name="streamgauge-hearing", daemon=True
        )
        self._reading.start()
        level = logging.getLogger("streamgauge.kafka").getEffectiveLevel()
        with suppress(BrokenPipeError):
            # Objects from the user's own script, which no other process can import, are pickled by value:
            # decoders, callbacks.
            cloudpickle.dump((plans, level), self._process.stdin)
            self._process.stdin.flush()

    def _hear(self) -> None:
        self._hearing.run()
        self._start.abort()  # the others don't wait for a process that has ended

    def _begin(self) -> None:
        with suppress(threading.BrokenBarrierError):
            self._start.wait()
        assert self._process.stdin is not None
        with suppress(OSError, ValueError):  # it has ended, or was already stopped
            self._process.stdin.write(_BEGIN)
            self._process.stdin.flush()

    @property
    def pid(self) -> int:
        """The process's id."""
        return self._process.pid

    @property
    def ended(self) -> bool:
        """Whether it has ended."""
        return self._process.poll() is not None

    @property
    def exit_text(self) -> str:
        """How it ended, in words."""
        code = self._process.poll()
        if code is None:
            return "running"
        return f"killed by signal {-code}" if code < 0 else f"exit status {code}"

    @property
    def figures(self) -> WorkFigures:
        """Its figures, from its last report."""
        if self.ended:
            self._reading.join(_LAST_WORDS_SECONDS)
            return self._hearing.figures.past
        return self._hearing.figures

    def error(self) -> BaseException | None:
        """The error it failed with, if it could report one; can be read once."""
        if self._process.poll() != 1:
            return None
        self._reading.join()
        return self._hearing.error()

    def stop(self) -> None:
        """Make it deliver what it holds and end."""
        if self._process.stdin is not None:
            with suppress(BrokenPipeError):
                self._process.stdin.close()

    def join(self, seconds: float) -> None:
        """Wait for its end; kill it after `seconds`."""
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def main() -> int:
    """Run the worker's side."""
    for number in STOP_SIGNALS:
        signal.signal(number, signal.SIG_IGN)  # the run decides when its workers end
    reporter = WorkerReporter(os.fdopen(os.dup(sys.stdout.fileno()), "wb"))
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    logging.getLogger().addHandler(ReportingHandler(reporter))
    stopping, going = threading.Event(), threading.Event()
    try:
        import polars  # noqa: F401 - before there are plans, which can't be read without

        plans: Plans
        try:
            plans, level = pickle.load(sys.stdin.buffer)
        except EOFError:
            return 0  # the run didn't start
        logging.getLogger("streamgauge.kafka").setLevel(level)

        def watch() -> None:
            # Not through the buffered reader, whose lock would prevent the interpreter from ending.
            while os.read(sys.stdin.fileno(), 4096):
                going.set()
            stopping.set()
            going.set()
            reporter.end_unheard()

        threading.Thread(target=watch, daemon=True).start()
        from .worker import Worker

        worker = Worker(plans, stopping.is_set)
        reporter.ready()
        going.wait()
        with _reporting(worker, reporter):
            worker.run()
    except BaseException as error:
        logging.getLogger("streamgauge.kafka").error("a worker failed: %s", in_words(error))
        reporter.error(error)
        return 1
    return 0


@contextmanager
def _reporting(worker: Worker, reporter: WorkerReporter) -> Iterator[None]:
    """Report the worker's figures every second within the block, and once more at its end."""
    ended = threading.Event()

    def report() -> None:
        while not ended.wait(_REPORT_SECONDS):
            reporter.figures(worker.figures)

    reporting = threading.Thread(target=report, name="streamgauge-reporting", daemon=True)
    reporting.start()
    try:
        yield
    finally:
        ended.set()
        reporting.join()
        reporter.figures(worker.figures)


@cache
def worker_server() -> WorkerServer | None:
    """The server from which this program's worker processes are forked; None if they can't be forked."""
    if not WorkerServer.possible():
        return None
    server = WorkerServer(PROCESS)
    atexit.register(server.end)
    return server


def prepare_workers(streams: Iterable[Stream], many: int = 0) -> None:
    """Load what workers of these streams need, and start `many`, concurrently with the run's start-up."""
    if (server := worker_server()) is not None:
        server.prepare([SketchingKinds.of(stream) for stream in streams if stream.sending is None], many)


def release_workers() -> None:
    """End the workers that were prepared for a run that didn't start."""
    if (server := worker_server()) is not None:
        server.release()


def _load(streams: list[SketchingKinds] | None) -> None:
    """Load modules in a server before it forks; not Polars, whose threads don't survive a fork."""
    from ....sketches.core.compilation.kernel_cache import NotKept, only_kept
    from ...kafka.warm import split_batches
    from . import worker  # noqa: F401

    for rehearsal in [split_batches] if streams is None else [stream.rehearse for stream in streams]:
        with suppress(NotKept), only_kept():
            rehearsal()


if __name__ == "__main__":
    if len(sys.argv) == 1 or serve(int(sys.argv[1]), _load, float(sys.argv[2])) is not None:
        code = main()
        for stream in (sys.stdout, sys.stderr):  # flush what decoders have printed
            with suppress(OSError, ValueError):
                stream.flush()
        # The process's memory is freed with it. Tearing down the interpreter would take a tenth of a second,
        # and first copy all memory that it shares with its server.
        os._exit(code)
