"""Counting strings in the tables of `store`.

A string is known by two words. One of up to 15 bytes *is* its words: the bytes, padded with zeros, and its
length in the topmost byte, so that equal words are equal strings. A longer one has a hash and its length
there, below a topmost byte of 255, and its bytes lie at `place` in an arena, an int32 length before them;
those are compared. Rows are taken in order, as longs are.
"""

from __future__ import annotations

import numpy as np

from ..core.jit import inlined, kernel
from ..core.words import load32, load64
from .store import (
    ACTIVE,
    BASE,
    BYTES,
    CELLS,
    HEAP,
    LG,
    capacity,
    home,
    limit,
    mixed,
    roomy,
    settle,
)

SHORT = 15
"""Bytes that a string's two words hold."""

_STRETCH = 1024
_FEW = 24
_LONG = np.uint64(0xFF00000000000000)
_SIZE = np.uint64(0x00FFFFFFFFFFFFFF)


def _masks(first: int) -> np.ndarray:
    """By length, which bits of the 8 bytes from `first` on belong to the string."""
    sizes = np.clip(np.arange(SHORT + 1) - first, 0, 8)
    return np.array([(1 << 8 * int(size)) - 1 for size in sizes], np.uint64)


_FIRST, _SECOND = _masks(0), _masks(8)


@inlined
def _bytes(data, begin, size):
    """Up to 8 bytes as a word, where there may not be 8 to read."""
    word = np.uint64(0)
    for b in range(size):
        word |= np.uint64(data[begin + b]) << np.uint64(8 * b)
    return word


@inlined
def words_of(data, begin, size):
    """The two words that a string is known by."""
    if size <= SHORT:
        if begin + 16 <= len(data):
            key = load64(data, begin) & _FIRST[size]
            more = load64(data, begin + 8) & _SECOND[size]
        else:
            key = _bytes(data, begin, min(size, 8))
            more = _bytes(data, begin + 8, max(size - 8, 0))
        more |= np.uint64(size) << np.uint64(56)
    else:
        key = np.uint64(size)
        for at in range(begin, begin + size - 8, 8):
            key = (key ^ load64(data, at)) * np.uint64(0x9E3779B97F4A7C15)
            key ^= key >> np.uint64(32)
        key = (key ^ load64(data, begin + size - 8)) * np.uint64(0xBF58476D1CE4E5B9)
        key ^= key >> np.uint64(29)
        more = _LONG | np.uint64(size)
    return np.int64(key), np.int64(more)


@inlined
def size_of(more):
    """Bytes of a string, by its second word."""
    return np.int64(np.uint64(more) & _SIZE) if more < 0 else np.int64(more >> np.int64(56))


@kernel
def identify(offsets, data, keys, mores, begins):
    """The words of every string and where it begins; returns what the long ones would take in the arena."""
    needed = np.int64(0)
    for i in range(len(keys)):
        begin = np.int64(offsets[i])
        size = np.int64(offsets[i + 1]) - begin
        keys[i], mores[i] = words_of(data, begin, size)
        begins[i] = begin
        if size > SHORT:
            needed += 4 + size
    return needed


@inlined
def _same(arena, place, data, begin, size):
    """Whether the long string at `place` is ``data[begin : begin + size]``, of the same size."""
    same = True
    at = np.int64(0)
    while same and at < size - 8:
        same = load64(arena, place + 4 + at) == load64(data, begin + at)
        at += 8
    return same and load64(arena, place + size - 4) == load64(data, begin + size - 8)


@inlined
def same_string(cells, at, arena, more, data, begin):
    """Whether the cell, of the same first word, counts the string whose second word is `more`."""
    return cells[at + 2] == more and (more >= 0 or _same(arena, cells[at + 3], data, begin, size_of(more)))


@inlined
def insert_string(cells, base, lg, arena, heap, key, more, data, begin, weight):
    """Count one string in a table with room; 1 if it is new there, else 0."""
    end = base + (np.int64(4) << np.int64(lg))
    at = base + 4 * home(mixed(key, more), lg)
    size = size_of(more)
    while cells[at + 1] != 0 and not (
        cells[at] == key
        and cells[at + 2] == more
        and (more >= 0 or _same(arena, cells[at + 3], data, begin, size))
    ):
        at += 4
        if at == end:
            at = base
    new = np.int64(0)
    if cells[at + 1] == 0:
        new = np.int64(1)
        cells[at] = key
        cells[at + 2] = more
        if more < 0:
            used = heap[BYTES]
            put_number(arena, used, size, 4)
            for b in range(size):
                arena[used + 4 + b] = data[begin + b]
            cells[at + 3] = used
            heap[BYTES] = used + 4 + size
    cells[at + 1] += weight
    return new


