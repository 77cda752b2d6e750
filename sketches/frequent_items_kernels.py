"""Counting rows and looking items up in the tables of `frequent_items_tables`.

Rows are taken strictly in order, so that any cut into batches gives the same counters. Within a stretch that
can't overfill a table order doesn't matter: there the hits on a first probe are counted without a branch
before the others are looked up.
"""

from __future__ import annotations

import numpy as np

from .bits import load64
from .frequent_items_tables import BASE, BYTES, CELLS, LG, capacity, home, limit, roomy, settle, string_size
from .jit import inlined, kernel

_STRETCH = 1024
_SHORT = 24


@kernel
def _homes(block, lg, out):  # type: ignore[no-untyped-def]
    shift = np.uint64(64 - lg)
    for i in range(len(block)):
        k = np.uint64(block[i])
        k ^= k >> np.uint64(32)
        k *= np.uint64(0x9E3779B97F4A7C15)
        k ^= k >> np.uint64(29)
        k *= np.uint64(0xBF58476D1CE4E5B9)
        out[i] = np.int64(k >> shift)


@inlined
def insert_long(cells, base, lg, key, weight):  # type: ignore[no-untyped-def]
    """Count one long in a table with room; 1 if it is new there, else 0."""
    mask = (np.int64(1) << np.int64(lg)) - 1
    at = base + 2 * home(key, lg)
    while cells[at + 1] != 0 and cells[at] != key:
        at = base + ((at - base + 2) & (2 * mask + 1))
    new = np.int64(cells[at + 1] == 0)
    cells[at] = key
    cells[at + 1] += weight
    return new


@kernel
def _add_stretch(cells, lg, keys, weights, homes, missed):  # type: ignore[no-untyped-def]
    """Count a block in a table that can't overfill by it; `cells` begins with the table. Returns new keys."""
    weighted = len(weights) > 0
    _homes(keys, lg, homes)
    misses = np.int64(0)
    for i in range(len(keys)):
        p = homes[i]
        hit = np.int64((cells[2 * p] == keys[i]) & (cells[2 * p + 1] > 0))
        cells[2 * p + 1] += hit * (weights[i] if weighted else 1)
        missed[misses] = i
        misses += 1 - hit
    mask = (np.int64(1) << np.int64(lg)) - 1
    new = np.int64(0)
    for j in range(misses):
        i = missed[j]
        p = homes[i]
        key = keys[i]
        while cells[2 * p + 1] != 0 and cells[2 * p] != key:
            p = (p + 1) & mask
        new += cells[2 * p + 1] == 0
        cells[2 * p] = key
        cells[2 * p + 1] += weights[i] if weighted else 1
    return new


@kernel
def add_longs(tables, groups, keys, weights, start, lg_max):  # type: ignore[no-untyped-def]
    """Count rows from `start` on; `groups` empty is all group 0, `weights` empty all 1.

    Returns the first row not taken: less than the rows there are where the arena must grow first.
    """
    cells, base, lgs, active, _, weight, _ = tables
    homes = np.empty(_STRETCH, np.int64)
    missed = np.empty(_STRETCH + 1, np.int64)
    n = len(keys)
    single = len(groups) == 0
    weighted = len(weights) > 0
    i = start
    while i < n:
        g = np.int64(0) if single else groups[i]
        if active[g] > limit(lgs[g], lg_max) and not roomy(tables, g, 2, lg_max):
            return i
        last = min(n, i + _STRETCH)
        end = last if single else i + 1
        while end < last and groups[end] == g:
            end += 1
        lg = np.int64(lgs[g])
        size = max(min(end - i, limit(lg, lg_max) - active[g]), 1)
        if size < _SHORT:
            for j in range(i, i + size):
                each = weights[j] if weighted else 1
                active[g] += insert_long(cells, base[g], lg, keys[j], each)
                weight[g] += each
        else:
            some = weights[i : i + size] if weighted else weights
            table = cells[base[g] : base[g] + (np.int64(2) << lg)]
            active[g] += _add_stretch(table, lg, keys[i : i + size], some, homes, missed)
            weight[g] += some.sum() if weighted else size
        if active[g] > capacity(lg_max):
            settle(tables, g, 2, lg_max)
        i += size
    return n


@inlined
def _last_word(data, end, n):  # type: ignore[no-untyped-def]
    """The last `n` (1 to 8) bytes before `end` as a word, reading nothing outside `data`."""
    word = np.uint64(0)
    if end >= 8:
        word = load64(data, end - 8) >> np.uint64(64 - 8 * n)
    else:
        for b in range(n):
            word |= np.uint64(data[end - n + b]) << np.uint64(8 * b)
    return word


