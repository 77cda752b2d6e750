"""Run a stream straight off Kafka: its workers, its merger, and what came of it."""

from __future__ import annotations

import atexit
import logging
import sys
import threading
import time as wall
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Literal

import polars as pl
import pyarrow as pa

from ..definition.sources import KafkaSource
from ..definition.stream import Stream
from ..formats.decode import check_importable
from ..kafka.topic_watch import TopicWatch
from ..kafka.topics import (
    TopicError,
    admin,
    begin_offsets,
    end_offsets,
    ensure_topic,
    id_of,
    partitions_of,
    remove,
)
from ..sketching.accounting import Account
from ..sketching.dead_letters import TOPIC_CONFIG as DEAD_LETTERS
from ..table.query import query
from ..table.schema import schema_of
from .ending import as_interrupt
from .group.history import GroupHistory
from .group.nameless import clear_away, group_name
from .log.messages import TOPIC_CONFIG
from .log.state import LogState
from .merge.closed_windows import ClosedWindows
from .merge.follower import LogMerger
from .merge.merger import DeliveryName
from .options import check
from .plan import Plan
from .work.process import WorkerProcess
from .work.worker import Worker

log = logging.getLogger("streamgauge.kafka")

OnWindow = Callable[[pa.Table], None]
_STOP_SECONDS = 20.0
"""How long worker processes have to deliver what they hold before they are killed."""


@dataclass(frozen=True)
class Summary:
    """What came of a run, or of a run so far.

    `account` and `lag` are of all that share the group, whichever process counts. `table` is the table of
    sketches of the windows that closed in this process, which are those of its partitions of the table topic
    and none while another process has all of them; of an unbounded run the latest `keep_windows`, and no more
    than 1 GiB. `lag` is the messages that lie in the topic and are in no delta yet (None where no broker
    answered);
    `seconds` the time from the start to the last delta; `overlaps` the deltas that counted messages twice,
    which can only be other than 0 at least once. `remarks` are warnings about the messages, such as that most
    of them can't be counted and why; worker processes log
    theirs themselves.
    """

    account: Account
    table: pa.Table
    seconds: float
    messages_per_second: float
    lag: int | None
    duplicates: int = 0
    overlaps: int = 0
    interrupted: bool = False
    remarks: tuple[str, ...] = ()

    def __repr__(self) -> str:
        counts = ", ".join(
            f"{n:,} {name.replace('_', '-')}" for name, n in self.account.to_dict().items() if name != "read"
        )
        waiting = "unknown" if self.lag is None else f"{self.lag:,}"
        ended = ", interrupted" if self.interrupted else ""
        said = "".join(f"\n  {remark}" for remark in self.remarks)
        return (
            f"Summary({self.account.read:,} messages read in {self.seconds:.1f} s{ended}: {counts}; "
            f"lag {waiting}; {self.table.num_rows:,} rows of closed windows){said}"
        )

    def windows(self) -> pl.DataFrame:
        """The answers of the closed windows."""
        return query(self.table)


def run(stream: Stream, **options: Any) -> Summary:
    """Run until the end, or until interrupted; see `start` for the options.

    With ``until="latest"`` it ends when all messages that are there now are in; without, it goes on until
    Ctrl-C, which ends it in order: the summary then says `interrupted`. So do SIGTERM and SIGHUP, unless the
    program handles them itself.
    """
    with as_interrupt():
        started = start(stream, **options)
        try:
            return started.wait()
        except KeyboardInterrupt:
            started.stop()
            return started.wait(interrupted=True)


