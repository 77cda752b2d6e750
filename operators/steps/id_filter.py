"""The ids that a partition has seen recently, in fixed memory: finds all duplicates, and a few false ones.

The cells are those of `SlidingBloom`. As in `IdIndex`, the result must depend only on the rows, not on the
partition's progress, because a worker that rereads starts in the middle. So time is divided into intervals of
255 steps, each with its own cells that count from its beginning, and a row looks into the one or two
intervals within its reach. An interval only has the blocks of 256 cells that some row needed, so a row of a
clock that is ahead takes one block.

A row is remembered whether or not it is a duplicate, and a row finds those within its reach, and within the
step in which its reach begins. A cell only holds its last step, so a row that arrives out of order, after a
later row of its id, finds that row up to the end of the interval in which its reach ends.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from ...sketches.bloom.update import block_of
from ...sketches.core.compilation.jit import inner, kernel
from ...sketches.sliding_bloom.cells import CELLS, LANE, LANES, MOST, cell_of, width_of
from ...sketches.sliding_bloom.images import Parameters
from ..definition.deduplication import TooManyIds
from ..grouping.group_index import hash_keys
from ..windows.window import EARLIEST
from .id_index import known_rows
from .replay_offsets import ReplayOffsets

_CHECKS = 4
"""Ids are counted each time a quarter of the capacity in rows has arrived."""
_WILD = 4096
"""The number of blocks for rows whose times are far from all others."""


@inner
def _slot(epoch, block, mask):
    mixed = (np.uint64(epoch) * np.uint64(0x9E3779B97F4A7C15)) ^ np.uint64(block)
    mixed = (mixed ^ (mixed >> np.uint64(32))) * np.uint64(0xD6E8FEB86659FD93)
    return (mixed ^ (mixed >> np.uint64(32))) & mask


@inner
def _find(slots, epochs, blocks, epoch, block):
    """The entry of a block, or −1 minus the slot where it would be inserted."""
    mask = np.uint64(len(slots) - 1)
    at = _slot(epoch, block, mask)
    while slots[at] >= 0:
        entry = slots[at]
        if epochs[entry] == epoch and blocks[entry] == block:
            return np.int64(entry)
        at = (at + np.uint64(1)) & mask
    return np.int64(-1) - np.int64(at)


@inner
def _place(key, j):
    """The cell within the key's block."""
    return cell_of(key, 1, j)


@inner
def _earliest(cells, key):
    least = cells[_place(key, 0)]
    for j in range(1, LANES):
        least = min(least, cells[_place(key, j)])
    return np.int64(least)


