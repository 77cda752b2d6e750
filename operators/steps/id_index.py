"""Which ids a partition has seen, and when: a row is a duplicate if one of its id lies close before it.

It depends on the rows alone, whatever became of them, and on nothing that came before the oldest row that is
still in reach. So reading again from that row's offset on gives the same.

An id's rows are kept as stretches of time, from the first to the last of rows that lie less than `within`
from one another: a time is close to one of them if it is close to the stretch.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from ...sketches.core.jit import kernel
from ..definition.deduplication import MANY, TooManyIds
from ..grouping.group_index import hash_keys
from ..grouping.key_index import refill
from .replay_offsets import ReplayOffsets


@kernel
def _mark(h1, h2, times, known, start, within, slots, known1, known2, low, high, n, duplicate):
    """Judge and note the rows from `start` on; stops early when the table is half full. Gives (row, n)."""
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

    Exact but for ids whose 128-bit hashes agree, which among a billion has a probability below 10⁻²⁰. An id
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
        """Bytes of memory, about."""
        return sum(a.nbytes for a in (self._slots, self._known1, self._known2, self._low, self._high))

    def mark(
        self,
        ids: Sequence[pa.Array],
        times_us: np.ndarray,
        offsets: np.ndarray,
        believed: np.ndarray | None = None,
    ) -> np.ndarray:
        """Which of the next rows are duplicates, as a mask; notes them.

        `ids` are the columns that make up the id; a row with a null in one of them is unlike all others.
        Rows that are not `believed` to be of their time are neither judged nor noted. Raises `TooManyIds` if
        it holds more than the limit.
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
        """Note that rows before this time are all late from now on."""
        self._offsets.forget_before(horizon_us)

    def replay_from(self, offset: int) -> int:
        """Where to read again from to find the same: the oldest row that is in reach, at most `offset`."""
        return self._offsets.replay_from(offset)

    def _room(self, entries: int) -> None:
        self._slots = np.full(2 * entries, -1, np.int64)
        self._known1, self._known2 = np.empty(entries, np.uint64), np.empty(entries, np.uint64)
        self._low, self._high = np.empty(entries, np.int64), np.empty(entries, np.int64)

    def _grow(self) -> None:
        """Make room: drop what is out of reach, and double if that is little."""
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
    """Which rows have an id, and are believed to be of their time."""
    known = np.ones(rows, bool) if believed is None else believed.copy()
    for column in ids:
        if column.null_count:
            known &= column.is_valid().to_numpy(zero_copy_only=False)
    return known
