"""Running steps in parallel, in separate processes: Numba compiles one kernel at a time in each."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import suppress

from ...sketches.core.errors import StreamgaugeError
from ...sketches.core.parallel import cores
from ..subprocess_module import child
from .steps import Step

_MODULE = "streamgauge.operators.warm_up.worker"


class WarmError(StreamgaugeError, RuntimeError):
    """A step failed; its process reports why on standard error."""


def run_all(steps: Sequence[Step], jobs: int = 0, done: Callable[[Step], object] = lambda step: None) -> None:
    """Run all steps, at most `jobs` (by default, as many as cores) at a time; `done` is called for each.

    Raises `WarmError` if one fails. However it ends, no process is left running.
    """
    jobs = min(jobs or cores(), len(steps))
    workers: list[_Worker] = []
    idle = threading.local()

    def one(step: Step) -> None:
        if not hasattr(idle, "worker"):
            idle.worker = _Worker()
            workers.append(idle.worker)
        idle.worker.run(step)
        done(step)

    pool = ThreadPoolExecutor(max(jobs, 1), thread_name_prefix="streamgauge-warm")
    try:
        futures = [pool.submit(one, step) for step in steps]
        for future in wait(futures, return_when=FIRST_EXCEPTION).done:
            future.result()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        for worker in workers:
            worker.end()
        pool.shutdown()


class _Worker:
    """A process that runs one step after another; it ends when its standard input does."""

    def __init__(self) -> None:
        self._process = child(_MODULE, own_session=True)  # Ctrl-C is for the process that waits for it

    def run(self, step: Step) -> None:
        """Run a step; returns when it is done. Raises `WarmError` if it fails."""
        process = self._process
        assert process.stdin is not None and process.stdout is not None
        with suppress(BrokenPipeError):
            pickle.dump(step, process.stdin)
            process.stdin.flush()
        if not process.stdout.read(1):
            raise WarmError(f"compiling {step.name} failed, exit status {process.wait()}")

    def end(self) -> None:
        """Kill it."""
        self._process.kill()
        self._process.communicate()
