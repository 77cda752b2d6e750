"""The sketching workers of one run: one in the run's own process, or processes, as many as are wanted."""

from __future__ import annotations

import logging
import math
import threading
import time as wall
from collections.abc import Callable, Collection

from ...formats.decode import check_importable
from ...watching.figures import WorkFigures
from ..run_plan import Plans
from .process import WorkerProcess, prepare_workers, worker_server
from .worker import Worker

log = logging.getLogger("streamgauge.kafka")

_STOP_SECONDS = 20.0
"""How long worker processes have to deliver what they hold before they are killed."""


class Workers:
    """Starts workers, replaces processes that died, and ends those that are too many.

    Each has a number, the lowest that is free: with static membership (``group.instance.id``) it is a part of
    its name in the group, so that one that takes another's place gets the same partitions. The one in this
    process, if there is one, has the number 0; it is `own`, and its caller runs it in a thread.
    """

    def __init__(self, plans: Plans, stop: threading.Event) -> None:
        self._plans = plans
        self._lock = threading.Lock()
        self._processes: dict[int, WorkerProcess] = {}
        self._leaving: list[tuple[float, WorkerProcess]] = []
        self._past = WorkFigures()
        self._server = worker_server()
        many = plans.first.options.workers
        self.own = Worker(plans.of_worker(0), stop.is_set) if many == 1 else None
        if many > 1:
            self._processes = self._made(range(many))

    @property
    def pids(self) -> list[int]:
        """The ids of the worker processes."""
        with self._lock:
            return [process.pid for process in self._processes.values()]

    @property
    def figures(self) -> WorkFigures:
        """What they did and have, with those that have ended."""
        own = WorkFigures() if self.own is None else self.own.figures
        with self._lock:
            known = [*self._processes.values(), *(process for _, process in self._leaving)]
            return sum((process.figures for process in known), own + self._past)

    def scale(self, many: int) -> None:
        """Have so many workers. Those that are too many deliver what they hold, and leave.

        Raises `ValueError` for less than one, and for a decoder that other processes can't import.
        """
        if type(many) is not int or many < 1:
            raise ValueError(f"workers must be an integer ≥ 1, got {many!r}")
        wanted = many - (self.own is not None)
        if wanted > len(self._processes):
            for source in self._plans.sources:
                for decoder in source.decoders:
                    check_importable(decoder)
            prepare_workers(plan.stream for plan in self._plans.by_name.values())
        with self._lock:
            first = int(self.own is not None)
            self._processes |= self._made(set(range(first, first + wanted)) - set(self._processes))
            for number in sorted(self._processes)[wanted:]:
                leaving = self._processes.pop(number)
                leaving.stop()
                self._leaving.append((wall.monotonic() + _STOP_SECONDS, leaving))

    def replace_dead(self) -> BaseException | None:
        """Replace processes that died. Gives the error of one that failed, if it could still report it."""
        with self._lock:
            for number, process in self._processes.items():
                if not process.ended:
                    continue
                if (error := process.error()) is not None:
                    return error
                log.warning("a worker process ended (%s); starting another in its place", process.exit_text)
                self._past += process.figures.past
                self._processes |= self._made([number])
            for late, process in list(self._leaving):
                if process.ended or wall.monotonic() > late:
                    self._leaving.remove((late, process))
                    if (error := self._ended(process)) is not None:
                        return error
        return None

    def end(self, seconds_left: Callable[[], float] = lambda: math.inf) -> list[BaseException]:
        """Have all processes deliver what they hold, and wait for their ends. Gives their errors.

        Those that still run when no seconds are left are killed.
        """
        with self._lock:
            processes = [*self._processes.values(), *(process for _, process in self._leaving)]
            self._leaving.clear()
            for process in processes:
                process.stop()
            late = wall.monotonic() + _STOP_SECONDS
            errors = [
                self._ended(process, min(late - wall.monotonic(), seconds_left()), keep=True)
                for process in processes
            ]
        return [error for error in errors if error is not None]

    def _made(self, numbers: Collection[int]) -> dict[int, WorkerProcess]:
        """Workers with these numbers, which begin together."""
        start, made = threading.Barrier(max(len(numbers), 1)), dict[int, WorkerProcess]()
        try:
            for number in sorted(numbers):
                made[number] = WorkerProcess(self._plans.of_worker(number), self._server, start)
        except BaseException:
            for process in made.values():
                process.stop()
            start.abort()
            raise
        return made

    def _ended(
        self, process: WorkerProcess, seconds: float = 0.0, keep: bool = False
    ) -> BaseException | None:
        """Wait for a process's end, and kill it after so many seconds."""
        process.join(max(seconds, 0.0))
        if not keep:
            self._past += process.figures.past
        return process.error()
