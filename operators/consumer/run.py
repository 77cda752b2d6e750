"""A running stream: its workers, its merger, and what came of them so far."""

from __future__ import annotations

import atexit
import logging
import secrets
import sys
import threading
import time as wall
from collections.abc import Callable
from dataclasses import replace

import pyarrow as pa

from ..kafka.secrets import without_secrets
from ..kafka.topic_watch import TopicWatch
from ..kafka.topics import TopicError, admin, begin_offsets, end_offsets, remove
from ..sketching.accounting import Account
from ..sketching.position import Input, inputs_of
from ..table.schema import schema_of
from ..watching.figures import Figures, State
from ..watching.health import Health, health_of
from ..watching.logs import about
from .group.input_topics import TopicSearch
from .log.state import LogState
from .lookout import Lookout
from .merge.closed_windows import ClosedWindows
from .merge.follower import LogMerger
from .plan import Plan, Plans
from .showing import Showing
from .summary import Summary
from .work.workers import Workers

log = logging.getLogger("streamgauge.kafka")

_STOP_SECONDS = 20.0
"""How long a program that exits waits for its runs to end in order."""


class Run:
    """A running stream: see how it does with `summary`, end it with `stop` and `wait`.

    >>> import polars as pl
    >>> from streamgauge import Stream, count, json, query
    >>> schema = {"user": pl.String, "lang": pl.String, "at": pl.String}
    >>> posts = Stream.from_kafka("posts", value=json(schema), time="at", bootstrap_servers="localhost:9092")
    >>> run = posts.group_by("lang").tumbling("1m").agg(posts=count()).start(until="latest")
    >>> summary = run.wait()
    >>> summary.account.counted, query(run.table())["posts"].sum(), run.running
    (4, 4, False)
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self._about = {"run": secrets.token_hex(4), "group": plan.group_id, "topic": plan.topic}
        self._showing = Showing(plan.options)
        try:
            with about(**self._about):
                self._begin(plan)
        except BaseException:
            self._showing.end()
            raise

    def _begin(self, plan: Plan) -> None:
        options = plan.options
        self._admin = admin(plan.config)
        self._closed = ClosedWindows(
            schema_of(plan.stream), None if plan.ends is not None else options.keep_windows
        )
        ids = {**plan.topic_ids, plan.table_topic: plan.table_id}
        self._topics = TopicWatch(self._admin, ids)
        self._partitions, self._gone = dict(plan.partitions), set[str]()
        self._search = TopicSearch(
            lambda: self._admin, [plan.sources], plan.config, plan.partitions, {options.dead_letters}
        )
        self._stop, self._workers_done, self._wake = threading.Event(), threading.Event(), threading.Event()
        self._errors: list[BaseException] = []
        self._started = wall.monotonic()
        self._draining = threading.Event()
        done, draining = self._workers_done.is_set, self._draining.is_set
        self._merger = LogMerger(plan, self._closed, done, draining)
        self._merging = self._thread("merger", self._merger.run)
        self._workers = Workers(Plans.of([plan]), self._stop)
        self._lookout = Lookout(plan, self._admin, self._merger, lambda: self._workers.figures)
        own = self._workers.own
        self._working = None if own is None else self._thread("worker", own.run)
        # Waited for instead of the thread: a join that Ctrl-C interrupts takes the thread for ended (3.11).
        self._done = threading.Event()
        atexit.register(self._abandoned)
        self._showing.begin(self.figures, self.health)
        log.info("began: %d input partitions, %d workers", len(plan.inputs), options.workers)
        self._thread("run", self._supervise, self._done)

    def __repr__(self) -> str:
        states = self._merger.states()
        account = states[0].account if states else Account()
        state = "running" if self.running else "failed" if self._errors else "ended"
        dead = f", {account.dead_lettered:,} of them dead-lettered" if account.dead_lettered else ""
        return (
            f"Run({self.plan.topic!r} in the group {self.plan.group_id!r}, {state}: "
            f"{account.read:,} messages read{dead})"
        )

    @property
    def running(self) -> bool:
        """Whether it is still running."""
        return not self._done.is_set()

    @property
    def assigned(self) -> int:
        """How many input partitions this run's own worker has now; 0 if workers are processes."""
        own = self._workers.own
        return 0 if own is None else len(own.assigned)

    @property
    def worker_pids(self) -> list[int]:
        """The ids of the worker processes; none if the worker runs in this process."""
        return self._workers.pids

    @property
    def metrics_address(self) -> str | None:
        """Where `/metrics`, `/health` and `/ready` are served, as ``host:port``; None if they are not.

        They are until the run has ended; those of a run that failed until `wait` has raised its error.
        """
        return self._showing.address

    def figures(self) -> Figures:
        """What is known of it at this moment: the numbers that metrics, health and the progress line tell.

        Costs no question to a broker: what waits is what the last answer said, at most some seconds ago.
        """
        state: State = "failed" if self._errors else "running" if self.running else "ended"
        why = without_secrets(str(self._errors[0]), self.plan.config) if self._errors else ""
        return replace(self._lookout.figures(), state=state, why=why)

    def health(self) -> Health:
        """Whether it does its work (`healthy`), and has begun to (`ready`); `why` not, in words.

        It is not healthy once it has failed, or if messages have waited for a minute with none counted. It is
        ready once every input partition has a worker and its log was read to the end.
        """
        return health_of(self.figures(), self.plan.options.checkpoint_seconds)

    def stop(self) -> None:
        """Ask it to end in order: workers deliver what they hold, the merger folds it in. Returns at once."""
        self._stop.set()
        self._wake.set()

    def scale(self, workers: int) -> None:
        """Go on with so many workers: more join the group, or the last to come deliver and leave it.

        The group then shares the partitions anew, without a stop of those that stay where they are if it does
        so cooperatively (``partition.assignment.strategy=cooperative-sticky``, ``group.protocol=consumer``).
        A run that began with one worker keeps that one in this process. Returns at once. Raises `ValueError`
        for less than one worker and for a decoder that other processes can't import, `RuntimeError` if the
        run has ended.
        """
        if self._stop.is_set() or not self.running:
            raise RuntimeError("the run is ending or has ended; start it again with so many workers")
        self._workers.scale(workers)

    def drain(self, seconds: float | None = None) -> Summary:
        """Read no more, deliver what was read, close every window that may close, and wait for all that.

        `stop` does the same but gives the merger only some seconds for what lies in the log. Here it takes
        all of it in, however long that takes, sinks have every closed window, and the place is kept. Windows
        that may still get rows stay open for the next run of the group. Where another process merges, its
        windows are its own affair.

        Raises what `wait` raises; after `seconds` it is a `TimeoutError`, and the draining goes on.
        """
        self._draining.set()
        self.stop()
        return self.wait(seconds)

    def wait(self, seconds: float | None = None, interrupted: bool = False) -> Summary:
        """Wait for the end; an unbounded run ends only by `stop` or an error.

        Raises the error that ended it, and `TimeoutError` after `seconds`, while the run goes on.
        """
        deadline = None if seconds is None else wall.monotonic() + seconds
        while not self._done.wait(0.1):
            if deadline is not None and wall.monotonic() > deadline:
                raise TimeoutError(f"the run of {self.plan.topic!r} has not ended after {seconds} s")
        if self._errors:
            self._showing.end()
            raise self._errors[0]
        return self.summary(interrupted)

    def summary(self, interrupted: bool = False) -> Summary:
        """The result so far."""
        states = self._merger.states()
        account = states[0].account if states else Account()
        with self._merger.lock:
            table = self._closed.table()
        seconds = max(self._merger.progressed - self._started, 1e-9)
        return Summary(
            account=account,
            table=table,
            seconds=seconds,
            messages_per_second=account.read / seconds,
            lag=self._lag(states[0]) if states else None,
            duplicates=sum(state.duplicates for state in states),
            overlaps=sum(state.overlaps for state in states),
            interrupted=interrupted,
            remarks=self._remarks(account),
        )

    def _remarks(self, account: Account) -> tuple[str, ...]:
        if self._workers.own is not None:
            return self._workers.own.remarks(self.plan.name)
        if 2 * account.dead_lettered <= account.read or not account.read:
            return ()
        letters = self.plan.letters(next(iter(self.plan.partitions)))
        where = f"the headers of {letters!r} and the workers' log say" if letters else "the workers' log says"
        return (f"{account.dead_lettered:,} of {account.read:,} messages can't be counted; {where} why",)

    def table(self) -> pa.Table:
        """The table of sketches of all windows so far, both closed and open ones."""
        with self._merger.lock:
            return self._closed.table(self._merger.filling())

    def _thread(
        self, name: str, work: Callable[[], None], done: threading.Event | None = None
    ) -> threading.Thread:
        def run() -> None:
            try:
                with about(**self._about):
                    work()
            except BaseException as error:
                self._errors.append(error)
            except:  # noqa: E722 - C code can raise things that are not exceptions
                self._errors.append(RuntimeError(f"the {name} of this run broke off: {sys.exc_info()[1]}"))
            finally:
                (done or self._wake).set()

        thread = threading.Thread(target=run, name=f"streamgauge-{name}", daemon=True)
        thread.start()
        return thread

    def _abandoned(self) -> None:
        """End it when its program exits without having done so."""
        self.stop()
        self._done.wait(_STOP_SECONDS)

    def _supervise(self) -> None:
        """Keep the workers going until all is counted, an error, or a call of `stop`; then end in order."""
        while not (self._stop.is_set() or self._errors) and self._merging.is_alive():
            self._wake.wait(0.2)
            self._wake.clear()
            self._look_at(self._topics.look)
            self._lookout.look(self._inputs())
            self._merger.look()
            if not (self._stop.is_set() or self._merger.finished):
                error = self._workers.look()
                self._errors += [error] if error is not None else []
        if self._errors:
            self._look_at(self._topics.settle)  # the end of a topic shows in many ways
        self._stop.set()
        self._errors += self._workers.end()
        if self._working is not None:
            self._working.join()
        self._workers_done.set()
        self._merging.join()
        if self.plan.options.group_id is None:
            groups = [self.plan.group_id, self.plan.merger_group]
            remove(self._admin, [self.plan.table_topic], groups)
        if not self._errors:
            self._showing.end()
        log.info("ended: %s", self.figures().why or self.figures().account)
        atexit.unregister(self._abandoned)

    def _look_at(self, topics: Callable[[], None]) -> None:
        """End the run if a topic was replaced; tell the merger of added topics and partitions."""
        try:
            topics()
            if self.plan.ends is None and (fresh := self._search.look()) is not None:
                self._partitions |= fresh.partitions
                self._topics.also(fresh.ids)
        except TopicError as error:
            self._errors.insert(0, error)
        # What only the log knows of was found by another process, or was deleted before this run.
        told = {where.topic for state in self._merger.states() for where in state.marks}
        self._topics.also(dict.fromkeys(told - self._partitions.keys(), ""), needed=False)
        for topic in self._topics.gone - self._gone:
            log.warning("the topic %s is gone; the run goes on with what was counted of it", topic)
        self._gone = set(self._topics.gone)
        self._merger.left_out(self._gone)
        self._merger.inputs_are(self._inputs())

    def _lag(self, state: LogState) -> int | None:
        starts = {**self.plan.starts, **{w: mark.position.offset for w, mark in state.marks.items()}}
        try:
            ends = end_offsets(self._admin, self._inputs(), 2.0)
            starts |= begin_offsets(self._admin, sorted(ends.keys() - starts.keys()), 2.0)
        except TopicError:
            return None
        return sum(max(0, end - starts[where]) for where, end in ends.items())

    def _inputs(self) -> list[Input]:
        """The input partitions that there are now."""
        known = self._topics.partitions
        return inputs_of({topic: known.get(topic, n) for topic, n in self._partitions.items()})
