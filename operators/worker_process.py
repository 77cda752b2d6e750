"""A sketching worker as a process of its own: ``python -m streamgauge.operators.worker_process``.

The plan comes pickled over standard input, which then stays open: when it closes, because the run ends or the
run's process is gone, the worker delivers what it holds and ends. What it fails with comes back pickled over
standard output.
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

from .plan import Plan

_MODULE = "streamgauge.operators.worker_process"


class WorkerProcess:
    """The run's side of one worker process."""

    def __init__(self, plan: Plan) -> None:
        # What the plan's pickle names must be importable there as it is here.
        paths = os.pathsep.join(path for path in sys.path if path)
        self._process = subprocess.Popen(
            [sys.executable, "-m", _MODULE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": paths},
        )
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            pickle.dump(plan, self._process.stdin)
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
    def told(self) -> str:
        """How it ended, in words."""
        code = self._process.poll()
        if code is None:
            return "running"
        return f"killed by signal {-code}" if code < 0 else f"exit status {code}"

    def error(self) -> BaseException | None:
        """What it failed with, if it lived to say so; asked once."""
        if self._process.poll() != 1 or self._process.stdout is None:
            return None
        try:
            with self._process.stdout as output:
                return pickle.load(output)
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
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the run decides when its workers end
    logging.basicConfig(level=logging.WARNING, format="%(name)s: %(message)s")
    stopping = threading.Event()
    try:
        plan: Plan = pickle.load(sys.stdin.buffer)

        def watch() -> None:
            sys.stdin.buffer.read()
            stopping.set()

        threading.Thread(target=watch, daemon=True).start()
        from .worker import Worker

        Worker(plan, stopping.is_set).run()
    except BaseException as error:
        logging.getLogger("streamgauge.kafka").error("a worker failed: %s", error)
        sys.stdout.buffer.write(_portable(error))
        sys.stdout.flush()
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
