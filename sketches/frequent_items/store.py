"""Hash tables of the frequent items, many groups in one arena of cells.

A group's table is a power of two of cells, found at ``base[g]``; it starts with four and doubles, and the
place it leaves goes to a list of free places of that size. Cells are ``(key, count)`` for longs and ``(key,
count, more, place)`` for strings, see `update_strings`. A count of 0 is a free cell. Collisions go to
the next cell.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..core.jit import inlined, kernel

LONG, STRING = 2, 4
"""Words a cell takes."""

USED, WANTED, BYTES = 0, 1, 2
_FREE = 8
_SMALLEST = 2


CELLS, BASE, LG, ACTIVE, OFFSET, WEIGHT, HEAP = range(7)
"""Places in the tuple that kernels take: arrays of int64, `LG` of int8."""


class Tables(NamedTuple):
    """All groups: the arena of cells, and a number each a group.

    Kernels take it as a plain tuple, since Numba's cache would hold on to the class.
    """

    cells: np.ndarray
    """The arena."""
    base: np.ndarray
    """First word of the group's table."""
    lg: np.ndarray
    """log2 of its cells, 0 for none yet."""
    active: np.ndarray
    """Cells in use."""
    offset: np.ndarray
    """What purges have taken from every counter."""
    weight: np.ndarray
    """Sum of all weights."""
    heap: np.ndarray
    """Words used, words wanted, bytes used; from 8 on the free places by lg."""


def new_heap() -> np.ndarray:
    """The arena's bookkeeping when nothing is in it."""
    heap = np.full(64, -1, np.int64)
    heap[[USED, WANTED, BYTES]] = 0
    return heap


@inlined
def mixed(key, more):
    """A string's two words of key as one for `home`."""
    return np.uint64(key) ^ (np.uint64(more) * np.uint64(0xD6E8FEB86659FD93))


@inlined
def home(key, lg):
    """The first cell to look at: the top bits of a mixed key."""
    k = np.uint64(key)
    k ^= k >> np.uint64(32)
    k *= np.uint64(0x9E3779B97F4A7C15)
    k ^= k >> np.uint64(29)
    k *= np.uint64(0xBF58476D1CE4E5B9)
    return np.int64(k >> np.uint64(64 - lg))


@inlined
def capacity(lg_max):
    """Counters a group may keep, as in DataSketches: three quarters of its largest map."""
    return np.int64(3) << np.int64(lg_max) >> np.int64(2)


@inlined
def limit(lg, lg_max):
    """Cells in use above which a table doubles, or, once it has twice the largest map's cells, is purged.

    Twice, because three quarters full would make for long searches.
    """
    if lg == 0:
        return np.int64(-1)
    if lg > lg_max:
        return capacity(lg_max)
    # One more may come: a cell must stay free, or looking for what isn't there never ends.
    return min(
        np.int64(3) << np.int64(lg) >> np.int64(2 if lg < lg_max else 3), (np.int64(1) << np.int64(lg)) - 2
    )


@kernel
def _allocate(tables, lg, width):
    """A cleared place for a table, or −1 with the words wanted noted, the caller then enlarging the arena."""
    heap = tables[HEAP]
    size = np.int64(width) << np.int64(lg)
    at = heap[_FREE + lg]
    if at >= 0:
        heap[_FREE + lg] = tables[CELLS][at]
    else:
        if heap[USED] + size > len(tables[CELLS]):
            heap[WANTED] = heap[USED] + size
            return np.int64(-1)
        at = heap[USED]
        heap[USED] += size
    tables[CELLS][at : at + size] = 0
    return at


@kernel
def _place(cells, base, lg, width, source, at, less):
    """Copy a cell known to be new into a table, its count lowered by `less`."""
    mask = (np.int64(1) << np.int64(lg)) - 1
    p = home(mixed(source[at], source[at + 2]) if width > LONG else np.uint64(source[at]), lg)
    while cells[base + width * p + 1] != 0:
        p = (p + 1) & mask
    to = base + width * p
    for w in range(width):
        cells[to + w] = source[at + w]
    cells[to + 1] -= less


@kernel
def _double(tables, g, width):
    """Move a group to a table of twice the cells. False where the arena is full."""
    old_lg = np.int64(tables[LG][g])
    lg = old_lg + 1 if old_lg else np.int64(_SMALLEST)
    at = _allocate(tables, lg, width)
    if at < 0:
        return False
    old = tables[BASE][g]
    if old_lg:
        for p in range(np.int64(1) << old_lg):
            if tables[CELLS][old + width * p + 1] != 0:
                _place(tables[CELLS], at, lg, width, tables[CELLS], old + width * p, 0)
        tables[CELLS][old] = tables[HEAP][_FREE + old_lg]
        tables[HEAP][_FREE + old_lg] = old
    tables[BASE][g] = at
    tables[LG][g] = lg
    return True


