"""The deadline for a run to end after a stop request."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

STOP_SECONDS = 25.0
"""How long a stop may take: Kubernetes kills a container 30 seconds after its stop request."""
_RESERVE_SECONDS = 3.0
_RESERVE_SHARE = 0.2


class StopDeadline:
    """The time that is left for a stop; unlimited until a stop with a limit is requested.

    >>> deadline = StopDeadline(clock=lambda: 100.0)
    >>> deadline.left(), deadline.requested
    (inf, False)
    >>> deadline.request(10.0)
    >>> deadline.left(), deadline.left_for_windows(), deadline.left_for_workers()
    (10.0, 8.0, 6.0)
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._ends, self._seconds = math.inf, 0.0
        self.requested = self.missed = False
        """Whether an end was requested, and whether the run ended before all work was done."""

    def request(self, seconds: float | None) -> None:
        """Request an end within so many seconds, or without a limit; the earliest deadline counts.

        Raises `ValueError` for anything but a number ≥ 0, or None.
        """
        given = seconds
        if given is not None and (
            isinstance(given, bool) or not isinstance(given, int | float) or not given >= 0
        ):
            raise ValueError(f"timeout must be a number of seconds ≥ 0, or None for no limit, got {given!r}")
        self.requested = True
        if given is not None and self._clock() + given < self._ends:
            self._ends, self._seconds = self._clock() + given, given

    def left(self) -> float:
        """The seconds until the end."""
        return self._ends - self._clock()

    def left_for_windows(self) -> float:
        """The seconds left for emitting windows; then the checkpoint is saved and the group left."""
        return self.left() - min(_RESERVE_SECONDS, _RESERVE_SHARE * self._seconds)

    def left_for_workers(self) -> float:
        """The seconds left for workers to deliver; their deltas must be merged after that."""
        return self.left() - 2 * _RESERVE_SHARE * self._seconds
