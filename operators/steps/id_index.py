"""The ids that a partition has seen, and when: a row is a duplicate if a row of its id lies close before it.

This depends only on the rows, whatever became of them, and on nothing before the oldest row that is still
within reach. So rereading from that row's offset on gives the same result.

An id's rows are stored as intervals of time, from the first to the last of rows that are less than `within`
apart: a time is close to one of them if it is close to the interval.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from ...sketches.core.compilation.jit import kernel
from ..definition.deduplication import MANY, TooManyIds
from ..grouping.group_index import hash_keys
from ..grouping.key_index import refill
from .replay_offsets import ReplayOffsets


@kernel
def _mark(h1, h2, times, known, start, within, slots, known1, known2, low, high, n, duplicate):
    """Check and remember the rows from `start` on; stops when the table is half full. Returns (row, n)."""
    mask = np.uint64(len(slots) - 1)
    limit = len(slots) // 2
    for i in range(start, len(h1)):
        if not known[i]:
            continue
        at = h1[i] & mask
        time = times[i]
        while True:
            entry = slots[at]
            if entry < 0:
                if n >= limit:
                    return i, n
                slots[at] = n
                known1[n], known2[n] = h1[i], h2[i]
                low[n] = high[n] = time
                n += 1
                break
            same = known1[entry] == h1[i] and known2[entry] == h2[i]
            if same and time - within < high[entry] and time + within > low[entry]:
                duplicate[i] = True
                low[entry] = min(low[entry], time)
                high[entry] = max(high[entry], time)
                break
            at = (at + np.uint64(1)) & mask
    return len(h1), n


class IdIndex:
    """The ids of one partition's rows, for as long as a row that is not late can lie close to them.

    Exact unless 128-bit hashes of ids collide, which has a probability below 10⁻²⁰ among a billion. An id
    takes 48 to 96 bytes.

    >>> seen = IdIndex(within_us=10)
    >>> ids, times = pa.array(["a", "b", "a", None, None, "a"]), np.array([0, 5, 9, 9, 9, 30])
    >>> seen.mark([ids], times, np.arange(6)).tolist()
    [False, False, True, False, False, False]
    """

    def __init__(self, within_us: int, limit: int = MANY) -> None:
        self._within = within_us
        self._limit = limit
        self._offsets = ReplayOffsets(within_us)
        self._n = 0
        self._room(128)

    def __len__(self) -> int:
        return self._n

    @property
    def size(self) -> int:
        """The approximate bytes of memory."""
        return sum(a.nbytes for a in (self._slots, self._known1, self._known2, self._low, self._high))

    def mark(
        self,
        ids: Sequence[pa.Array],
        times_us: np.ndarray,
        offsets: np.ndarray,
        believed: np.ndarray | None = None,
    ) -> np.ndarray:
        """A mask of the next rows that are duplicates; remembers them.

        `ids` are the columns that make up the id; a row with a null in one of them is never a duplicate. Rows
        whose times are not `believed` are neither checked nor remembered. Raises `TooManyIds` if it holds
        more than the limit.
        """
        rows = len(times_us)
        known = known_rows(ids, rows, believed)
        h1, h2 = hash_keys(ids, rows)
        duplicate = np.zeros(rows, bool)
        row = 0
        while True:
            table = self._slots, self._known1, self._known2, self._low, self._high
            row, self._n = _mark(h1, h2, times_us, known, row, self._within, *table, self._n, duplicate)
            if row == rows:
                break
            self._grow()
        self._offsets.note(times_us[known], offsets[known])
        if self._n > self._limit:
            self._grow()
        if self._n > self._limit:
            raise TooManyIds(
                f"deduplicate: a partition has {self._n:,} ids within reach, the limit is {self._limit:,}; "
                "give the topic more partitions, choose a shorter within=, or raise limit="
            )
        return duplicate

    def forget_before(self, horizon_us: int) -> None:
        """Record that rows before this time are all late from now on."""
        self._offsets.forget_before(horizon_us)

    def replay_from(self, offset: int) -> int:
        """The offset from which rereading gives the same: the oldest row within reach, at most `offset`."""
        return self._offsets.replay_from(offset)

    def _room(self, entries: int) -> None:
        self._slots = np.full(2 * entries, -1, np.int64)
        self._known1, self._known2 = np.empty(entries, np.uint64), np.empty(entries, np.uint64)
        self._low, self._high = np.empty(entries, np.int64), np.empty(entries, np.int64)

    def _grow(self) -> None:
        """Make room: drop what is out of reach, and double if too little is freed."""
        held = self._known1, self._known2, self._low, self._high
        keep = np.flatnonzero(self._high[: self._n] + self._within > self._offsets.horizon)
        room = len(self._known1)
        self._n = len(keep)
        while room > 128 and 4 * self._n < room:
            room //= 2
        self._room(2 * room if 2 * self._n > room else room)
        for old, new in zip(held, (self._known1, self._known2, self._low, self._high)):
            new[: self._n] = old[keep]
        refill(self._slots, self._known1, self._n)


def known_rows(ids: Sequence[pa.Array], rows: int, believed: np.ndarray | None) -> np.ndarray:
    """A mask of the rows that have an id and a believed time."""
    known = np.ones(rows, bool) if believed is None else believed.copy()
    for column in ids:
        if column.null_count:
            known &= column.is_valid().to_numpy(zero_copy_only=False)
    return known
