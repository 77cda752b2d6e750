"""Which of a worker's partitions are silent; each delta says so, and windows don't wait for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ...kafka.topics import Admin, TopicError, high_watermarks
from ...sketching.clock import wall_clock
from ...sketching.intake import Intake
from ...sketching.position import Input
from ...sketching.progress import Progress
from ...sketching.silence import Rest, Silence
from ..plan import Plan

_ANSWER_SECONDS = 2.0


class Idleness:
    """Tracks the silence of a worker's partitions; `clock` must never go back.

    A partition of a bounded run rests for good as soon as it is read to its end. Any other rests once it has
    given no event time for the plan's `idle_seconds` and no message up to its high watermark is left, which
    lies behind the messages of transactions that are still open.
    """

    def __init__(self, plan: Plan, admin: Callable[[], Admin], clock: Callable[[], float]) -> None:
        self._plan = plan
        self._admin = admin
        self._clock = clock
        self._silences: dict[Input, Silence] = {}

    def take_up(self, where: Input) -> None:
        """Track a partition from now on."""
        self._silences[where] = Silence(self._clock())

    def look(self, intake: Intake, positions: Mapping[Input, int], anew: bool) -> None:
        """Note for each partition how long it has been silent.

        `positions` are the next offsets to read, which may lie behind transactions' markers; empty if they
        aren't known. For partitions that rest already it is noted again if `anew`.
        """
        now, found = self._clock(), dict[Input, Progress]()
        for where, own in intake.progress.items():
            if own.heard:
                self._silences[where].heard(now)
                own.heard = False
            if anew or own.rest is None:
                found[where] = own
        if self._plan.ends is not None:
            for where, own in found.items():
                if own.next >= self._plan.ends.get(where, 0):
                    own.rest = self._rest(self._silences[where].since(now), 0.0)
            return
        patience = self._plan.options.idle_seconds
        quiet = [where for where in found if self._silences[where].since(now) >= patience]
        ends = self._ends(quiet) if quiet and positions else {}
        for where, own in found.items():
            own.rest = None
            if where in ends and where in positions:
                position = max(own.next, positions[where])
                silent = self._silences[where].look(position, ends[where], now)
                if silent >= patience:
                    intake.pass_to(where, position)
                    own.rest = self._rest(silent, max(patience, 1e-6))

    def _rest(self, silent: float, patience: float) -> Rest:
        return Rest(int(silent * 1e6), int(patience * 1e6), int(wall_clock() * 1e6))

    def _ends(self, inputs: list[Input]) -> dict[Input, int]:
        try:
            return high_watermarks(self._admin(), inputs, _ANSWER_SECONDS)
        except TopicError:
            return {}