@inlined
def put_number(out, at, value, size):
    """The lowest `size` bytes of a number, little-endian."""
    for b in range(size):
        out[at + b] = np.uint8((value >> np.int64(8 * b)) & np.int64(255))


@inlined
def put_string(out, at, key, more, place, arena):
    """The bytes of a counted string; returns how many."""
    size = size_of(more)
    if more < 0:
        for b in range(size):
            out[at + b] = arena[place + 4 + b]
    else:
        put_number(out, at, key, min(size, 8))
        put_number(out, at + 8, more, max(size - 8, 0))
    return size


@kernel
def _count_hits(cells, lg, keys, mores, weights, missed):
    """Count the short strings found at their first cell, without a branch; `missed` gets the other rows."""
    weighted = len(weights) > 0
    misses = np.int64(0)
    for i in range(len(keys)):
        at = 4 * home(mixed(keys[i], mores[i]), lg)
        same = (cells[at] == keys[i]) & (cells[at + 2] == mores[i])
        hit = np.int64(same & (cells[at + 1] > 0) & (mores[i] >= 0))
        cells[at + 1] += hit * (weights[i] if weighted else 1)
        missed[misses] = i
        misses += 1 - hit
    return misses


@kernel
def add_strings(tables, arena, data, groups, keys, mores, begins, weights, start, lg_max):
    """`add_longs` for strings; the arena has room for the long ones."""
    cells, base, lgs, active, _, weight, heap = tables
    missed = np.empty(_STRETCH + 1, np.int64)
    n = len(keys)
    single = len(groups) == 0
    weighted = len(weights) > 0
    i = start
    while i < n:
        g = np.int64(0) if single else groups[i]
        if active[g] > limit(lgs[g], lg_max) and not roomy(tables, g, 4, lg_max):
            return i
        last = min(n, i + _STRETCH)
        end = last if single else i + 1
        while end < last and groups[end] == g:
            end += 1
        lg = np.int64(lgs[g])
        size = max(min(end - i, limit(lg, lg_max) - active[g]), 1)
        left = size
        if size >= _FEW:
            some = weights[i : i + size] if weighted else weights
            table = cells[base[g] : base[g] + (np.int64(4) << lg)]
            left = _count_hits(table, lg, keys[i : i + size], mores[i : i + size], some, missed)
        for m in range(left):
            j = i + (missed[m] if size >= _FEW else m)
            each = weights[j] if weighted else 1
            active[g] += insert_string(
                cells, base[g], lg, arena, heap, keys[j], mores[j], data, begins[j], each
            )
        weight[g] += weights[i : i + size].sum() if weighted else size
        if active[g] > capacity(lg_max):
            settle(tables, g, 4, lg_max)
        i += size
    return n


@kernel
def find_string(tables, arena, g, offsets, data):
    """The counter of the one string given, 0 if it has none."""
    cells, base, lgs, _, _, _, _ = tables
    lg = np.int64(lgs[g])
    if lg == 0:
        return np.int64(0)
    begin = np.int64(offsets[0])
    size = np.int64(offsets[1]) - begin
    key, more = words_of(data, begin, size)
    p = home(mixed(key, more), lg)
    while True:
        at = base[g] + 4 * p
        if cells[at + 1] == 0 or (
            cells[at] == key
            and cells[at + 2] == more
            and (more >= 0 or _same(arena, cells[at + 3], data, begin, size))
        ):
            return cells[at + 1]
        p = (p + 1) & ((np.int64(1) << lg) - 1)


@kernel
def compact_strings(tables, arena, out):
    """Copy the long strings still counted to `out`, as long as the arena's used part; returns the bytes."""
    used = np.int64(0)
    for g in range(len(tables[BASE])):
        if tables[ACTIVE][g] == 0:
            continue
        base = tables[BASE][g]
        for at in range(base, base + (np.int64(4) << np.int64(tables[LG][g])), 4):
            if tables[CELLS][at + 1] != 0 and tables[CELLS][at + 2] < 0:
                place = tables[CELLS][at + 3]
                size = 4 + np.int64(load32(arena, place))
                for b in range(size):
                    out[used + b] = arena[place + b]
                tables[CELLS][at + 3] = used
                used += size
    tables[HEAP][BYTES] = used
    return used


@kernel
def copy_strings(keys, mores, places, arena, offsets, data):
    """Counted strings one after the other into `data`, their ends into ``offsets[1:]``."""
    used = np.int64(0)
    for i in range(len(keys)):
        used += put_string(data, used, keys[i], mores[i], places[i], arena)
        offsets[i + 1] = used