def start(
    stream: Stream,
    *,
    delivery: DeliveryName = "exactly_once",
    until: Literal["latest"] | None = None,
    on_window: OnWindow | None = None,
    workers: int = 1,
    group_id: str | None = None,
    start: Literal["earliest", "latest"] = "earliest",
    table_partitions: int = 1,
    dead_letters: str | None = "",
    checkpoint_seconds: float = 1.0,
    idle_seconds: float = 5.0,
    keep_windows: int = 1_000,
) -> Run:
    """Start a stream's workers and merger, and come back at once.

    `group_id` names the consumer group: runs of the same group share the work, and a later one goes on where
    the last ended. A group has one definition: with another it is refused, and the difference told
    (`DefinitionChanged`). Without `group_id` the run is on its own and leaves no group or table topic behind.
    It begins with the first message that is there, or with what comes from now on (``start="latest"``, of a
    group that never ran; partitions added later are read whole). `workers` beyond one are processes of their
    own. `on_window` is called with the table of sketches of each window as it closes, from the merger's
    thread; an error of it ends the run, and the next run of the group tells that window again. One that only
    silence has closed may come again in any case, whole, with the rows that followed: its `window_start`,
    with the keys, is what to replace the earlier one by (see `Stream.tumbling`). `dead_letters`
    names the topic for messages that can't be counted (``"<topic>.dead-letters"`` unless named; None drops
    them). A checkpoint is made every `checkpoint_seconds`; a partition idles `idle_seconds` after its last
    row with an event time, if nothing that is certain to come is left in it (see `Stream.tumbling`).

    Raises `TopicError` if the topic doesn't exist or is not the one that the group began with, `ValueError`
    or `TypeError` for a stream that can't run, and for such options.
    """
    stream.complete()
    check(
        {
            "delivery": delivery,
            "until": until,
            "on_window": on_window,
            "workers": workers,
            "group_id": group_id,
            "start": start,
            "table_partitions": table_partitions,
            "checkpoint_seconds": checkpoint_seconds,
            "idle_seconds": idle_seconds,
            "keep_windows": keep_windows,
        }
    )
    if workers > 1 and isinstance(stream.source, KafkaSource):
        check_importable(stream.source.value)
    plan = Plan(stream, group_id or "", "", 0)
    topic, client = plan.source.topic, admin(plan.config)
    partitions = partitions_of(client, topic)
    if group_id is None:
        now = datetime.now(UTC)
        clear_away(client, topic, now)
        plan = replace(plan, group_id=group_name(topic, now))
    history = GroupHistory(
        client, plan.config, plan.group_id, stream, topic, id_of(client, topic), partitions
    )
    if group_id is not None:
        history.read()
    table_partitions = ensure_topic(client, history.table_topic, table_partitions, TOPIC_CONFIG)
    if group_id is not None:
        history.claim()
    dead = f"{topic}.dead-letters" if dead_letters == "" else dead_letters
    if dead is not None:
        ensure_topic(client, dead, 1, DEAD_LETTERS)
    ends = end_offsets(client, topic, partitions) if "latest" in (until, start) else None
    plan = Plan(
        stream,
        plan.group_id,
        history.table_topic,
        partitions,
        table_partitions,
        delivery,
        dead,
        ends if until == "latest" else None,
        history.begin(ends if start == "latest" else None),
        checkpoint_seconds,
        idle_seconds,
        source_id=history.source_id,
        table_id=id_of(client, history.table_topic),
    )
    return Run(plan, workers, on_window, keep_windows, ephemeral=group_id is None)


