"""The bytes of the frequent items, as DataSketches and Spark's `approx_top_k_accumulate` write them.

Little-endian; an empty sketch is the first eight bytes alone::

    byte  0  preamble in 8-byte words: 1 if empty, else 4
          1  serial version, 1
          2  family, 10
          3  log2 of the largest map
          4  log2 of the current map
          5  flags: 5 (both of the two bits in use for it) if empty, else 0
          6  2 where items are longs, 4 for strings: a mark of ours, which no other library reads
          8  int32, counters; 4 unused bytes
         16  int64, sum of all weights
         24  int64, offset: what purges took from every counter
         32  int64 a counter, then its items: int64, or int32 length and UTF-8

Counters are written from the largest to the smallest, equal ones by the words they are known by, so that
equal sketches have equal bytes. DataSketches writes them in the order of its map, and reads any.

Source: datasketches-java `frequencies.PreambleUtil`; datasketches-cpp `frequent_items_sketch::serialize`.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from ..core.jit import kernel
from ..core.words import load32, load64
from .store import (
    ACTIVE,
    BASE,
    CELLS,
    LG,
    LONG,
    OFFSET,
    STRING,
    WEIGHT,
    capacity,
    close_table,
    open_table,
)
from .update import insert_long
from .update_strings import insert_string, put_number, put_string, size_of, words_of

EMPTY_BYTES, PREAMBLE_BYTES = 8, 32
_MOST = np.int64(2**63 - 1)
MIN_LG, MAX_LG = 3, 26

FAULTS = (
    "",
    "it is shorter than its preamble says",
    "its first bytes are not a frequent items preamble (words 1 or 4, version 1, family 10)",
    f"its map sizes are out of range (log2 from {MIN_LG} to {MAX_LG}, the current within the largest)",
    "its empty flag contradicts the rest",
    "it has more counters than its map holds",
    "its counters, offset and weight do not add up",
    "its items end before or after its last byte",
    "an item is not valid UTF-8",
    "it says that its items are of another kind",
)
"""What `check_images` found, by its code."""


@kernel
def dense(tables, g, width, keys, counts, mores, places):
    """A group's counters in the order they are written: largest count, then smallest key, first."""
    n = tables[ACTIVE][g]
    if n == 0:
        return
    k = np.empty(n, np.int64)
    c = np.empty(n, np.int64)
    s = np.zeros(n, np.int64)
    t = np.zeros(n, np.int64)
    base = tables[BASE][g]
    m = 0
    for p in range(np.int64(1) << np.int64(tables[LG][g])):
        at = base + width * p
        if tables[CELLS][at + 1] != 0:
            k[m] = tables[CELLS][at]
            c[m] = tables[CELLS][at + 1]
            if width > LONG:
                s[m] = tables[CELLS][at + 2]
                t[m] = tables[CELLS][at + 3]
            m += 1
    if n > 24:
        order = np.argsort(s, kind="mergesort") if width > LONG else np.arange(n)
        order = order[np.argsort(k[order], kind="mergesort")]
        order = order[np.argsort(-c[order], kind="mergesort")]
    else:
        order = np.arange(n)
        for i in range(1, n):
            x = order[i]
            j = i - 1
            while j >= 0:
                y = order[j]
                if c[y] > c[x] or (c[y] == c[x] and (k[y] < k[x] or (k[y] == k[x] and s[y] <= s[x]))):
                    break
                order[j + 1] = y
                j -= 1
            order[j + 1] = x
    for i in range(n):
        keys[i] = k[order[i]]
        counts[i] = c[order[i]]
        mores[i] = s[order[i]]
        places[i] = t[order[i]]


@kernel
def image_ends(tables, groups, width, ends):
    """Where each group's image ends, in ``ends[1:]``, when they follow each other."""
    used = np.int64(0)
    for g in range(groups):
        if tables[ACTIVE][g] == 0 and tables[WEIGHT][g] == 0:
            used += EMPTY_BYTES
        else:
            used += PREAMBLE_BYTES + (12 if width > LONG else 16) * tables[ACTIVE][g]
            if width > LONG and tables[ACTIVE][g] > 0:
                base = tables[BASE][g]
                for at in range(base, base + (np.int64(width) << np.int64(tables[LG][g])), width):
                    if tables[CELLS][at + 1] != 0:
                        used += size_of(tables[CELLS][at + 2])
        ends[g + 1] = used


@kernel
def write_images(tables, arena, groups, width, lg_max, ends, out):
    """The images of the first `groups` groups into `out`, ending where `image_ends` says."""
    most = np.int64(0)
    for g in range(groups):
        most = max(most, tables[ACTIVE][g])
    keys = np.empty(most, np.int64)
    counts = np.empty(most, np.int64)
    mores = np.empty(most, np.int64)
    places = np.empty(most, np.int64)
    for g in range(groups):
        at = ends[g]
        n = tables[ACTIVE][g]
        empty = n == 0 and tables[WEIGHT][g] == 0
        lg = np.int64(MIN_LG)
        while capacity(lg) < n:
            lg += 1
        put_number(out, at, np.int64(1 if empty else 4), 1)
        put_number(out, at + 1, np.int64(1), 1)
        put_number(out, at + 2, np.int64(10), 1)
        put_number(out, at + 3, np.int64(lg_max), 1)
        put_number(out, at + 4, lg, 1)
        put_number(out, at + 5, np.int64(5 if empty else 0), 1)
        put_number(out, at + 6, np.int64(0 if empty else width), 2)
        if empty:
            continue
        put_number(out, at + 8, n, 8)
        put_number(out, at + 16, tables[WEIGHT][g], 8)
        put_number(out, at + 24, tables[OFFSET][g], 8)
        dense(tables, g, width, keys, counts, mores, places)
        at += PREAMBLE_BYTES
        for i in range(n):
            put_number(out, at + 8 * i, counts[i], 8)
        at += 8 * n
        for i in range(n):
            if width == LONG:
                put_number(out, at, keys[i], 8)
                at += 8
            else:
                put_number(out, at, size_of(mores[i]), 4)
                at += 4 + put_string(out, at + 4, keys[i], mores[i], places[i], arena)


