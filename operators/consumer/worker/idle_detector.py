"""Which of a worker's partitions are silent; deltas report it, so that windows don't wait for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ...kafka.topics import Admin, TopicError, high_watermarks
from ...sketching.partition_buffer import PartitionBuffer
from ...sketching.partition_state import PartitionState
from ...watermarks.clock import wall_clock
from ...watermarks.idle_timer import IdleTimer, Rest
from ...watermarks.position import Input
from ..run_plan import Plan

_ANSWER_SECONDS = 2.0


class HighWatermarks:
    """The ends of partitions, requested once for all streams of a worker until `forget` is called."""

    def __init__(self, admin: Callable[[], Admin]) -> None:
        self._admin = admin
        self._known: dict[Input, int] = {}
        self._answered = True

    def forget(self) -> None:
        """Request the ends again from now on."""
        self._known, self._answered = {}, True

    def of(self, inputs: list[Input]) -> dict[Input, int]:
        """Each partition's end, messages of open transactions included; missing without an answer."""
        missing = [where for where in inputs if where not in self._known]
        if missing and self._answered:
            try:
                self._known |= high_watermarks(self._admin(), missing, _ANSWER_SECONDS)
            except TopicError:
                self._answered = False
        return {where: self._known[where] for where in inputs if where in self._known}


class IdleDetector:
    """Tracks the silence of a stream's partitions in a worker; `clock` must never go back.

    In a bounded run, a partition is silent for good once it is read to its end. Otherwise it is silent once
    it has had no event time for the plan's `idle_seconds` and no message is left before its high watermark,
    which includes messages of transactions that are still open.
    """

    def __init__(self, plan: Plan, ends: HighWatermarks, clock: Callable[[], float]) -> None:
        self._plan = plan
        self._ends = ends
        self._clock = clock
        self._silences: dict[Input, IdleTimer] = {}

    def track(self, where: Input) -> None:
        """Track a partition from now on."""
        self._silences[where] = IdleTimer(self._clock())

    def update(self, intake: PartitionBuffer, positions: Mapping[Input, int], renew: bool) -> None:
        """Record for each partition how long it has been silent.

        `positions` are the next offsets to read, which may be past transaction markers; empty if unknown. For
        partitions already recorded as silent, this is repeated only if `renew`.
        """
        now, states = self._clock(), dict[Input, PartitionState]()
        for where, own in intake.progress.items():
            if own.heard:
                self._silences[where].heard(now)
                own.heard = False
            if renew or own.rest is None:
                states[where] = own
        if self._plan.ends is not None:
            for where, own in states.items():
                if own.next_offset >= self._plan.ends.get(where, 0):
                    own.rest = self._rest(self._silences[where].since(now), 0.0)
            return
        patience = self._plan.options.idle_seconds
        quiet = [where for where in states if self._silences[where].since(now) >= patience]
        ends = self._ends.of(quiet) if quiet and positions else {}
        for where, own in states.items():
            own.rest = None
            if where in ends and where in positions:
                position = max(own.next_offset, positions[where])
                silent = self._silences[where].update(position, ends[where], now)
                if silent >= patience:
                    intake.skip_to(where, position)
                    own.rest = self._rest(silent, max(patience, 1e-6))

    def _rest(self, silent: float, patience: float) -> Rest:
        return Rest(int(silent * 1e6), int(patience * 1e6), int(wall_clock() * 1e6))
