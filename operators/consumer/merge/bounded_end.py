"""When a bounded run is complete: everything is read, and a join's unmatched rows have arrived."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection

from ..run_plan import Plan
from .merger import Merger

log = logging.getLogger("streamgauge.kafka")

_SECONDS = 60.0
"""How long to wait for unmatched rows: if another run has their partitions, no signal comes."""


class BoundedEnd:
    """The end of a bounded run; `clock` must never go back."""

    def __init__(self, plan: Plan, clock: Callable[[], float] = time.monotonic) -> None:
        self._plan = plan
        self._clock = clock
        self._read_at: float | None = None
        self._warned = False

    def reached(self, mergers: Collection[Merger]) -> bool:
        """Whether these mergers have merged everything that the run reads; False if the run has no end."""
        ends = self._plan.ends
        if ends is None or not mergers or not all(merger.has_reached(ends) for merger in mergers):
            return False
        if all(merger.has_ended(ends) for merger in mergers):
            return True
        self._read_at = self._read_at or self._clock()
        if self._clock() - self._read_at < _SECONDS:
            return False
        if not self._warned:
            self._warned = True
            log.warning(
                "ending without the rows buffered in %s: another run of the group %s has them",
                *(self._plan.topic, self._plan.group_id),
            )
        return True