@kernel
def _is_utf8(data, begin, end):
    """Whether the bytes are well-formed UTF-8 (Unicode 15, table 3-7)."""
    i = begin
    while i < end:
        lead = data[i]
        if lead < 0x80:
            i += 1
            continue
        if lead < 0xC2 or lead > 0xF4:
            return False
        more = 1 if lead < 0xE0 else (2 if lead < 0xF0 else 3)
        if i + more >= end:
            return False
        low = 0xA0 if lead == 0xE0 else (0x90 if lead == 0xF0 else 0x80)
        high = 0x9F if lead == 0xED else (0x8F if lead == 0xF4 else 0xBF)
        if data[i + 1] < low or data[i + 1] > high:
            return False
        for j in range(2, more + 1):
            if data[i + j] < 0x80 or data[i + j] > 0xBF:
                return False
        i += more + 1
    return True


@kernel
def _fault(data, begin, end, width):
    """What is wrong with an image, as an index of `FAULTS`; 0 for nothing."""
    if end - begin < EMPTY_BYTES:
        return 1
    words, lg_max, lg = data[begin] & 63, data[begin + 3], data[begin + 4]
    empty = (data[begin + 5] & 5) != 0
    if (words != 1 and words != 4) or data[begin + 1] != 1 or data[begin + 2] != 10:
        return 2
    if data[begin + 6] != 0 and data[begin + 6] != width:
        return 9
    if lg_max < MIN_LG or lg_max > MAX_LG or lg > lg_max:
        return 3
    if empty != (words == 1) or (empty and end - begin != EMPTY_BYTES):
        return 4
    if empty:
        return 0
    if end - begin < PREAMBLE_BYTES:
        return 1
    n = np.int64(load32(data, begin + 8))
    if n > capacity(lg_max):
        return 5
    items = begin + PREAMBLE_BYTES + 8 * n
    if items > end:
        return 1
    weight = np.int64(load64(data, begin + 16))
    offset = np.int64(load64(data, begin + 24))
    if weight <= 0 or offset < 0 or weight > _MOST - offset:
        return 6
    left = weight  # where rows were deleted, what is left may be less than the offset
    for i in range(n):
        count = np.int64(load64(data, begin + PREAMBLE_BYTES + 8 * i))
        if count <= 0 or count > left:
            return 6
        left -= count
    if width == LONG:
        return 0 if items + 8 * n == end else 7
    at = items
    for _ in range(n):
        if at + 4 > end:
            return 7
        size = np.int64(load32(data, at))
        if at + 4 + size > end:
            return 7
        if not _is_utf8(data, at + 4, at + 4 + size):
            return 8
        at += 4 + size
    return 0 if at == end else 7


@kernel
def check_images(data, ends, width):
    """The first image with a fault and its code; (0, 0) where there is none."""
    for row in range(len(ends) - 1):
        code = _fault(data, np.int64(ends[row]), np.int64(ends[row + 1]), width)
        if code != 0:
            return row, code
    return 0, 0


def kind_of(data: bytes) -> Literal["string", "long"] | None:
    """What an image says that it counts; None of one that another library wrote, or an empty one."""
    mark = data[6] if len(data) >= EMPTY_BYTES else 0
    return "long" if mark == LONG else ("string" if mark == STRING else None)


@kernel
def beyond_int64(tables, groups, data, ends):
    """Whether upper bounds of any group would leave int64 with these checked images."""
    most = tables[WEIGHT] + tables[OFFSET]
    for row in range(len(ends) - 1):
        begin = np.int64(ends[row])
        if (data[begin] & 63) != 1:
            more = np.int64(load64(data, begin + 16)) + np.int64(load64(data, begin + 24))
            if more > _MOST - most[groups[row]]:
                return True
            most[groups[row]] += more
    return False


@kernel
def merge_images(tables, arena, groups, data, ends, start, width, lg_max):
    """Fold checked images into their groups, from row `start` on; `arena` has room for all strings.

    All counters are taken in before a group is purged, so that two sketches give the same in either order.
    Returns the first row not taken, where the arena of cells must grow first.
    """
    cells, base, lgs, active, offset, weight, heap = tables
    for row in range(start, len(ends) - 1):
        begin = np.int64(ends[row])
        if (data[begin] & 63) == 1:
            continue
        g = groups[row]
        n = np.int64(load32(data, begin + 8))
        if not open_table(tables, g, n, width):
            return row
        counts = begin + PREAMBLE_BYTES
        at = counts + 8 * n
        for i in range(n):
            count = np.int64(load64(data, counts + 8 * i))
            if width == LONG:
                key = np.int64(load64(data, at))
                active[g] += insert_long(cells, base[g], lgs[g], key, count)
                at += 8
            else:
                size = np.int64(load32(data, at))
                key, more = words_of(data, at + 4, size)
                active[g] += insert_string(
                    cells, base[g], lgs[g], arena, heap, key, more, data, at + 4, count
                )
                at += 4 + size
        weight[g] += np.int64(load64(data, begin + 16))
        offset[g] += np.int64(load64(data, begin + 24))
        close_table(tables, g, width, lg_max)
    return len(ends) - 1