@inlined
def _ones(table, width):
    """How many counts are 1. Strides written out, so that the loops are vectorised."""
    ones = np.int64(0)
    if width == LONG:
        for p in range(len(table) // 2):
            ones += table[2 * p + 1] == 1
    else:
        for p in range(len(table) // 4):
            ones += table[4 * p + 1] == 1
    return ones


@kernel
def _median(cells, base, slots, width, active):
    """The count at rank ``active // 2`` from below. Most often it is 1, else small and counted by value."""
    if _ones(cells[base : base + width * slots], width) > active // 2:
        return np.int64(1)
    small = np.zeros(256, np.int64)
    for p in range(slots):
        c = cells[base + width * p + 1]
        if c < 256:
            small[c] += 1
    rank = active // 2
    below = np.int64(0)
    for c in range(1, 256):
        below += small[c]
        if below > rank:
            return np.int64(c)
    counts = np.empty(active, np.int64)
    n = 0
    for p in range(slots):
        c = cells[base + width * p + 1]
        if c > 0:
            counts[n] = c
            n += 1
    return np.partition(counts, rank)[rank]


@inlined
def _larger(table, width, less, kept):
    """Copy the cells that count more than `less`; returns how many. Each is copied, and then kept or
    overwritten: there is no branch to mispredict."""
    n = np.int64(0)
    if width == LONG:
        for p in range(len(table) // 2):
            kept[2 * n] = table[2 * p]
            kept[2 * n + 1] = table[2 * p + 1]
            n += np.int64(table[2 * p + 1] > less)
    else:
        for p in range(len(table) // 4):
            kept[4 * n] = table[4 * p]
            kept[4 * n + 1] = table[4 * p + 1]
            kept[4 * n + 2] = table[4 * p + 2]
            kept[4 * n + 3] = table[4 * p + 3]
            n += np.int64(table[4 * p + 1] > less)
    return n


@kernel
def purge(tables, g, width):
    """Take the median count from every counter and drop those it leaves nothing of.

    The median is of all counters, not of a sample as in DataSketches: what is left depends on the counters
    alone and not on where they lie, and the error's bound holds for certain. Where all are equal the one of
    the smallest key stays whole: readers take a sketch without counters for one that saw nothing, and would
    forget its weight and offset.
    """
    cells, base, lgs, active, offset = (
        tables[CELLS],
        tables[BASE][g],
        tables[LG],
        tables[ACTIVE],
        tables[OFFSET],
    )
    slots = np.int64(1) << np.int64(lgs[g])
    less = _median(cells, base, slots, width, active[g])
    kept = np.empty(width * (active[g] // 2 + 2), np.int64)
    n = _larger(cells[base : base + width * slots], width, less, kept)
    if n == 0:
        first = np.int64(-1)
        for at in range(base, base + width * slots, width):
            if cells[at + 1] == 0:
                continue
            same = first >= 0 and width > LONG and cells[at] == cells[first]
            if first < 0 or cells[at] < cells[first] or (same and cells[at + 2] < cells[first + 2]):
                first = np.int64(at)
        for w in range(width):
            kept[w] = cells[first + w]
        kept[1] += less
        n = np.int64(1)
    cells[base : base + width * slots] = 0
    for j in range(n):
        _place(cells, base, lgs[g], width, kept, width * j, less)
    active[g] = n
    offset[g] += less


@kernel
def settle(tables, g, width, lg_max):
    """Purge a group that took in more than it may keep."""
    while tables[ACTIVE][g] > capacity(lg_max):
        purge(tables, g, width)


@inlined
def roomy(tables, g, width, lg_max):
    """Whether a group can take one more row, after doubling its table if need be."""
    while tables[ACTIVE][g] > limit(np.int64(tables[LG][g]), lg_max):
        if not _double(tables, g, width):
            return False
    return True


@kernel
def open_table(tables, g, more, width):
    """Make a group's table large enough for `more` new counters at once. False where the arena is full."""
    while 4 * (tables[ACTIVE][g] + more) > np.int64(3) << np.int64(tables[LG][g]):
        if not _double(tables, g, width):
            return False
    return True


@kernel
def close_table(tables, g, width, lg_max):
    """After a merge: keep no more counters than allowed, in a table of at most the full size."""
    settle(tables, g, width, lg_max)
    lg = np.int64(tables[LG][g])
    full = np.int64(lg_max) + 1
    if lg <= full:
        return
    at = tables[BASE][g]
    kept = np.empty(width * tables[ACTIVE][g], np.int64)
    n = 0
    for p in range(np.int64(1) << lg):
        if tables[CELLS][at + width * p + 1] != 0:
            for w in range(width):
                kept[width * n + w] = tables[CELLS][at + width * p + w]
            n += 1
    # the table's first cells serve as the smaller table, the rest go to the free places, largest last
    tables[CELLS][at : at + (np.int64(width) << full)] = 0
    for j in range(n):
        _place(tables[CELLS], at, full, width, kept, width * j, 0)
    for size in range(full, lg):
        half = at + (np.int64(width) << np.int64(size))
        tables[CELLS][half] = tables[HEAP][_FREE + size]
        tables[HEAP][_FREE + size] = half
    tables[LG][g] = full
