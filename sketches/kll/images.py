"""Write and validate the bytes of a KLL sketch: the compact image of Apache DataSketches.

    byte 0         1          2           3      4  5   6  7
         preamble  serial     family 15   flags  k      8  unused
         ints      version
    2, 1, empty flag: nothing follows.  2, 2: byte 8 holds the only item.  5, 1, or 5, 3 with its free space:

    byte 8 … 15   16 17   18     19      20 …
         n        min k   depth  unused  levels (int32 × depth), lowest item, highest item, items

A level is given by its first item's index in an array of the full capacity, whose free part is omitted. Items
are 8-byte doubles, 4-byte floats or 8-byte signed longs (as in Spark's `kll_sketch_agg_bigint`); the image
doesn't record which. Source: datasketches-java `kll.KllPreambleUtil`, `kll.KllMemoryValidate`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..core.compilation.jit import inner, kernel, lean
from ..core.sorting.sort import copy, sort
from .compaction import MAX_N, fitted
from .levels import MAX_DEPTH, MIN_ITEMS, MIN_K

HEADER = 20
"""Bytes before the levels of an image with more than one item."""
_FAMILY = 15
_EMPTY, _SINGLE = 1, 4

FAULTS = (
    "",
    "fewer bytes than its header needs",
    "the header belongs to no KLL sketch (preamble, serial version, family or smallest level)",
    "k or min k is out of range",
    "the empty flag contradicts the rest of the header",
    "n is out of range",
    "the number of levels is out of range",
    "the levels overlap, leave the sketch's capacity, or don't add up to n",
    "the length isn't what its levels need; were its items of another kind (double, float, long)?",
    "an item is NaN, lies outside the lowest and highest item, or is out of order within its level",
)
"""What is wrong with an image, by the number that `header` or `body` returns."""


class Read(NamedTuple):
    """A decoded image: its levels' bounds (from 0), its items, and its lowest and highest item."""

    levels: np.ndarray
    items: np.ndarray
    edges: np.ndarray
    width: int


def new_read(dtype: Any, items: int) -> Read:
    """Return room for an image with at most this many items."""
    return Read(np.zeros(MAX_DEPTH + 2, np.int64), np.empty(items, dtype), np.empty(2, dtype), dtype.itemsize)


@inner
def _number(data, at, width):
    word = np.uint64(0)
    for b in range(width):
        word |= np.uint64(data[at + b]) << np.uint64(8 * b)
    return np.int64(word)


@inner
def _put(data, at, width, number):
    word = np.uint64(number)
    for b in range(width):
        data[at + b] = np.uint8((word >> np.uint64(8 * b)) & np.uint64(255))


@inner
def _kept(state, g):
    """Return the number of items in the sampler."""
    count = 0
    for j in range(state.grain[g]):
        count += (state.n[g] >> j) & 1
    return count


@inner
def _fitted_size(state, total, g):
    """Return the numbers of items and levels that a group has after `fitted`."""
    depth, own_depth = np.int64(state.depth[g]), np.int64(state.depth[g])
    retained, carried, level = np.int64(state.room[g] - state.levels[g, 0]), np.int64(0), np.int64(0)
    while retained > total[depth]:
        held = carried
        if level < own_depth:
            held += np.int64(state.levels[g, level + 1] - state.levels[g, level])
        if level == depth - 1:
            depth += 1
        carried = held >> 1
        retained -= carried
        level += 1
    return retained, depth


@kernel
def image_offsets(state, total, width):
    """Return the offsets of all groups' images, int64, for items of `width` bytes."""
    offsets = np.zeros(len(state.n) + 1, np.int64)
    for g in range(len(state.n)):
        retained, depth = _fitted_size(state, total, g)
        retained, depth = retained + _kept(state, g), depth + state.grain[g]
        size = HEADER + 4 * depth + (retained + 2) * width
        if state.n[g] < 2:
            size = 8 + state.n[g] * width
        offsets[g + 1] = offsets[g] + size
    return offsets


@kernel
def write_images(state, total, k, offsets, out, edges):
    """Write every group's image into the bytes `out`; `edges` (two items) is scratch."""
    width = state.items.itemsize
    most = np.int64(0)
    for g in range(len(state.n)):
        most = max(most, np.int64(state.room[g]))
    items, levels = np.empty(most, edges.dtype), np.empty(state.levels.shape[1] + 1, np.int32)
    coin = np.empty(1, np.uint64)
    for g in range(len(state.n)):
        at = offsets[g]
        n, grain = state.n[g], np.int64(state.grain[g])
        out[at] = 5 if n > 1 else 2
        out[at + 1] = 2 if n == 1 else 1
        out[at + 2] = _FAMILY
        out[at + 3] = _EMPTY if n == 0 else (_SINGLE if n == 1 else 0)
        _put(out, at + 4, 2, k)
        out[at + 6] = MIN_ITEMS
        out[at + 7] = 0
        if n == 0:
            continue
        depth = grain + fitted(state, total, g, items, levels, coin)
        room, first = np.int64(state.room[g]), np.int64(levels[0])
        region = items[:room]
        if n == 1:
            out[at + 8 : at + 8 + width] = region[first:].view(np.uint8)
            continue
        _put(out, at + 8, 8, n)
        _put(out, at + 16, 2, state.min_k[g])
        out[at + 18] = depth
        out[at + 19] = 0
        bound = total[depth] - (room - first) - _kept(state, g)
        at += HEADER
        to = at + 4 * depth
        edges[0], edges[1] = state.low[g], state.high[g]
        out[to : to + 2 * width] = edges.view(np.uint8)
        to += 2 * width
        for h in range(grain):
            _put(out, at + 4 * h, 4, bound)
            if (n >> h) & 1:
                out[to : to + width] = region[h : h + 1].view(np.uint8)
                to += width
                bound += 1
        for h in range(depth - grain):
            _put(out, at + 4 * (grain + h), 4, levels[h] - first + bound)
        if grain:
            upper = np.int64(levels[1])
            bottom = region[first:upper].copy()
            sort(bottom, state.scratch, state.high[g])
            out[to : to + (upper - first) * width] = bottom.view(np.uint8)
            to += (upper - first) * width
            first = upper
        out[to : to + (room - first) * width] = region[first:].view(np.uint8)


