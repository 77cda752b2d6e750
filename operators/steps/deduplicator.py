"""`deduplicate` among a stream's steps: the steps before it, the rows it drops, the steps after it.

Duplicates are looked up before anything that depends on more than the rows themselves: late rows, and rows of
a clock that is ahead, are remembered like all others, so that rereading finds the same duplicates. Only a
time that can't be true, whatever the clock says, is not compared. If rows are compared with the last
messages, offsets stand for times.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..definition.deduplication import Deduplicate
from ..definition.stream import Stream
from ..grouping.arrow_columns import arrow_column
from ..watermarks.partition_watermark import CONFIRMED, PartitionTime, broken_clocks
from .id_filter import IdFilter
from .id_index import IdIndex
from .look_back import LookBack
from .row_steps import Stepped

_NEVER_US = 1 << 62
"""A wall clock that no time is ahead of."""
_ALL = 1 << 62


class Deduplicator(LookBack):
    """The ids that one partition has seen, and the steps of its stream before and after the comparison."""

    def __init__(self, stream: Stream, step: Deduplicate) -> None:
        super().__init__(stream, step)
        assert stream.window is not None
        self._ids = step.ids
        self._last = step.last
        # The last messages are limited in number; only a span of time may contain too many ids. An id is a
        # duplicate if it is less than the reach away: for the last one message, that is less than 2.
        reach = step.last + 1 if step.last else step.within_us or 0
        self._max_ahead_us, self._delay_us = stream.max_ahead_us, stream.delay_us
        self._span_us = stream.window.longest_us
        self._seen: IdIndex | IdFilter
        if step.fpp is None or step.capacity is None:
            self._seen = IdIndex(reach, _ALL if step.last else step.limit)
        else:
            self._seen = IdFilter(reach, step.capacity, step.fpp, self._delay_us + self._span_us)

    @property
    def size(self) -> int:
        """The bytes of the remembered ids, or of the filter that holds them."""
        return self._seen.size

    def mark(
        self, left: Stepped, times: np.ndarray, timestamps_ms: np.ndarray | None, offsets: np.ndarray
    ) -> Stepped:
        """The rows with a mask of duplicates; remembers them. `offsets` are those of the caller's rows."""
        stamps = None if timestamps_ms is None else timestamps_ms[left.numbers]
        broken = broken_clocks(times, stamps, self._max_ahead_us, _NEVER_US)
        ids = [arrow_column(left.frame[name]) for name in self._ids]
        places = offsets[left.numbers]
        at = times if self._last is None else places
        duplicate = self._seen.mark(ids, at, places, None if broken is None else ~broken)
        if self._last is not None and len(places):
            self._seen.forget_before(int(places[-1]) + 1)
        return replace(left, duplicate=duplicate)

    def forget(self, time: PartitionTime) -> None:
        """Forget ids that only late rows could be close to, given the partition's time."""
        if self._last is not None:
            return
        if self._max_ahead_us < 0 or time.rows == CONFIRMED:  # a young partition's time may go back
            self._seen.forget_before(time.watermark(self._delay_us) - self._span_us)

    def replay_from(self, offset: int) -> int:
        """The offset from which to reread before continuing at `offset`."""
        return self._seen.replay_from(offset)
