"""Hash tables of frequent items, for many groups in one arena of cells.

A group's table has a power of two of cells, from word `base` on; it starts with four and doubles. A cell is
``(key, count)`` for longs and ``(key, count, more, place)`` for strings, see `string_arena`; a cell with
count 0 is free. Collisions go to the next cell.

Both kinds use the same kernels. An item is identified by a key and a second word: for a long, that is the key
again, because the second word is read ``width − 2`` words after the first.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..core.compilation.jit import inner
from ..core.groups.arena import allocate, new_extent
from ..core.sorting.select import select

LONG, STRING = 2, 4
"""The number of words in a cell."""

NO_SCRATCH = -2
"""Why a kernel stopped: `scratch` needs the number of words requested in `extent`."""

_SMALLEST = 2
_BY_VALUE = 256

GROUP = np.dtype([(name, np.int64) for name in ("base", "lg", "active", "offset", "weight")])
"""A group: its table's first word, log2 of its cells (0: none yet), the cells in use, the total that purges
subtracted from every counter, and the sum of all weights."""


class Tables(NamedTuple):
    """The kernels' data: the arena of cells, a `GROUP` per group, and the arena of long strings' bytes.

    `extent` says how many cells are used, `spent` how many bytes; `scratch` is for purges. `cell` has a
    number for each word of a cell: its length is part of its type, so the compiler knows it.
    """

    cells: np.ndarray
    extent: np.ndarray
    groups: np.ndarray
    texts: np.ndarray
    spent: np.ndarray
    scratch: np.ndarray
    cell: tuple[int, ...]
    lg_max: int


def new_tables(width: int, lg_max: int) -> Tables:
    """Return tables without groups."""
    words = np.empty(0, np.int64)
    return Tables(
        cells=words,
        extent=new_extent(),
        groups=np.empty(0, GROUP),
        texts=np.empty(0, np.uint8),
        spent=new_extent(),
        scratch=words,
        cell=tuple(range(width)),
        lg_max=lg_max,
    )


def table_sizes(tables: Tables) -> np.ndarray:
    """Return the number of words of each group's table."""
    lgs = tables.groups["lg"]
    return np.where(lgs > 0, len(tables.cell) << lgs, 0)


@inner
def hashed(key, more, cell):
    """Hash an item's two words to 64 bits; the topmost select the first cell."""
    k = np.uint64(key) ^ (np.uint64(more) * np.uint64(0xD6E8FEB86659FD93) * np.uint64(len(cell) >> 2))
    k ^= k >> np.uint64(32)
    k *= np.uint64(0x9E3779B97F4A7C15)
    k ^= k >> np.uint64(29)
    k *= np.uint64(0xBF58476D1CE4E5B9)
    return k


@inner
def home(key, more, cell, lg):
    """Return the first of 2^lg cells to search for an item."""
    return np.int64(hashed(key, more, cell) >> np.uint64(64 - lg))


@inner
def capacity(lg_max):
    """Return the most counters of a group, as in DataSketches: three quarters of its largest map."""
    return np.int64(3) << np.int64(lg_max) >> np.int64(2)


@inner
def limit(lg, lg_max):
    """Return the number of cells in use above which a table doubles, or is purged at twice the largest map.

    It may have twice the cells, because searches in a table three quarters full are long.
    """
    if lg == 0:
        return np.int64(-1)
    if lg > lg_max:
        return capacity(lg_max)
    # One more may be added, and a cell must stay free, or a search for a missing item would never end.
    share = np.int64(3) << np.int64(lg) >> np.int64(2 if lg < lg_max else 3)
    return min(share, (np.int64(1) << np.int64(lg)) - 2)


@inner
def _place(cells, base, lg, cell, source, at, less):
    """Copy a cell known to be new into a table, with its count lowered by `less`."""
    width = len(cell)
    mask = (np.int64(1) << lg) - 1
    p = home(source[at], source[at + width - 2], cell, lg)
    while cells[base + width * p + 1] != 0:
        p = (p + 1) & mask
    to = base + width * p
    for w in range(width):
        cells[to + w] = source[at + w]
    cells[to + 1] -= less


@inner
def _double(tables, g):
    """Move a group to a table with twice the cells. Returns False if the arena is full."""
    cells, width, group = tables.cells, len(tables.cell), tables.groups[g]
    lg = group.lg + 1 if group.lg else np.int64(_SMALLEST)
    to = allocate(tables.extent, width << lg, len(cells))
    if to < 0:
        return False
    cells[to : to + (width << lg)] = 0
    if group.lg:
        for at in range(group.base, group.base + (width << group.lg), width):
            if cells[at + 1] != 0:
                _place(cells, to, lg, tables.cell, cells, at, np.int64(0))
    group.base, group.lg = to, lg
    return True


