"""The results of one of a run's streams: its merger, the closed windows, and its figures."""

from __future__ import annotations

import time as wall
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace

from ...kafka.topics import Admin, TopicError, begin_offsets, end_offsets
from ...sketching.account import Account
from ...sketching.partition_buffer import MessageObserver
from ...table.schema import schema_of
from ...table.sketch_table import SketchTable
from ...watching.figures import Figures, State, WorkFigures
from ...watching.health import Health, health_of
from ...watermarks.position import inputs_of
from ..log.merger_state import LogState
from ..merge.closed_windows import ClosedWindows
from ..merge.merge_worker import MergeWorker
from ..run_plan import Plan
from ..stop_deadline import StopDeadline
from ..summary import Summary
from .run_monitor import RunMonitor


class StreamResults:
    """The results of one of a run's streams, during the run and afterwards.

    `done` is set when the workers have ended, `draining` when everything they sent must be merged; `deadline`
    limits a stop. `work` returns the workers' figures, `remarks` their warnings about messages (None: they
    log them themselves), `state` whether the run continues and, if not, why.
    """

    def __init__(
        self,
        plan: Plan,
        client: Admin,
        done: Callable[[], bool],
        draining: Callable[[], bool],
        deadline: StopDeadline,
        work: Callable[[], WorkFigures],
        remarks: Callable[[], MessageObserver | None],
        state: Callable[[], tuple[State, str]],
    ) -> None:
        self.plan = plan
        self._client = client
        self._remarks = remarks
        self._run_state = state
        self._started = wall.monotonic()
        most = None if plan.ends is not None else plan.options.keep_windows
        self._closed = ClosedWindows(schema_of(plan.stream), most)
        self._deadline = deadline
        self.merger = MergeWorker(plan, self._closed, done, draining, deadline.left_for_windows)
        self._monitor = RunMonitor(plan, client, self.merger, work)
        self._partitions = dict(plan.partitions)
        self.inputs = plan.inputs
        """The current input partitions."""

    def table(self) -> SketchTable:
        """The table of sketches of all windows so far, both closed and open ones."""
        with self.merger.lock:
            return SketchTable(self._closed.table(self.merger.open_tables()))

    def figures(self) -> Figures:
        """The current figures: the numbers that metrics, health and the progress line show.

        It asks no broker: the lag is from the last answer, at most a few seconds old. The workers' figures
        are those of all streams that share them.
        """
        state, why = self._run_state()
        return replace(self._monitor.figures(), state=state, why=why)

    def health(self) -> Health:
        """Whether it does its work (`healthy`), and has started to (`ready`); `why` gives the reason if not.

        It is unhealthy once its run has failed, or if messages have waited for a minute with none counted. It
        is ready once every input partition has a worker and its log was read to the end.
        """
        return health_of(self.figures(), self.plan.options.checkpoint_seconds)

    def summary(self, interrupted: bool = False) -> Summary:
        """The result so far."""
        states, account = self.merger.states(), self.account
        seen = self._remarks()
        with self.merger.lock:
            table = SketchTable(self._closed.table())
        seconds = max(self.merger.progressed - self._started, 1e-9)
        return Summary(
            account=account,
            table=table,
            seconds=seconds,
            messages_per_second=account.read / seconds,
            lag=self._lag(states[0]) if states else None,
            duplicates=sum(state.duplicates for state in states),
            overlaps=sum(state.overlaps for state in states),
            interrupted=interrupted,
            remarks=self._summary_remarks(account) if seen is None else tuple(seen.texts),
            example="" if seen is None else seen.example,
        )

    @property
    def account(self) -> Account:
        """The outcome of the messages so far."""
        states = self.merger.states()
        return states[0].account if states else Account()

    @property
    def topics(self) -> set[str]:
        """The input topics with counted messages."""
        return {where.topic for state in self.merger.states() for where in state.marks}

    def update_topics(
        self, partitions: Mapping[str, int], fresh: Mapping[str, int], gone: Collection[str]
    ) -> None:
        """Update the input topics: their numbers of partitions, and those that are gone.

        `fresh` are topics that began to match a pattern.
        """
        stream = self.plan.stream
        self._partitions |= {topic: n for topic, n in fresh.items() if stream.reading.reads_topic(topic)}
        self.inputs = inputs_of({t: partitions.get(t, n) for t, n in self._partitions.items()})
        self.merger.left_out(gone)
        self.merger.inputs_are(self.inputs)

    def poll(self) -> None:
        """Check its state, without waiting for anyone; called several times a second."""
        self._monitor.poll(self.inputs)
        self.merger.warn_if_slow()

    def _summary_remarks(self, account: Account) -> tuple[str, ...]:
        """The warnings about messages of worker processes."""
        if 2 * account.dead_lettered <= account.read or not account.read:
            return ()
        letters = self.plan.letters(next(iter(self.plan.partitions)))
        where = f"the headers of {letters!r} and the workers' log say" if letters else "the workers' log says"
        return (f"{account.dead_lettered:,} of {account.read:,} messages can't be counted; {where} why",)

    def _lag(self, state: LogState) -> int | None:
        if self._deadline.missed:
            return None  # brokers may be unreachable, and a stop has no time to wait
        starts = {**self.plan.starts, **{w: mark.position.offset for w, mark in state.marks.items()}}
        try:
            ends = end_offsets(self._client, self.inputs, 2.0)
            starts |= begin_offsets(self._client, sorted(ends.keys() - starts.keys()), 2.0)
        except TopicError:
            return None
        return sum(max(0, end - starts[where]) for where, end in ends.items())