@kernel
def _mark(keys, times, known, start, within, width, size, slots, epochs, blocks, cells, n, duplicate):
    """Check and remember the rows from `start` on; stops early when there is no room. Returns (row, n).

    `size` is the number of blocks in an interval.
    """
    for i in range(start, len(keys)):
        if not known[i]:
            continue
        key, time = np.int64(keys[i]), times[i]
        low, high, step = (time - within + 1) // width, (time + within - 1) // width, time // width
        block, own = block_of(key, size), step // MOST
        entry = _find(slots, epochs, blocks, own, block)
        if entry < 0:
            if n == len(cells):
                return i, n
            slots[-1 - entry] = n
            epochs[n], blocks[n] = own, block
            entry = np.int64(n)
            n += 1
        for epoch in range(low // MOST, high // MOST + 1):
            there = entry if epoch == own else _find(slots, epochs, blocks, epoch, block)
            if there >= 0 and _earliest(cells[there], key) >= max(low - epoch * MOST + 1, 1):
                duplicate[i] = True
        mark = np.uint8(step - own * MOST + 1)
        for j in range(LANES):
            at = _place(key, j)
            cells[entry, at] = max(cells[entry, at], mark)
    return len(keys), n


@kernel
def _refill(slots, epochs, blocks, n):
    for entry in range(n):
        slots[-1 - _find(slots, epochs, blocks, epochs[entry], blocks[entry])] = entry


@inner
def _either(one, least, two, begin):
    """The number of a lane's cells set in step `least` or later of one interval, or at all in the next."""
    n = np.int64(0)
    first, second = one[begin : begin + LANE], two[begin : begin + LANE]
    for at in range(LANE):
        n += (first[at] >= least) | (second[at] >= np.uint8(1))
    return n


@kernel
def _since(low, slots, epochs, blocks, cells, n):
    """The number of cells set from step `low` to the end of the next interval, and a chance.

    That is the share of ids that find all of their cells set, summed over blocks.
    """
    first = low // MOST
    least = np.uint8(low - first * MOST + 1)
    nothing = np.zeros(CELLS, np.uint8)
    number, chance = np.int64(0), 0.0
    for entry in range(n):
        other = _find(slots, epochs, blocks, 2 * first + 1 - epochs[entry], blocks[entry])
        there = cells[other] if other >= 0 else nothing
        if epochs[entry] == first:
            one, two = cells[entry], there
        elif epochs[entry] == first + 1 and other < 0:
            one, two = there, cells[entry]
        else:  # another time, or counted with the previous interval's block
            continue
        share = 1.0
        for j in range(LANES):
            lane = _either(one, least, two, j * LANE)
            number += lane
            share *= lane / LANE
        chance += share
    return number, chance


class IdFilter:
    """The ids of one partition's rows, like `IdIndex`, in memory fixed by `capacity` and `fpp`.

    A row is a duplicate if a row of its id lies less than `within_us` away, and may be one if that row is
    farther away by up to 1/128. Any other row is mistaken for a duplicate with probability `fpp` at most,
    while rows of up to `capacity` ids lie less than `within_us` before the latest one. `behind_us` is how far
    rows that are not late may lie behind the latest one.

    >>> seen = IdFilter(within_us=1_000_000, capacity=1_000, fpp=1e-6)
    >>> ids, times = pa.array(["a", "b", "a", None, None, "a"]), np.array([0, 5, 9, 9, 9, 30]) * 100_000
    >>> seen.mark([ids], times, np.arange(6)).tolist()
    [False, False, True, False, False, False]
    """

    def __init__(self, within_us: int, capacity: int, fpp: float, behind_us: int = 0) -> None:
        self._within, self._width = within_us, width_of(within_us)
        self._capacity, self._fpp, self._behind = capacity, fpp, behind_us
        self._size = Parameters(capacity, fpp, within_us, 0).blocks
        stretches = 3 + (within_us + behind_us) // (MOST * self._width)
        self._most = self._size * stretches + _WILD
        self._offsets = ReplayOffsets(within_us + self._width)
        self._reached = EARLIEST  # the first interval within reach
        self._n = self._uncounted = 0
        self._room(128)

    @property
    def size(self) -> int:
        """The approximate bytes of memory."""
        return self._n * (CELLS + 16) + self._slots.nbytes

    def mark(
        self,
        ids: Sequence[pa.Array],
        times_us: np.ndarray,
        offsets: np.ndarray,
        believed: np.ndarray | None = None,
    ) -> np.ndarray:
        """A mask of the next rows that are duplicates; remembers them. Like `IdIndex.mark`.

        Raises `TooManyIds` if rows are so far apart in time that they would take more memory than is fixed.
        """
        rows = len(times_us)
        known = known_rows(ids, rows, believed)
        keys, _ = hash_keys(ids, rows)
        duplicate = np.zeros(rows, bool)
        row = 0
        while True:
            table = self._slots, self._epochs, self._blocks, self._cells
            shape = self._within, self._width, self._size
            row, self._n = _mark(keys, times_us, known, row, *shape, *table, self._n, duplicate)
            if row == rows:
                break
            self._grow()
        self._offsets.note(times_us[known], offsets[known])
        self._uncounted += rows
        return duplicate

    def forget_before(self, horizon_us: int) -> None:
        """Record that rows before this time are all late from now on.

        Raises `TooManyIds` if there are more ids than the capacity, which is checked from time to time.
        """
        self._offsets.forget_before(horizon_us)
        if (reached := self._reach() // MOST) > self._reached:
            self._reached = reached
            self._grow()
        if _CHECKS * self._uncounted >= self._capacity:
            self._uncounted = 0
            self._check_capacity(horizon_us + self._behind)

    def replay_from(self, offset: int) -> int:
        """The offset from which rereading gives the same: the oldest row within reach, at most `offset`."""
        return self._offsets.replay_from(offset)

    def _check_capacity(self, latest_us: int) -> None:
        """Raise `TooManyIds` for significantly more ids before the latest time than the capacity."""
        low = (latest_us - self._within + 1) // self._width
        number, chance = _since(low, self._slots, self._epochs, self._blocks, self._cells, self._n)
        cells = self._size * CELLS
        ids = math.inf if number == cells else -cells / LANES * math.log1p(-number / cells)
        if ids > 1.02 * self._capacity + 4 * math.sqrt(self._capacity):
            about = f"about {ids:,.0f}" if math.isfinite(ids) else f"many times {self._capacity:,}"
            raise TooManyIds(
                f"deduplicate: a partition has {about} ids within reach, the capacity is {self._capacity:,}: "
                f"{chance / self._size:.2%} of rows would be dropped by mistake instead of {self._fpp:.2%}; "
                "raise capacity=, give the topic more partitions, or choose a shorter within="
            )

    def _reach(self) -> int:
        """The first step within the reach of a row that isn't late."""
        return (self._offsets.horizon - self._within + 1) // self._width

    def _room(self, entries: int) -> None:
        self._slots = np.full(1 << (2 * entries - 1).bit_length(), -1, np.int32)
        self._epochs, self._blocks = np.empty(entries, np.int64), np.empty(entries, np.int64)
        self._cells = np.zeros((entries, CELLS), np.uint8)

    def _grow(self) -> None:
        """Make room: drop intervals that are out of reach, and double if too little is freed."""
        held = self._epochs, self._blocks, self._cells
        keep = np.flatnonzero(self._epochs[: self._n] >= self._reach() // MOST)
        room, self._n = len(self._cells), len(keep)
        if self._n > self._most:
            raise TooManyIds(
                f"deduplicate: rows of a partition lie so far apart in time that the memory for "
                f"{self._capacity:,} ids isn't enough; set max_ahead=, or leave out fpp= and capacity="
            )
        while room > 128 and 4 * self._n < room:
            room //= 2
        self._room(2 * room if 2 * self._n > room else room)
        epochs, blocks, cells = (old[keep] for old in held)
        self._epochs[: self._n], self._blocks[: self._n], self._cells[: self._n] = epochs, blocks, cells
        _refill(self._slots, self._epochs, self._blocks, self._n)
