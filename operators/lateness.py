"""Event time of one partition: how far it is, and which rows come too late or from a broken clock.

A row is late when its last window ends at or before the watermark that its partition had reached before it:
the latest event time of the rows before, less the delay. So it depends on the rows' order alone and not on
how they are cut into batches.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .windows import EARLIEST, Window

YEAR_1, YEAR_10000 = -62_135_596_800_000_000, 253_402_300_800_000_000
"""Event times from the first, below the second, are dates that every engine knows."""


@dataclass(slots=True)
class PartitionTime:
    """How far a partition is in event time (int64 microseconds).

    `seen_us` is the latest event time of a row; `idle_us` a watermark that the wall clock has brought about
    while the partition had nothing to read. Both only grow.
    """

    seen_us: int = EARLIEST
    idle_us: int = EARLIEST

    def watermark(self, delay_us: int) -> int:
        """No row with a window that ends at or before this time will be counted any more."""
        return max(EARLIEST, self.seen_us - delay_us, self.idle_us)

    def late(self, times_us: np.ndarray, window: Window, delay_us: int) -> np.ndarray | None:
        """Which of the next rows are late, as a mask; None if none is. Takes the rows as seen."""
        if not len(times_us):
            return None
        latest = max(self.seen_us, int(times_us.max()))
        earliest_end = window.last_end(window.pane_start(int(times_us.min())))
        if earliest_end > max(latest - delay_us, self.idle_us):
            self.seen_us = latest
            return None
        before = np.empty(len(times_us), np.int64)
        before[0] = self.seen_us
        np.maximum.accumulate(times_us[:-1], out=before[1:])
        np.maximum(before, self.seen_us, out=before)
        reached = np.maximum(before - np.int64(delay_us), np.int64(self.idle_us))
        late = window.last_ends(times_us) <= reached
        self.seen_us = latest
        return late if late.any() else None

    def advance_idle(self, to_us: int) -> None:
        """Move the watermark on while nothing can be read; never back."""
        self.idle_us = max(self.idle_us, to_us)


def broken_clocks(
    times_us: np.ndarray, timestamps_ms: np.ndarray | None, max_ahead_us: int, now_us: int
) -> np.ndarray | None:
    """Which rows' event times can't be true, as a mask; None if all can.

    Those outside the years 1 to 9999, and those more than `max_ahead_us` past their message's own timestamp
    (`now_us` where there is none); a negative `max_ahead_us` takes any.
    """
    if not len(times_us):
        return None
    latest, earliest = int(times_us.max()), int(times_us.min())
    stamped = timestamps_ms is not None and int(timestamps_ms.min()) > 0
    first = int(timestamps_ms.min()) * 1000 if timestamps_ms is not None and stamped else now_us
    ahead = max_ahead_us >= 0 and latest > first + max_ahead_us
    if earliest >= YEAR_1 and latest < YEAR_10000 and not ahead:
        return None
    broken = (times_us < YEAR_1) | (times_us >= YEAR_10000)
    if ahead:
        limit: Any = np.int64(now_us)
        if timestamps_ms is not None:
            limit = np.where(timestamps_ms > 0, timestamps_ms * 1000, limit)
        broken |= times_us > limit + np.int64(max_ahead_us)
    return broken if broken.any() else None