class Run:
    """A running stream: look at it with `summary`, end it with `stop` and `wait`."""

    def __init__(
        self, plan: Plan, workers: int, on_window: OnWindow | None, keep_windows: int, ephemeral: bool
    ) -> None:
        self.plan = plan
        self._ephemeral = ephemeral
        self._admin = admin(plan.config)
        self._closed = ClosedWindows(schema_of(plan.stream), None if plan.ends is not None else keep_windows)
        ids = {plan.source.topic: plan.source_id, plan.table_topic: plan.table_id}
        self._topics = TopicWatch(self._admin, ids)
        self._stop, self._workers_done, self._wake = threading.Event(), threading.Event(), threading.Event()
        self._errors: list[BaseException] = []
        self._started = wall.monotonic()
        hand_over = on_window if on_window is not None else lambda table: None
        self._merger = LogMerger(plan, hand_over, self._closed, self._workers_done.is_set)
        self._merging = self._thread("merger", self._merger.run)
        self._processes = [WorkerProcess(plan) for _ in range(workers)] if workers > 1 else []
        self._worker = None if self._processes else Worker(plan, self._stop.is_set)
        self._working = None if self._worker is None else self._thread("worker", self._worker.run)
        # Waited for in the thread's place: a join that Ctrl-C interrupts takes the thread for ended (3.11).
        self._done = threading.Event()
        atexit.register(self._abandoned)
        self._thread("run", self._supervise, self._done)

    def __repr__(self) -> str:
        states = self._merger.states()
        account = states[0].account if states else Account()
        state = "running" if self.running else "failed" if self._errors else "ended"
        dead = f", {account.dead_lettered:,} of them dead-lettered" if account.dead_lettered else ""
        return (
            f"Run({self.plan.source.topic!r} in the group {self.plan.group_id!r}, {state}: "
            f"{account.read:,} messages read{dead})"
        )

    @property
    def running(self) -> bool:
        """Whether it still runs."""
        return not self._done.is_set()

    @property
    def assigned(self) -> int:
        """Input partitions that this run's own worker has now; 0 where workers are processes."""
        return len(self._worker.assigned) if self._worker is not None else 0

    @property
    def worker_pids(self) -> list[int]:
        """The worker processes; none where the worker runs in this one."""
        return [process.pid for process in self._processes]

    def stop(self) -> None:
        """Ask it to end in order: workers deliver what they hold, the merger takes it in. Returns at once."""
        self._stop.set()
        self._wake.set()

    def wait(self, seconds: float | None = None, interrupted: bool = False) -> Summary:
        """Wait for the end; of an unbounded run, for `stop` or an error.

        Raises what ended it, and `TimeoutError` after `seconds`, the run going on.
        """
        deadline = None if seconds is None else wall.monotonic() + seconds
        while not self._done.wait(0.1):
            if deadline is not None and wall.monotonic() > deadline:
                raise TimeoutError(f"the run of {self.plan.source.topic!r} has not ended after {seconds} s")
        if self._errors:
            raise self._errors[0]
        return self.summary(interrupted)

    def summary(self, interrupted: bool = False) -> Summary:
        """What came of it so far."""
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
        if self._worker is not None:
            return self._worker.remarks
        if 2 * account.dead_lettered <= account.read or not account.read:
            return ()
        letters = self.plan.dead_letter_topic
        where = f"the headers of {letters!r} and the workers' log say" if letters else "the workers' log says"
        return (f"{account.dead_lettered:,} of {account.read:,} messages can't be counted; {where} why",)

    def table(self) -> pa.Table:
        """The table of sketches of all windows so far, those that closed and those that still fill."""
        with self._merger.lock:
            return self._closed.table(self._merger.filling())

    def _thread(
        self, name: str, work: Callable[[], None], done: threading.Event | None = None
    ) -> threading.Thread:
        def run() -> None:
            try:
                work()
            except BaseException as error:
                self._errors.append(error)
            except:  # noqa: E722 - C code can raise what is no exception
                self._errors.append(RuntimeError(f"the {name} of this run broke off: {sys.exc_info()[1]}"))
            finally:
                (done or self._wake).set()

        thread = threading.Thread(target=run, name=f"streamgauge-{name}", daemon=True)
        thread.start()
        return thread

    def _abandoned(self) -> None:
        """Its program ends and has not ended it."""
        self.stop()
        self._done.wait(_STOP_SECONDS)

    def _supervise(self) -> None:
        """Keep the workers going until everything is in, an error, or the word to stop; then end in order."""
        while not (self._stop.is_set() or self._errors) and self._merging.is_alive():
            self._wake.wait(0.2)
            self._wake.clear()
            self._look_at(self._topics.look)
            for at, process in enumerate(self._processes):
                if process.ended and not self._stop.is_set() and not self._merger.finished:
                    self._replace(at, process)
        if self._errors:
            self._look_at(self._topics.settle)  # a topic's end shows as many things
        self._stop.set()
        for process in self._processes:
            process.stop()
        for process in self._processes:
            process.join(_STOP_SECONDS)
            if (error := process.error()) is not None:
                self._errors.append(error)
        if self._working is not None:
            self._working.join()
        self._workers_done.set()
        self._merging.join()
        if self._ephemeral:
            groups = [self.plan.group_id, self.plan.merger_group]
            remove(self._admin, [self.plan.table_topic], groups)
        atexit.unregister(self._abandoned)

    def _look_at(self, topics: Callable[[], None]) -> None:
        """End where a topic is not what it was; let the merger know of added partitions."""
        try:
            topics()
        except TopicError as error:
            self._errors.insert(0, error)
        self._merger.partitions_are(self._topics.partitions.get(self.plan.source.topic, self.plan.partitions))

    def _replace(self, at: int, process: WorkerProcess) -> None:
        error = process.error()
        if error is not None:
            self._errors.append(error)
            return
        log.warning("a worker process ended (%s); starting another in its place", process.told)
        self._processes[at] = WorkerProcess(self.plan)

    def _lag(self, state: LogState) -> int | None:
        topic = self.plan.source.topic
        partitions = self._topics.partitions.get(topic, self.plan.partitions)
        starts = {**self.plan.starts, **{p: chain.next for p, chain in state.chains.items()}}
        try:
            ends = end_offsets(self._admin, topic, partitions, 2.0)
            starts |= begin_offsets(self._admin, topic, sorted(ends.keys() - starts.keys()), 2.0)
        except TopicError:
            return None
        return sum(max(0, end - starts[p]) for p, end in ends.items())
