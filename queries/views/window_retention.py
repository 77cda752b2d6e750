"""The closed windows that a server stores: for a span of event time, within a memory limit."""

from __future__ import annotations

import heapq
import logging
from collections.abc import Iterator

import pyarrow as pa

from ...operators.table.schema import keys_of
from ...operators.windows.window import EARLIEST
from .view import ServedWindow, windows_of

log = logging.getLogger("streamgauge.serving")

MOST_BYTES = 1024 * 1024 * 1024
"""The default memory limit for a table's closed windows."""


class WindowRetention:
    """Closed windows; a repeated window replaces the first, and the oldest are dropped first.

    `keep_us` is the span to store, before the end of the newest window; `most_bytes` is the limit for all.
    `dropped_us` is the end of the newest window that was dropped, and `for_room` whether any was dropped
    because of the limit.

    >>> from ...operators.table.schema import START, END, TIME_TYPE
    >>> kept = WindowRetention(keep_us=2)
    >>> for at in (1, 2, 3):
    ...     bounds = {START: pa.array([at], TIME_TYPE), END: pa.array([at + 1], TIME_TYPE)}
    ...     kept.add_table(0, pa.table(bounds))
    >>> [window.start for window in kept], kept.dropped_us
    ([2, 3], 2)
    """

    def __init__(self, keep_us: int, most_bytes: int = MOST_BYTES) -> None:
        self.keep_us = keep_us
        self.most_bytes = most_bytes
        self._windows: dict[tuple[int, ...], ServedWindow] = {}
        self._by_age: list[tuple[int, ...]] = []
        self._newest = EARLIEST
        self.bytes = 0
        self.dropped_us = EARLIEST
        self.for_room = False

    def __len__(self) -> int:
        return len(self._windows)

    def __iter__(self) -> Iterator[ServedWindow]:
        return iter(list(self._windows.values()))

    def add_table(self, partition: int, table: pa.Table) -> None:
        """Add the closed windows of a table."""
        for window in windows_of(partition, table):
            self.add(window)

    def add(self, window: ServedWindow) -> None:
        """Add one window, unless it is older than the span.

        An existing window keeps the groups that the new one doesn't have: sessions of several groups may have
        the same times, and close at different times.
        """
        before = self._windows.get(window.key)
        if before is not None:
            self._remove(window.key)
            window = window.with_table(_with_others(window.table, before.table))
        self._windows[window.key] = window
        heapq.heappush(self._by_age, (window.end, *window.key))
        self.bytes += window.table.nbytes
        self._newest = max(self._newest, window.end)
        while self._by_age and self._by_age[0][0] <= self._newest - self.keep_us:
            self._drop_oldest()
        while self.bytes > self.most_bytes and len(self._windows) > 1:
            if not self.for_room:
                log.warning(
                    "closed windows take more than %d MiB; the oldest are dropped before their retention "
                    "ends",
                    self.most_bytes >> 20,
                )
            self.for_room = True
            self._drop_oldest()

    def _drop_oldest(self) -> None:
        end, *key = heapq.heappop(self._by_age)
        if self._remove(tuple(key)):  # and was not replaced
            self.dropped_us = max(self.dropped_us, end)

    def _remove(self, key: tuple[int, ...]) -> bool:
        window = self._windows.pop(key, None)
        if window is not None:
            self.bytes -= window.table.nbytes
        return window is not None


def _with_others(table: pa.Table, before: pa.Table) -> pa.Table:
    """The rows of a window, and those of groups that were only in its previous version."""
    keys = table.schema.names[2:][: len(keys_of(table.schema))]
    own, other = (one.select(keys) for one in (table, before))
    known = {tuple(row.values()) for row in own.to_pylist()}
    left = [at for at, row in enumerate(other.to_pylist()) if tuple(row.values()) not in known]
    if not left:
        return table
    both = pa.concat_tables([table, before.take(left)])
    return both.sort_by([(name, "ascending") for name in both.schema.names[: 2 + len(keys)]]).combine_chunks()
