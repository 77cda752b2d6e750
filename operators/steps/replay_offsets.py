"""The offset from which a partition must be reread to know all rows that are still within reach."""

from __future__ import annotations

import numpy as np

from ..windows.window import EARLIEST

_BUCKETS = 8
"""Offsets are stored for intervals of this fraction of the reach."""


class ReplayOffsets:
    """The first offset of rows by time, for as long as a row that is not late can lie close to them.

    >>> offsets = ReplayOffsets(within_us=80)
    >>> offsets.note(np.array([5, 95, 200]), np.arange(3))
    >>> offsets.forget_before(110)
    >>> offsets.replay_from(3)
    1
    """

    def __init__(self, within_us: int) -> None:
        self._within = within_us
        self._width = max(1, within_us // _BUCKETS)
        self._firsts: dict[int, int] = {}
        self.horizon = EARLIEST
        """All rows before this time are late."""

    def note(self, times_us: np.ndarray, offsets: np.ndarray) -> None:
        """Add the next rows."""
        if len(times_us):
            buckets, firsts = np.unique(times_us // self._width, return_index=True)
            for bucket, first in zip(buckets.tolist(), firsts.tolist()):
                self._firsts.setdefault(bucket, int(offsets[first]))

    def forget_before(self, horizon_us: int) -> None:
        """Record that rows before this time are all late from now on."""
        self.horizon = max(self.horizon, horizon_us)
        gone = [bucket for bucket in self._firsts if not self._matters((bucket + 1) * self._width)]
        for bucket in gone:
            del self._firsts[bucket]

    def replay_from(self, offset: int) -> int:
        """The offset from which rereading gives the same: the oldest row within reach, at most `offset`."""
        return min(self._firsts.values(), default=offset)

    def _matters(self, time_us: int) -> bool:
        return time_us + self._within > self.horizon
