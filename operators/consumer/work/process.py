"""A sketching worker as a process of its own: ``python -m streamgauge.operators.consumer.work.process``.

The plan comes pickled over standard input, which then stays open. When it closes, because the run ends or the
run's process died, the worker delivers what it holds and ends. An error comes back pickled over the pipe that
was its standard output; whatever it or the user's decoder prints goes to standard error.
"""

from __future__ import annotations

import logging
import os
import pickle
import signal
import subprocess
import sys
import threading
from contextlib import suppress

from ...child import child
from ..ending import ASKING
from ..plan import Plan

_MODULE = "streamgauge.operators.consumer.work.process"


class WorkerProcess:
    """The run's side of one worker process."""

    def __init__(self, plan: Plan) -> None:
        self._process = child(_MODULE)
        assert self._process.stdin is not None
        self._said = b""
        # Read while it runs: an error larger than the pipe would keep the process from ending.
        self._reading = threading.Thread(target=self._read, name="streamgauge-worker-errors", daemon=True)
        self._reading.start()
        with suppress(BrokenPipeError):
            pickle.dump(plan, self._process.stdin)
            self._process.stdin.flush()

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as output:
            self._said = output.read()

    @property
    def pid(self) -> int:
        """The process's id."""
        return self._process.pid

    @property
    def ended(self) -> bool:
        """Whether it has ended."""
        return self._process.poll() is not None

    @property
    def told(self) -> str:
        """How it ended, in words."""
        code = self._process.poll()
        if code is None:
            return "running"
        return f"killed by signal {-code}" if code < 0 else f"exit status {code}"

    def error(self) -> BaseException | None:
        """The error it failed with, if it could still report it; can be asked once."""
        if self._process.poll() != 1:
            return None
        self._reading.join()
        try:
            found: BaseException = pickle.loads(self._said)
            return found
        except Exception as error:
            return RuntimeError(f"a worker process failed and its error can't be read: {error}")

    def stop(self) -> None:
        """Ask it to deliver what it holds and to end."""
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
    """The worker's side."""
    for number in ASKING:
        signal.signal(number, signal.SIG_IGN)  # the run decides when its workers end
    errors = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    logging.basicConfig(level=logging.WARNING, format="%(name)s: %(message)s")
    stopping = threading.Event()
    try:
        plan: Plan = pickle.load(sys.stdin.buffer)

        def watch() -> None:
            # Not through the buffered reader, whose lock would keep the interpreter from ending.
            while os.read(sys.stdin.fileno(), 4096):
                pass
            stopping.set()

        threading.Thread(target=watch, daemon=True).start()
        from .worker import Worker

        Worker(plan, stopping.is_set).run()
    except BaseException as error:
        logging.getLogger("streamgauge.kafka").error("a worker failed: %s", error)
        with errors:
            errors.write(_portable(error))
        return 1
    return 0


def _portable(error: BaseException) -> bytes:
    try:
        data = pickle.dumps(error)
        pickle.loads(data)
        return data
    except Exception:
        return pickle.dumps(RuntimeError(f"{type(error).__name__}: {error}"))


if __name__ == "__main__":
    sys.exit(main())