@inner
def header(data, width):
    """Return (fault, k, n, min k, depth, updatable) of an image, without checking levels and items."""
    size = len(data)
    if size < 8:
        return 1, 0, 0, 0, 0, False
    ints, version, flags = data[0], data[1], data[3]
    k = _number(data, 4, 2)
    compact = (ints == 2 and (version == 1 or version == 2)) or (ints == 5 and version == 1)
    if not (compact or (ints == 5 and version == 3)) or data[2] != _FAMILY or data[6] != MIN_ITEMS:
        return 2, 0, 0, 0, 0, False
    if k < MIN_K:
        return 3, 0, 0, 0, 0, False
    empty = (flags & _EMPTY) != 0
    if empty != (ints == 2 and version == 1) and not (empty and version == 3):
        return 4, 0, 0, 0, 0, False
    if ints == 2:
        n = 0 if empty else 1
        if size != 8 + n * width:
            return 8, 0, 0, 0, 0, False
        return 0, k, n, k, 1, False
    if size < HEADER:
        return 1, 0, 0, 0, 0, False
    n, min_k, depth = _number(data, 8, 8), _number(data, 16, 2), np.int64(data[18])
    if min_k < MIN_K or min_k > k:
        return 3, 0, 0, 0, 0, False
    if n < 0 or n > MAX_N or (n == 0) != empty:
        return 5, 0, 0, 0, 0, False
    if depth < 1 or depth > MAX_DEPTH:
        return 6, 0, 0, 0, 0, False
    return 0, k, n, min_k, depth, version == 3


@inner
def body(data, n, depth, updatable, capacity, read):
    """Decode a non-empty image; return the fault of its layout. `capacity` is the capacity of a sketch of its
    k and depth, and `read` must have room for as many items. `ordered` checks the order of the items."""
    width, levels, items, edges = read.width, read.levels, read.items, read.edges
    size = len(data)
    if size == 8 + width and n == 1 and data[0] == 2:
        copy(data[8:], items[:1].view(np.uint8))
        edges[0] = edges[1] = items[0]
        levels[0], levels[1] = 0, 1
        return 0
    at = HEADER + 4 * (depth + (1 if updatable else 0))
    if size < at + 2 * width:
        return 1
    first = _number(data, HEADER, 4)
    levels[0] = 0
    weight = 0.0
    count = np.int64(0)
    for h in range(depth):
        begin = _number(data, HEADER + 4 * h, 4)
        end = _number(data, HEADER + 4 * h + 4, 4) if h + 1 < depth or updatable else capacity
        if begin < first or end < begin or end > capacity:
            return 7
        levels[h + 1] = end - first
        weight += float(end - begin) * 2.0**h
        count += (end - begin) << h
    if (updatable and levels[depth] != capacity - first) or weight > float(MAX_N) or count != n:
        return 7
    retained = levels[depth]
    free = first if updatable else 0
    if size != at + (2 + free + retained) * width:
        return 8
    copy(data[at : at + 2 * width], edges.view(np.uint8))
    at += (2 + free) * width
    copy(data[at : at + retained * width], items[:retained].view(np.uint8))
    return 0


@inner
def ordered(read, depth):
    """Whether the items that `body` read are within their extremes, sorted above level 0, and not NaN.

    Every comparison with NaN is false, so the first loop finds it. The loops have no branches or level
    bounds, so that LLVM vectorises them; a valid image, as nearly all are, is read to its end anyway.
    """
    levels, low, high = read.levels, read.edges[0], read.edges[1]
    faults = np.int64(not low <= high)
    items = read.items[: levels[depth]]
    for i in range(len(items)):
        faults += 1 - np.int64((low <= items[i]) & (items[i] <= high))
    upper = items[levels[1] :]
    for i in range(1, len(upper)):
        faults += upper[i] < upper[i - 1]
    for h in range(2, depth):  # items may descend where a level begins
        begin = levels[h]
        if levels[h - 1] < begin < levels[depth]:
            faults -= items[begin] < items[begin - 1]
    return faults == 0


@lean
def read_header(data, width):
    """Call `header` from Python."""
    return header(data, width)


@lean
def read_body(data, n, depth, updatable, capacity, read):
    """Call `body` and `ordered` from Python."""
    fault = body(data, n, depth, updatable, capacity, read)
    return 9 if fault == 0 and not ordered(read, depth) else fault
