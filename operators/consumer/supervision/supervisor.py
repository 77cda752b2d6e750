"""Keeps the workers and mergers of a run going, and ends them in an orderly way."""

from __future__ import annotations

import atexit
import logging
import secrets
import sys
import threading
import time as wall
from collections.abc import Callable, Mapping
from functools import partial

from ....sketches.core.errors import RunError
from ...kafka.topic_watch import TopicWatch
from ...kafka.topics import TopicError, admin, remove
from ...secrets import without_secrets
from ...sketching.partition_buffer import MessageObserver
from ...watching.figures import State, WorkFigures
from ...watching.health import Health
from ...watching.logs import about
from ..error_context import in_stream, in_words
from ..group.input_topics import TopicSearch
from ..run_plan import Plans
from ..stop_deadline import STOP_SECONDS, StopDeadline
from ..worker.process import release_workers
from ..worker.workers import Workers
from .exposed_metrics import ExposedMetrics
from .stream_results import StreamResults

log = logging.getLogger("streamgauge.kafka")

_LOOK_SECONDS = 0.2
_STOP_SECONDS = 20.0
"""How long a program that exits waits for its runs to end."""


class Supervisor:
    """A run of one stream or of several together: their workers, and a merger for each, in `results`.

    A stream that fails ends the run; its error then says which stream it was. `exposed` holds the port of the
    run's metrics.
    """

    def __init__(self, plans: Plans, exposed: ExposedMetrics) -> None:
        self.plans = plans
        plan = plans.first
        self._about = {"run": secrets.token_hex(4), "group": plan.group_id, "topic": plans.topic}
        self._exposed = exposed
        self._admin = admin(plan.config)
        try:
            with about(**self._about):
                self._begin(plans)
        except BaseException:
            release_workers()
            if plan.options.group_id is None:
                self._remove()
            raise

    def _begin(self, plans: Plans) -> None:
        plan = plans.first
        tables = {own.table_topic: own.table_id for own in plans.by_name.values()}
        self._topics = TopicWatch(self._admin, {**plans.topic_ids, **tables})
        self._known, self._gone = set(plans.partitions), set[str]()
        self._search = TopicSearch(
            lambda: self._admin,
            [own.sources for own in plans.by_name.values()],
            plan.config,
            plans.partitions,
            {plan.options.dead_letters, plan.options.late},
        )
        self._stop, self._workers_done, self._wake = threading.Event(), threading.Event(), threading.Event()
        self._errors: list[BaseException] = []
        self._draining, self._deadline = threading.Event(), StopDeadline()
        self._abandoned_work: list[str] = []
        # Waited for in place of the thread: an interrupted join() believes the thread has finished (3.11).
        self._done = threading.Event()
        self._results = {name: self._results_of(name) for name in plans.by_name}
        self._merging = [self._thread("merger", own.merger.run, name) for name, own in self._results.items()]
        self._workers = Workers(plans, self._stop)
        own = self._workers.own
        self._working = None if own is None else self._thread("worker", own.run)
        atexit.register(self._abandoned)
        watched = [(own.figures, own.health) for own in self._results.values()]
        self._exposed.begin(watched, self._whole_health)
        log.info(
            "started: %d input partitions, %d workers", sum(plans.partitions.values()), plan.options.workers
        )
        self._thread("run", self._supervise, done=self._done)

    def _results_of(self, name: str) -> StreamResults:
        return StreamResults(
            self.plans.by_name[name],
            self._admin,
            self._workers_done.is_set,
            self._draining.is_set,
            self._deadline,
            self._work_figures,
            partial(self._remarks, name),
            self._state,
        )

    @property
    def running(self) -> bool:
        """Whether it is still running."""
        return not self._done.is_set()

    @property
    def assigned(self) -> int:
        """The number of input partitions of this run's own worker; 0 if workers are processes."""
        own = self._workers.own
        return 0 if own is None else len(own.assigned)

    @property
    def worker_pids(self) -> list[int]:
        """The ids of the worker processes; none if the worker runs in this process."""
        return self._workers.pids

    @property
    def metrics_address(self) -> str | None:
        """The address of `/metrics`, `/health` and `/ready`, as ``host:port``; None if they are not served.

        They are served until the run has ended; those of a failed run until `wait` has raised its error.
        """
        return self._exposed.address

    def stop(self, timeout: float | None = STOP_SECONDS) -> None:
        """Request an orderly end: workers deliver what they hold, mergers fold it in. Returns immediately.

        It ends within `timeout` seconds, whatever brokers, callbacks and sinks do; None sets no limit. Closed
        windows for which no time is left are emitted by the group's next run. If a callback has not returned
        or a broker has not answered by then, the run ends as if it had been killed: a warning names what it
        left, and `delivery` determines what is repeated. Raises `ValueError` for an invalid `timeout`.
        """
        self._deadline.request(timeout)
        self._stop.set()
        self._wake.set()

    def scale(self, workers: int) -> None:
        """Change the number of workers: new ones join the group, or the newest ones deliver and leave it.

        The group then reassigns partitions. If it does so cooperatively
        (``partition.assignment.strategy=cooperative-sticky``, ``group.protocol=consumer``), partitions that
        keep their worker are not interrupted. A run that began with one worker keeps that one in this
        process. Returns immediately. Raises `ValueError` for less than one worker and for a decoder that
        other processes can't import, `RunError` if the run has ended.
        """
        if self._stop.is_set() or not self.running:
            raise RunError(
                "the run is ending or has ended, so its workers can't change; start it again with the new "
                "number"
            )
        self._workers.scale(workers)

    def _ended(self, seconds: float | None) -> None:
        """Wait for the end. Raises the error that ended it, and `TimeoutError` after `seconds`."""
        deadline = None if seconds is None else wall.monotonic() + seconds
        while not self._done.wait(0.1):
            if deadline is not None and wall.monotonic() > deadline:
                raise TimeoutError(f"the run of {self.plans.topic!r} has not ended after {seconds} s")
        if self._errors:
            self._exposed.end()
            raise self._errors[0]

    def _drained(self) -> None:
        """Stop it, and make mergers fold in everything that was sent."""
        self._draining.set()
        self.stop(None)

    def _state(self) -> tuple[State, str]:
        """Its state, and the error that it failed with, if any."""
        going: State = "stopping" if self._deadline.requested else "running"
        state: State = "failed" if self._errors else going if self.running else "ended"
        plan = self.plans.first
        return state, without_secrets(in_words(self._errors[0]), plan.config) if self._errors else ""

    def _whole_health(self) -> Health:
        """The health of all streams: unhealthy or not ready if one of them is."""
        healths = {name: own.health() for name, own in self._results.items()}
        wrong = [(name, own) for name, own in healths.items() if not (own.healthy and own.ready)]
        healthy = all(own.healthy for own in healths.values())
        reasons = [f"{name}: {own.why}" if name else own.why for name, own in wrong if own.healthy == healthy]
        return Health(healthy, not wrong, reasons[0] if reasons else "")

    def _work_figures(self) -> WorkFigures:
        return self._workers.figures

    def _remarks(self, name: str) -> MessageObserver | None:
        own = self._workers.own
        return None if own is None else own.remarks(name)

    def _thread(
        self, what: str, work: Callable[[], None], name: str = "", done: threading.Event | None = None
    ) -> threading.Thread:
        def run() -> None:
            try:
                with about(**self._about), in_stream(name):
                    work()
            except BaseException as error:
                self._failed(error)
            except:  # noqa: E722 - C code can raise things that are not exceptions
                self._failed(RuntimeError(f"the {what} of this run failed: {sys.exc_info()[1]}"))
            finally:
                (done or self._wake).set()

        thread = threading.Thread(target=run, name=f"streamgauge-{what}", daemon=True)
        thread.start()
        return thread

    def _failed(self, error: BaseException) -> None:
        """Record an error, unless the run has ended without the thread that raises it."""
        if not self._done.is_set():
            self._errors.append(error)

    def _abandoned(self) -> None:
        """End the run when its program exits without having ended it."""
        self.stop(_STOP_SECONDS)
        self._done.wait(_STOP_SECONDS)

    def _supervise(self) -> None:
        """Keep the workers going until all is counted, an error, or a call of `stop`; then end in order."""
        results = self._results.values()
        while not (self._stop.is_set() or self._errors) and any(own.is_alive() for own in self._merging):
            self._wake.wait(0.2)
            self._wake.clear()
            self._check_topics(self._topics.poll)
            for own in results:
                own.poll()
            if not (self._stop.is_set() or all(own.merger.finished for own in results)):
                error = self._workers.replace_dead()
                self._errors += [error] if error is not None else []
        if self._errors:
            self._check_topics(self._topics.ask_and_wait)  # a deleted topic causes many kinds of errors
        self._stop.set()
        self._errors += self._workers.end(self._deadline.left_for_workers)
        if self._working is not None and not _ended(self._working, self._deadline.left_for_workers):
            self._abandoned_work.append("a worker that still delivers what it has read")
        self._workers_done.set()
        for merging, own in zip(self._merging, results):
            if not _ended(merging, self._deadline.left):
                window = own.merger.occupied_by
                self._thread("abandoned", own.merger.abandon, done=threading.Event())
                self._abandoned_work.append(
                    f"a callback or sink that has not returned for {window}"
                    if window
                    else "a merger that is still storing its position"
                )
        if self.plans.first.options.group_id is None:
            removing = self._thread("removal", self._remove, done=threading.Event())
            if not _ended(removing, self._deadline.left):
                self._abandoned_work.append("the removal of its topics; a later run removes them")
        if self._abandoned_work:
            self._deadline.missed = True
            log.warning(
                "stop() reached its timeout and ended the run without waiting for %s; the group's next run "
                "delivers again what was not handed over, as its delivery guarantees",
                "; ".join(self._abandoned_work),
            )
        if not self._errors:
            self._exposed.end()
        self._log_end()
        atexit.unregister(self._abandoned)

    def _remove(self) -> None:
        """Remove the topics and groups of a run without a group."""
        plans = self.plans.by_name.values()
        groups = [self.plans.first.group_id, *(plan.merger_group for plan in plans)]
        remove(self._admin, [plan.table_topic for plan in plans], groups)

    def _log_end(self) -> None:
        why = self._state()[1]
        for name, own in self._results.items():
            log.info("ended%s: %s", f" ({name})" if name else "", why or own.account)

    def _check_topics(self, topics: Callable[[], None]) -> None:
        """End the run if a topic was replaced; notify mergers of added topics and partitions."""
        fresh: Mapping[str, int] = {}
        try:
            topics()
            if self.plans.first.ends is None and (new_topics := self._search.poll()) is not None:
                fresh = new_topics.partitions
                self._known |= fresh.keys()
                self._topics.also(new_topics.ids)
        except TopicError as error:
            self._errors.insert(0, error)
        # Topics known only from the log were found by another process, or deleted before this run.
        logged_topics = {topic for own in self._results.values() for topic in own.topics}
        self._topics.also(dict.fromkeys(logged_topics - self._known, ""), needed=False)
        for topic in self._topics.gone - self._gone:
            log.warning("the topic %s was deleted; the run continues with its counts so far", topic)
        self._gone = set(self._topics.gone)
        for own in self._results.values():
            own.update_topics(self._topics.partitions, fresh, self._gone)


def _ended(thread: threading.Thread, seconds_left: Callable[[], float]) -> bool:
    """Wait for a thread's end while there are seconds left; a stop may set a limit meanwhile."""
    while thread.is_alive() and (left := seconds_left()) > 0:
        thread.join(min(left, _LOOK_SECONDS))
    return not thread.is_alive()
