"""Event time of one partition: how far it is, and which rows are late or from a broken clock.

A row is late if its last window ends at or before the watermark that its partition had reached before it: the
latest event time of the preceding rows, minus the delay. If windows overlap, a row that is late for some of
its windows counts in the others; a row that arrives after its partition has passed a session's end doesn't
belong to that session. So lateness depends only on the order of rows, not on how they are divided into
batches, nor on the wall clock, nor on other partitions.

One row from a wrong clock must not make the following rows late. So a row more than `max_ahead` past all
preceding rows counts in its own window but does not advance time: its partition's time jumps only once
`CONFIRMED` rows in succession lie there. A recording that pauses for a night continues that many rows later;
a single wrong row is forgotten with the next right one. The first rows of a partition may themselves be
wrong: among these, two successive rows that agree to within `max_ahead` set its time, backwards as well.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass
from typing import Any

import numpy as np

from ..windows.window import EARLIEST, YEAR_1, YEAR_10000, StreamWindows

CONFIRMED = 20
"""A jump is believed once this many rows in succession lie past it."""
_LONGEST_US = 3_660 * 86_400_000_000
"""Windows longer than this, such as count windows, don't have a meaningful reach."""


@dataclass(slots=True)
class PartitionTime:
    """A partition's progress in event time (int64 microseconds).

    `seen_us` is the latest event time that is believed. The last `ahead` rows were too far ahead to be
    believed; their times were from `low_us` to `high_us`. `rows` counts rows up to `CONFIRMED`. Windows that
    end at or before `closed_us` have been emitted, whatever the partition has seen.
    """

    seen_us: int = EARLIEST
    closed_us: int = EARLIEST
    rows: int = 0
    ahead: int = 0
    low_us: int = EARLIEST
    high_us: int = EARLIEST

    def watermark(self, delay_us: int) -> int:
        """Rows whose window ends at or before this time are no longer counted."""
        return max(EARLIEST, self.seen_us - delay_us)

    @property
    def latest_us(self) -> int:
        """The latest event time if the rows that wait for confirmation were believed."""
        return max(self.seen_us, self.high_us) if self.ahead else self.seen_us

    def advance(
        self, times_us: np.ndarray, window: StreamWindows, delay_us: int, max_ahead_us: int = -1
    ) -> np.ndarray | None:
        """Process the next rows; returns the watermark before each, None if all are on time for all windows.

        A row is late if its last window ends at or before that watermark; earlier ones of its windows may
        have ended by then, and don't count it. A negative `max_ahead_us` believes every jump at once.
        """
        if not len(times_us):
            return None
        latest = int(times_us.max())
        trusting = max_ahead_us < 0
        if trusting or (self.rows == CONFIRMED and latest <= self.seen_us + max_ahead_us):
            self.ahead = 0
            whole_until = window.whole_until(int(times_us.min()))
            seen, self.seen_us = self.seen_us, max(latest, self.seen_us)
            if whole_until > max(self.seen_us - delay_us, self.closed_us):
                return None
            before = _latest_before(times_us, seen)
        else:
            before = self._believe(times_us, max_ahead_us)
        return np.maximum(before - np.int64(delay_us), np.int64(self.closed_us))

    def to_list(self) -> list[int]:
        """As plain numbers, for storage beside an offset."""
        return list(astuple(self))

    def _believe(self, times_us: np.ndarray, max_ahead_us: int) -> np.ndarray:
        """Process rows that may be far ahead; returns the time that was believed before each."""
        young = min(CONFIRMED - self.rows, len(times_us))
        before = np.empty(len(times_us), np.int64)
        self._one_by_one(times_us[:young], max_ahead_us, before)
        rest, of_rest = times_us[young:], before[young:]
        if not len(rest):
            return before
        of_rest[:] = _latest_before(rest, self.seen_us)
        if (rest > of_rest + np.int64(max_ahead_us)).any():
            self._one_by_one(rest, max_ahead_us, of_rest)
        else:
            self.ahead = 0
            self.seen_us = int(max(of_rest[-1], rest[-1]))
        return before

    def _one_by_one(self, times_us: np.ndarray, max_ahead_us: int, before: np.ndarray) -> None:
        for row, time in enumerate(times_us.tolist()):
            before[row] = self.seen_us
            self._advance_one(time, max_ahead_us)

    def _advance_one(self, time_us: int, max_ahead_us: int) -> None:
        young = self.rows < CONFIRMED
        self.rows += young
        too_far = time_us > self.seen_us + max_ahead_us or (young and time_us < self.seen_us - max_ahead_us)
        if self.seen_us == EARLIEST or not too_far:
            self.seen_us = max(self.seen_us, time_us)
            self.ahead = 0
        elif young and self.ahead and abs(time_us - self.high_us) <= max_ahead_us:
            self.seen_us = max(time_us, self.high_us)
            self.ahead = 0
        else:
            fresh = young or not self.ahead or self.high_us < self.seen_us
            self.ahead = 1 if fresh else self.ahead + 1
            self.low_us = time_us if fresh else min(self.low_us, time_us)
            self.high_us = time_us if fresh else max(self.high_us, time_us)
            if self.ahead == CONFIRMED:
                agree = self.high_us <= self.low_us + max_ahead_us
                self.seen_us = self.high_us if agree else self.low_us
                self.ahead = 0


def _latest_before(times_us: np.ndarray, seen_us: int) -> np.ndarray:
    """The latest time before each row."""
    before = np.empty(len(times_us), np.int64)
    before[0] = seen_us
    np.maximum.accumulate(times_us[:-1], out=before[1:])
    return np.maximum(before, seen_us, out=before)


def broken_clocks(
    times_us: np.ndarray,
    timestamps_ms: np.ndarray | None,
    max_ahead_us: int,
    now_us: int,
    window: StreamWindows | None = None,
) -> np.ndarray | None:
    """A mask of the rows whose event times can't be true; None if all can.

    These are times outside the years 1 to 9999, and those so near to their ends that a window may begin or
    end outside, such as .NET's ``DateTime.MinValue``, which programs write for "none"; also times more than
    `max_ahead_us` past the wall clock (`now_us`) or past their message's own timestamp, if it has one. The
    timestamp alone is not enough: most are the producer's, from the same clock that is wrong. With a negative
    `max_ahead_us` any time can be true.
    """
    if not len(times_us):
        return None
    latest, earliest = int(times_us.max()), int(times_us.min())
    first_us = now_us
    if timestamps_ms is not None and (first := int(timestamps_ms.min())) > 0:
        first_us = min(first * 1000, now_us)
    elif timestamps_ms is not None:
        first_us = YEAR_1
    ahead = max_ahead_us >= 0 and latest > first_us + max_ahead_us
    margin = 0 if window is None or window.longest_us > _LONGEST_US else window.longest_us
    low, high = YEAR_1 + margin, YEAR_10000 - margin
    if earliest >= low and latest < high and not ahead:
        return None
    broken = (times_us < low) | (times_us >= high)
    if ahead:
        limit: Any = np.int64(now_us)
        if timestamps_ms is not None:
            limit = np.where(timestamps_ms > 0, np.minimum(timestamps_ms * 1000, limit), limit)
        broken |= times_us > limit + np.int64(max_ahead_us)
    return broken if broken.any() else None