@inner
def roomy(tables, g):
    """Whether a group can accept one more row, after doubling its table if necessary."""
    group = tables.groups[g]
    while group.active > limit(group.lg, tables.lg_max):
        if not _double(tables, g):
            return False
    return True


@inner
def can_purge(tables, active):
    """Whether the scratch suffices to purge a table with `active` cells in use; if not, requests more."""
    wanted = (len(tables.cell) + 1) * active + _BY_VALUE
    if len(tables.scratch) < wanted:
        tables.extent[0].wanted = wanted
        return False
    return True


@inner
def _median(table, cell, active, scratch):
    """Return the count at rank ``active // 2`` from below. Usually it is 1, else small and found by
    counting."""
    ones, width = np.int64(0), len(cell)
    for at in range(1, len(table), width):
        ones += table[at] == 1
    rank = active // 2
    if ones > rank:
        return np.int64(1)
    small = scratch[:_BY_VALUE]
    small[:] = 0
    for at in range(1, len(table), width):
        if table[at] < _BY_VALUE:
            small[table[at]] += 1
    below = np.int64(0)
    for c in range(1, _BY_VALUE):
        below += small[c]
        if below > rank:
            return np.int64(c)
    n = np.int64(0)
    for at in range(1, len(table), width):
        scratch[n] = table[at]
        n += table[at] > 0
    return select(scratch[:n], rank)


@inner
def _larger(table, cell, less, kept):
    """Copy the cells that count more than `less`; return how many. Each is copied, and then kept or
    overwritten, so there is no branch to mispredict."""
    n, width = np.int64(0), len(cell)
    for at in range(0, len(table), width):
        for w in range(width):
            kept[n + w] = table[at + w]
        n += width * np.int64(table[at + 1] > less)
    return n // width


@inner
def _smallest_key(table, cell):
    """Return the counter that comes first by key and second word."""
    width, second, first = len(cell), len(cell) - 2, np.int64(-1)
    for at in range(0, len(table), width):
        if table[at + 1] == 0:
            continue
        same = first >= 0 and table[at] == table[first]
        if first < 0 or table[at] < table[first] or (same and table[at + second] < table[first + second]):
            first = np.int64(at)
    return first


@inner
def purge(tables, g):
    """Subtract the median count from every counter and drop counters that reach zero.

    The median is of all counters, not of a sample as in DataSketches: so the result depends only on the
    counters and not on their places, and the error bound is certain. If all counters are equal, the one with
    the smallest key remains: readers consider a sketch without counters empty, and would forget its weight
    and offset.
    """
    group, width, kept = tables.groups[g], len(tables.cell), tables.scratch
    table = tables.cells[group.base : group.base + (width << group.lg)]
    # At least half of more than `capacity` counters lose all of `less`, so purges subtract at most
    # 2 · weight / capacity from a counter in total: the bound that `FrequentItems` promises.
    less = _median(table, tables.cell, group.active, tables.scratch)
    n = _larger(table, tables.cell, less, kept)
    if n == 0:
        first = _smallest_key(table, tables.cell)
        for w in range(width):
            kept[w] = table[first + w]
        kept[1] += less
        n = np.int64(1)
    table[:] = 0
    for j in range(n):
        _place(tables.cells, group.base, group.lg, tables.cell, kept, width * j, less)
    group.active = n
    group.offset += less


@inner
def purge_to_capacity(tables, g):
    """Purge a group with more counters than allowed."""
    while tables.groups[g].active > capacity(tables.lg_max):
        purge(tables, g)


@inner
def open_table(tables, g, more):
    """Enlarge a group's table for `more` new counters at once. Returns False if the arena is full."""
    group = tables.groups[g]
    while 4 * (group.active + more) > np.int64(3) << group.lg:
        if not _double(tables, g):
            return False
    return True


@inner
def close_table(tables, g):
    """After a merge, reduce the counters to the allowed number, in a table of at most the full size."""
    purge_to_capacity(tables, g)
    group, width = tables.groups[g], len(tables.cell)
    full = np.int64(tables.lg_max) + 1
    if group.lg <= full:
        return
    table = tables.cells[group.base : group.base + (width << group.lg)]
    n = _larger(table, tables.cell, np.int64(0), tables.scratch)
    # The table's first cells become the smaller table; the rest is a gap that the arena closes.
    table[: width << full] = 0
    for j in range(n):
        _place(tables.cells, group.base, full, tables.cell, tables.scratch, width * j, np.int64(0))
    group.lg = full