@inlined
def hash_string(data, begin, end):  # type: ignore[no-untyped-def]
    """A quick 64-bit hash, for these tables only: equal hashes are always compared."""
    h = np.uint64(end - begin) * np.uint64(0x9E3779B97F4A7C15)
    at = begin
    while end - at > 8:
        h = (h ^ load64(data, at)) * np.uint64(0xBF58476D1CE4E5B9)
        h ^= h >> np.uint64(32)
        at += 8
    if end > at:
        h = (h ^ _last_word(data, end, end - at)) * np.uint64(0xBF58476D1CE4E5B9)
        h ^= h >> np.uint64(29)
    return np.int64(h)


@inlined
def _same(arena, place, data, begin, size):  # type: ignore[no-untyped-def]
    """Whether the string at `place` in the arena is ``data[begin : begin + size]``."""
    same = string_size(arena, place) == size
    at = np.int64(0)
    while same and size - at > 8:
        same = load64(arena, place + 4 + at) == load64(data, begin + at)
        at += 8
    if same and size > 0:
        left = size - at
        same = _last_word(arena, place + 4 + size, left) == _last_word(data, begin + size, left)
    return same


@inlined
def _store(arena, used, data, begin, size):  # type: ignore[no-untyped-def]
    for b in range(4):
        arena[used + b] = np.uint8((size >> np.int64(8 * b)) & np.int64(255))
    for b in range(size):
        arena[used + 4 + b] = data[begin + b]


@inlined
def insert_string(cells, base, lg, arena, heap, key, data, begin, size, weight):  # type: ignore[no-untyped-def]
    """Count one string whose hash is `key` in a table with room; 1 if it is new there, else 0."""
    end = base + (np.int64(3) << np.int64(lg))
    at = base + 3 * home(key, lg)
    while cells[at + 1] != 0 and not (cells[at] == key and _same(arena, cells[at + 2], data, begin, size)):
        at += 3
        if at == end:
            at = base
    new = np.int64(0)
    if cells[at + 1] == 0:
        new = np.int64(1)
        _store(arena, heap[BYTES], data, begin, size)
        cells[at] = key
        cells[at + 2] = heap[BYTES]
        heap[BYTES] += 4 + size
    cells[at + 1] += weight
    return new


@kernel
def add_strings(tables, arena, groups, offsets, data, weights, start, lg_max):  # type: ignore[no-untyped-def]
    """`add_longs` for strings; the arena has room for all of them."""
    cells, base, lgs, active, _, weight, heap = tables
    n = len(offsets) - 1
    single = len(groups) == 0
    weighted = len(weights) > 0
    hashes = np.empty(_STRETCH, np.int64)
    for first in range(start, n, _STRETCH):
        last = min(n, first + _STRETCH)
        for i in range(first, last):
            hashes[i - first] = hash_string(data, np.int64(offsets[i]), np.int64(offsets[i + 1]))
        for i in range(first, last):
            g = np.int64(0) if single else groups[i]
            if active[g] > limit(lgs[g], lg_max) and not roomy(tables, g, 3, lg_max):
                return i
            each = weights[i] if weighted else 1
            begin = np.int64(offsets[i])
            size = np.int64(offsets[i + 1]) - begin
            active[g] += insert_string(
                cells, base[g], lgs[g], arena, heap, hashes[i - first], data, begin, size, each
            )
            weight[g] += each
            if active[g] > capacity(lg_max):
                settle(tables, g, 3, lg_max)
    return n


@kernel
def find_long(tables, g, key):  # type: ignore[no-untyped-def]
    """The counter of a long, 0 if it has none."""
    lg = np.int64(tables[LG][g])
    if lg == 0:
        return np.int64(0)
    p = home(key, lg)
    base = tables[BASE][g]
    while tables[CELLS][base + 2 * p + 1] != 0 and tables[CELLS][base + 2 * p] != key:
        p = (p + 1) & ((np.int64(1) << lg) - 1)
    return tables[CELLS][base + 2 * p + 1]


@kernel
def find_string(tables, arena, g, offsets, data):  # type: ignore[no-untyped-def]
    """The counter of the one string given, 0 if it has none."""
    cells, base, lgs, _, _, _, _ = tables
    lg = np.int64(lgs[g])
    if lg == 0:
        return np.int64(0)
    begin, end = np.int64(offsets[0]), np.int64(offsets[1])
    key = hash_string(data, begin, end)
    p = home(key, lg)
    while True:
        at = base[g] + 3 * p
        if cells[at + 1] == 0 or (cells[at] == key and _same(arena, cells[at + 2], data, begin, end - begin)):
            return cells[at + 1]
        p = (p + 1) & ((np.int64(1) << lg) - 1)
