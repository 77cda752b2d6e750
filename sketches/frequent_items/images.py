"""The bytes of frequent items sketches, as in DataSketches and Spark's `approx_top_k_accumulate`.

Little-endian; an empty sketch consists of only the first eight bytes::

    byte  0  preamble in 8-byte words: 1 if empty, else 4
          1  serial version, 1
          2  family, 10
          3  log2 of the largest map
          4  log2 of the current map
          5  flags: 5 (both of the two bits in use for it) if empty, else 0
          6  2 where items are longs, 4 for strings, 3 for doubles, 5 for bytes: a mark of ours, which no
             other library reads
          8  int32, counters; 4 unused bytes
         16  int64, sum of all weights
         24  int64, offset: what purges subtracted from every counter
         32  int64 a counter, then its items: int64, double, or int32 length and UTF-8 (`item_forms`)

Counters are written from the largest to the smallest, ties by the items' words, so that equal sketches have
equal bytes. DataSketches writes them in the order of its map, and reads any order.

Source: datasketches-java `frequencies.PreambleUtil`; datasketches-cpp `frequent_items_sketch::serialize`.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from ..core.compilation.jit import inner, lean
from ..core.hashing.words import load32, load64, store32, store64
from ..core.resume import DONE, NO_ROOM
from .ranking import ranked
from .store import LONG, NO_SCRATCH, can_purge, capacity, close_table, open_table
from .string_arena import put_text, size_of, words_of
from .update import insert

EMPTY_BYTES, PREAMBLE_BYTES = 8, 32
Kind = Literal["string", "long", "double", "binary"]
MARKS: dict[Kind, int] = {"long": 2, "string": 4, "double": 3, "binary": 5}
"""The mark of an image by the kind of its items."""
_KIND_OF_MARK = {mark: kind for kind, mark in MARKS.items()}
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
"""What is wrong with an image, by the code from `check_images`."""


@lean
def image_ends(tables, groups, ends):
    """Compute in ``ends[1:]`` where each group's image ends, if images are concatenated."""
    used, cells, width = np.int64(0), tables.cells, len(tables.cell)
    for g in range(groups):
        group = tables.groups[g]
        if group.active == 0 and group.weight == 0:
            used += EMPTY_BYTES
        else:
            used += PREAMBLE_BYTES + (12 if width > LONG else 16) * group.active
            if width > LONG and group.active > 0:
                for at in range(group.base, group.base + (width << group.lg), width):
                    if cells[at + 1] != 0:
                        used += size_of(cells[at + 2])
        ends[g + 1] = used


@lean
def write_images(tables, mark, heap, places, ends, out):
    """Write the images of the first groups to `out`, with the ends from `image_ends`.

    `heap` and `places` have room for as many numbers as any group has counters.
    """
    cells = tables.cells
    for g in range(len(ends) - 1):
        at, group = ends[g], tables.groups[g]
        n = group.active
        empty = n == 0 and group.weight == 0
        lg = np.int64(MIN_LG)
        while capacity(lg) < n:
            lg += 1
        out[at], out[at + 1], out[at + 2] = 1 if empty else 4, 1, 10
        out[at + 3], out[at + 4], out[at + 5] = tables.lg_max, lg, 5 if empty else 0
        out[at + 6], out[at + 7] = 0 if empty else mark, 0
        if empty:
            continue
        store64(out, at + 8, np.uint64(n))
        store64(out, at + 16, np.uint64(group.weight))
        store64(out, at + 24, np.uint64(group.offset))
        at += PREAMBLE_BYTES
        ranked(tables, g, n, heap, places)
        for i in range(n):
            store64(out, at + 8 * i, np.uint64(cells[places[i] + 1]))
        at += 8 * n
        for i in range(n):
            if len(tables.cell) == LONG:
                store64(out, at, np.uint64(cells[places[i]]))
                at += 8
            else:
                store32(out, at, np.uint32(size_of(cells[places[i] + 2])))
                at += 4 + put_text(out, at + 4, cells, places[i], tables.texts)


@inner
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


@inner
def _fault(data, begin, end, width, mark):
    """Return what is wrong with an image, as an index of `FAULTS`; 0 if it is valid."""
    if end - begin < EMPTY_BYTES:
        return 1
    words, lg_max, lg = data[begin] & 63, data[begin + 3], data[begin + 4]
    empty = (data[begin + 5] & 5) != 0
    if (words != 1 and words != 4) or data[begin + 1] != 1 or data[begin + 2] != 10:
        return 2
    if data[begin + 6] != 0 and data[begin + 6] != mark:
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
    left = weight  # after deletions, the remaining weight may be less than the offset
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


@lean
def check_images(data, ends, width, mark):
    """Return the first invalid image and its fault's code; (0, 0) if there is none."""
    for row in range(len(ends) - 1):
        code = _fault(data, ends[row], ends[row + 1], width, mark)
        if code != 0:
            return row, code
    return 0, 0


def kind_of(data: bytes) -> Kind | None:
    """Return the kind of items that an image records; None for another library's or an empty image."""
    return _KIND_OF_MARK.get(data[6]) if len(data) >= EMPTY_BYTES else None


@lean
def beyond_int64(most, groups, data, ends):
    """Whether a group's upper bounds, `most` so far, would exceed int64 with these checked images."""
    for row in range(len(ends) - 1):
        begin = ends[row]
        if (data[begin] & 63) != 1:
            more = np.int64(load64(data, begin + 16)) + np.int64(load64(data, begin + 24))
            if more > _MOST - most[groups[row]]:
                return True
            most[groups[row]] += more
    return False


@lean
def merge_images(tables, groups, data, ends, start):
    """Merge checked images into their groups, from row `start` on, as a step of `resume`.

    There is room for the bytes of all strings. All counters are added before a group is purged, so that two
    sketches give the same result in either order.
    """
    for row in range(start, len(ends) - 1):
        begin = ends[row]
        if (data[begin] & 63) == 1:
            continue
        g = groups[row]
        group = tables.groups[g]
        n = np.int64(load32(data, begin + 8))
        if group.active + n > capacity(tables.lg_max) and not can_purge(tables, group.active + n):
            return row, NO_SCRATCH
        if not open_table(tables, g, n):
            return row, NO_ROOM
        counts = begin + PREAMBLE_BYTES
        at = counts + 8 * n
        for i in range(n):
            count = np.int64(load64(data, counts + 8 * i))
            key, size = np.int64(load64(data, at)) if len(tables.cell) == LONG else np.int64(0), np.int64(8)
            more, text = key, at
            if len(tables.cell) > LONG:
                size, text = np.int64(load32(data, at)), at + 4
                key, more = words_of(data, text, size)
            group.active += insert(tables, group.base, group.lg, key, more, data, text, count)
            at = text + size
        group.weight += np.int64(load64(data, begin + 16))
        group.offset += np.int64(load64(data, begin + 24))
        close_table(tables, g)
    return len(ends) - 1, DONE
