"""Monitors a run without blocking: what waits, who owns the partitions, whether counting progresses."""

from __future__ import annotations

import time as wall
from collections.abc import Callable, Collection
from concurrent.futures import Future
from dataclasses import replace
from typing import Any

from ...kafka.offset_watch import OffsetWatch
from ...kafka.topics import Admin, described_group
from ...watching.figures import Figures, WorkFigures
from ...watermarks.clock import wall_clock
from ...watermarks.position import Input
from ..log.merger_state import LogState
from ..merge.figures import figures_of
from ..merge.merge_worker import MergeWorker
from ..run_plan import Plan

_SECONDS = 2.0


class RunMonitor:
    """Knowledge about a run beyond its log; `poll` is called several times a second.

    `work` returns the figures of the run's own workers.
    """

    def __init__(
        self,
        plan: Plan,
        client: Admin,
        merger: MergeWorker,
        work: Callable[[], WorkFigures],
        clock: Callable[[], float] = wall.monotonic,
    ) -> None:
        self._plan = plan
        self._merger = merger
        self._work = work
        self._clock = clock
        self._inputs: list[Input] = plan.inputs
        self._offsets = OffsetWatch[Input](client, clock)
        self._owners = PartitionOwners(plan, client, clock)
        self._held: dict[Input, tuple[int, float]] = {}
        self._waiting_since: float | None = None
        self._read, self._progressed = 0, clock()

    def poll(self, inputs: Collection[Input]) -> None:
        """Update what is known of these input partitions."""
        self._inputs = list(inputs)
        self._offsets.poll(self._inputs)
        self._note_open_transactions()
        self._owners.poll(self._inputs, self._work().assigned)
        state = self._state()
        if state.account.read != self._read:
            self._read, self._progressed = state.account.read, self._clock()
        # Tracks since when messages wait: the stream may have been silent for hours before.
        if not self._lag(state):
            self._waiting_since = None
        elif self._waiting_since is None:
            self._waiting_since = self._clock()

    def figures(self) -> Figures:
        """A running run's current figures."""
        state, merger, now = self._state(), self._merger, self._clock()
        waiting = self._waiting_since
        windows, groups = merger.window_counts()
        group_figures = figures_of(
            state,
            self._plan.stream,
            self._plan.log_group,
            self._inputs,
            lambda where: self._waiting(where, state),
            wall_clock(),
            self._held_back,
        )
        return replace(
            group_figures,
            duplicates=sum(own.duplicates for own in merger.states()),
            overlaps=sum(own.overlaps for own in merger.states()),
            open_windows=windows,
            open_groups=groups,
            state_bytes=merger.state_bytes(),
            closed_windows=merger.emitted_windows,
            replayed=merger.replayed,
            since_progress=now - self._progressed,
            stalled_seconds=0.0 if waiting is None else now - max(waiting, self._progressed),
            owned=self._owners.all_owned,
            caught_up=merger.caught_up,
            work=self._work(),
        )

    def _state(self) -> LogState:
        states = self._merger.states()
        return states[0] if states else LogState()

    def _waiting(self, where: Input, state: LogState) -> int | None:
        """The messages that wait in a partition, by the latest answer; None before there is one.

        Messages of open transactions, and those behind them, are included.
        """
        end = self._offsets.high_watermarks.get(where, self._offsets.ends.get(where))
        mark = state.marks.get(where)
        begin = self._plan.starts.get(where, self._offsets.begins.get(where))
        at = begin if mark is None else mark.position.offset
        return None if end is None or at is None else max(0, end - at)

    def _note_open_transactions(self) -> None:
        """Record since when partitions can't be read any further, although there are more messages."""
        before, self._held = self._held, {}
        for where in self._inputs:
            end = self._offsets.ends.get(where)
            if end is not None and self._offsets.high_watermarks.get(where, end) > end:
                known = before.get(where)
                same = known is not None and known[0] == end
                self._held[where] = known if known is not None and same else (end, self._clock())

    def _held_back(self, where: Input) -> tuple[int, float]:
        """How many messages an open transaction holds back, and for how many seconds at least."""
        if where not in self._held:
            return 0, 0.0
        end, since = self._held[where]
        return max(0, self._offsets.high_watermarks.get(where, end) - end), self._clock() - since

    def _lag(self, state: LogState) -> int:
        """The number of messages known to wait."""
        return sum(self._waiting(where, state) or 0 for where in self._inputs)


class PartitionOwners:
    """Whether every input partition has a worker: this run's own or, according to the brokers, another's."""

    def __init__(self, plan: Plan, client: Admin, clock: Callable[[], float]) -> None:
        self._plan = plan
        self._client = client
        self._clock = clock
        self._request: Future[Any] | None = None
        self._due = 0.0
        self.all_owned = False

    def poll(self, inputs: Collection[Input], own: Collection[tuple[str, int]]) -> None:
        """Process an answer, and ask again when it is time, unless this run has all partitions."""
        wanted = set(inputs)
        if wanted <= set(own):
            self.all_owned, self._due = True, 0.0
            return
        if self._request is not None and self._request.done():
            request, self._request = self._request, None
            self.all_owned = request.exception() is None and wanted <= _assigned(request.result())
        if self._request is None and self._clock() >= self._due:
            self._due = self._clock() + _SECONDS
            self._request = described_group(self._client, self._plan.group_id)


def _assigned(group: Any) -> set[Input]:
    return {
        Input(place.topic, place.partition)
        for member in group.members
        for place in member.assignment.topic_partitions
    }
