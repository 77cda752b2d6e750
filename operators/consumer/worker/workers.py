"""The sketching workers of one run: one in the run's own process, or any number of processes."""

from __future__ import annotations

import logging
import math
import threading
import time as wall
import uuid
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
    """Starts workers, replaces processes that died, and ends surplus ones.

    Each has a number, the lowest free one. With static membership (``group.instance.id``) it is part of its
    name in the group, so that a replacement gets the same partitions. A worker that replaces a dead process
    also gets its transactional id, so that a transaction left open ends at once, not after
    ``transaction.timeout.ms``. The worker in this process, if there is one, has the number 0; it is `own`,
    and its caller runs it in a thread.
    """

    def __init__(self, plans: Plans, stop: threading.Event) -> None:
        self._plans = plans
        self._lock = threading.Lock()
        self._processes: dict[int, WorkerProcess] = {}
        self._transactional_ids: dict[int, str] = {}
        self._leaving: list[tuple[float, WorkerProcess]] = []
        self._past = WorkFigures()
        self._server = worker_server()
        many = plans.first.options.workers
        self.own = Worker(plans.of_worker(0, self._new_id()), stop.is_set) if many == 1 else None
        if many > 1:
            self._processes = self._made(range(many))

    @property
    def pids(self) -> list[int]:
        """The ids of the worker processes."""
        with self._lock:
            return [process.pid for process in self._processes.values()]

    @property
    def figures(self) -> WorkFigures:
        """Their figures, including those of workers that have ended."""
        own = WorkFigures() if self.own is None else self.own.figures
        with self._lock:
            known = [*self._processes.values(), *(process for _, process in self._leaving)]
            return sum((process.figures for process in known), own + self._past)

    def scale(self, many: int) -> None:
        """Change the number of workers. Surplus workers deliver what they hold, and leave.

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
        """Replace processes that died. Returns the error of one that failed, if it could report it."""
        with self._lock:
            for number, process in self._processes.items():
                if not process.ended:
                    continue
                if (error := process.error()) is not None:
                    return error
                log.warning("a worker process ended (%s); starting another in its place", process.exit_text)
                self._past += process.figures.past
                self._processes |= self._made([number], replacing=True)
            for late, process in list(self._leaving):
                if process.ended or wall.monotonic() > late:
                    self._leaving.remove((late, process))
                    if (error := self._ended(process)) is not None:
                        return error
        return None

    def end(self, seconds_left: Callable[[], float] = lambda: math.inf) -> list[BaseException]:
        """Make all processes deliver what they hold, and wait for their ends. Returns their errors.

        Processes that still run when no seconds are left are killed.
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

    def _made(self, numbers: Collection[int], replacing: bool = False) -> dict[int, WorkerProcess]:
        """Workers with these numbers, which begin together."""
        start, made = threading.Barrier(max(len(numbers), 1)), dict[int, WorkerProcess]()
        try:
            for number in sorted(numbers):
                if not replacing:
                    self._transactional_ids[number] = self._new_id()
                plans = self._plans.of_worker(number, self._transactional_ids[number])
                made[number] = WorkerProcess(plans, self._server, start)
        except BaseException:
            for process in made.values():
                process.stop()
            start.abort()
            raise
        return made

    def _ended(
        self, process: WorkerProcess, seconds: float = 0.0, keep: bool = False
    ) -> BaseException | None:
        """Wait for a process's end, and kill it after `seconds`."""
        process.join(max(seconds, 0.0))
        if not keep:
            self._past += process.figures.past
        return process.error()

    def _new_id(self) -> str:
        """A transactional id that no worker had before: leaving workers may still deliver under theirs."""
        return f"{self._plans.first.group_id}-{uuid.uuid4()}"
