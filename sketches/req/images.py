"""Write and validate the bytes of a REQ sketch of floats: the image of Apache DataSketches.

    byte 0         1          2           3      4  5   6       7
         preamble  serial     family 17   flags  k      levels  raw
         ints      version                                      items

2, 1, empty flag: nothing follows. 2, 1, raw flag: one to four float items follow. Otherwise the levels
follow, from the lowest on. If there are two or more, the first byte is 4, and n (uint64), the lowest and the
highest item come before them. A level is

    schedule (uint64), section size (float), level, sections, 2 unused, items (uint32), items (floats)

Flags: 4 empty, 8 accurate at high ranks, 16 raw items, 32 level 0 is sorted. Source: datasketches-java
`req.ReqSerDe`, datasketches-cpp `req_sketch`.
"""

from __future__ import annotations

import numpy as np

from ..core.compilation.jit import inner, lean
from ..core.resume import DONE
from ..core.sorting.sort import copy, sort
from .sections import FIRST_SECTIONS, MAX_K, MIN_K, doublings
from .update import MAX_N, Image, fold, restore, saved

MOST_LEVELS = 58
HEADER, LEVEL = 24, 20
"""The bytes before the levels of an image with several, and before the items of a level."""
_FAMILY = 17
_EMPTY, _HIGH, _RAW, _SORTED = 4, 8, 16, 32
_MOST_RAW = 4
SPARE = 64
"""Items after the last that a merging network reads; their values don't matter."""

FAULTS = (
    "",
    "fewer bytes than its header needs",
    "another version, family, flags or number of preamble ints",
    "k is out of range or odd",
    "an empty sketch followed by more",
    "raw items of another number than its length",
    "the number of levels is out of range",
    "it ends within a level",
    "a level was compacted, or not, against what lies above it",
    "a level has another weight, number of sections or section size than its k and compactions make",
    "an item is NaN, lies beyond the lowest and highest, or is out of order within its level",
    "its levels don't add up to n, or more bytes follow",
)
"""What is wrong with an image, by the number that `decode` returns."""


def new_image(items: int) -> Image:
    """Return room for an image of at most this many items; merging networks read a chunk beyond."""
    ends, schedule = np.zeros((2, MOST_LEVELS + 2), np.int64)
    return Image(np.zeros(items + SPARE, np.float32), ends, schedule, np.zeros(2, np.float32))


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
def _ordered(items, low, high, is_sorted):
    """Whether all items are within the range, and sorted if they must be; comparisons with NaN are false."""
    good = True
    for i in range(len(items)):
        good &= (low <= items[i]) & (items[i] <= high)
    if is_sorted:
        for i in range(1, len(items)):
            good &= items[i - 1] <= items[i]
    return good


@inner
def _find_edges(items, edges):
    """Find the lowest and the highest of at least one item."""
    edges[0] = edges[1] = items[0]
    for i in range(1, len(items)):
        edges[0], edges[1] = min(edges[0], items[i]), max(edges[1], items[i])


@inner
def _sizes_fit(raw, sizes, k, schedule, section, sections):
    """Whether a level's sections match its schedule. Java stops doubling a little before C++, and in a merged
    sketch either may be behind."""
    for done in range(doublings(sizes, k, schedule) + 1):
        if sections == FIRST_SECTIONS << done:
            return abs(section - raw[k >> 1, done]) <= np.float32(1e-4) * section
    return False


@inner
def decode(data, raw, sizes, image, numbers):
    """Decode bytes into an image; return the fault. `numbers` becomes (levels, k, n, high_ranks).

    The image has room for a quarter as many items as there are bytes.
    """
    size = len(data)
    image.ends[0] = 0
    if size < 8:
        return 1
    flags, k, depth, n_raw = np.int64(data[3]), _number(data, 4, 2), np.int64(data[6]), np.int64(data[7])
    if data[0] != (4 if depth > 1 else 2) or data[1] != 1 or data[2] != _FAMILY or flags & 3 or flags >> 6:
        return 2
    if k < MIN_K or k > MAX_K or k & 1:
        return 3
    numbers[0], numbers[1], numbers[2], numbers[3] = 0, k, 0, (flags & _HIGH) >> 3
    items, edges = image.items, image.edges
    if flags & _EMPTY:
        return 0 if size == 8 and depth == 0 and n_raw == 0 else 4
    if flags & _RAW:
        end = 8 + 4 * n_raw
        if depth != 1 or n_raw < 1 or n_raw > _MOST_RAW or size < end:
            return 5
        for place in range(end, size):  # the datasketches package leaves room after raw items
            if data[place]:
                return 5
        copy(data[8:end], items.view(np.uint8))
        _find_edges(items[:n_raw], edges)
        if not _ordered(items[:n_raw], edges[0], edges[1], flags & _SORTED):
            return 10
        image.ends[1], image.schedule[0] = n_raw, 0
        numbers[0], numbers[2] = 1, n_raw
        return 0
    if depth < 1 or depth > MOST_LEVELS or n_raw:
        return 6
    at, counted, weight = np.int64(8), np.int64(0), 0.0
    if depth > 1:
        if size < HEADER:
            return 1
        copy(data[16:24], edges.view(np.uint8))
        at = np.int64(HEADER)
    for h in range(depth):
        if size < at + LEVEL:
            return 7
        schedule, count = _number(data, at, 8), _number(data, at + 16, 4)
        first = image.ends[h]
        copy(data[at + 8 : at + 12], items[first : first + 1].view(np.uint8))
        section = items[first]
        if (schedule == 0) != (h == depth - 1) or schedule < 0:
            return 8
        if data[at + 12] != h or data[at + 14] or data[at + 15]:
            return 9
        if not _sizes_fit(raw, sizes, k, schedule, section, np.int64(data[at + 13])):
            return 9
        at += LEVEL
        if size < at + 4 * count:
            return 7
        own = items[first : first + count]
        copy(data[at : at + 4 * count], own.view(np.uint8))
        at += 4 * count
        if depth == 1:
            if count == 0:
                return 6
            _find_edges(own, edges)
        if not _ordered(own, edges[0], edges[1], h > 0 or flags & _SORTED):
            return 10
        image.ends[h + 1], image.schedule[h] = first + count, schedule
        counted += count << h
        weight += float(count) * 2.0**h
    if (
        at != size
        or weight > float(MAX_N)
        or counted > MAX_N
        or (depth > 1 and counted != _number(data, 8, 8))
    ):
        return 11
    numbers[0], numbers[2] = depth, counted
    if not flags & _SORTED:
        numbers[3] += 2
    return 0


@lean
def check(data, offsets, raw, sizes, image, numbers, high_ranks, at):
    """Return the first rejected image from `at` on, its fault (0: it is accurate at the other end), and the
    number of values of the images before it."""
    seen = 0.0
    for i in range(at, len(offsets) - 1):
        fault = decode(data[offsets[i] : offsets[i + 1]], raw, sizes, image, numbers)
        if fault or (numbers[3] & 1) != high_ranks:
            return i, fault, seen
        seen += numbers[2]
    return len(offsets) - 1, 0, seen


@lean
def merge(state, data, offsets, raw, sizes, image, numbers, groups, high_ranks, at):
    """Merge image i, from number `at` on, into sketch ``groups[i]``, as a step of `resume`. `check` has
    validated all images."""
    for i in range(at, len(groups)):
        decode(data[offsets[i] : offsets[i + 1]], raw, sizes, image, numbers)
        depth = numbers[0]
        if depth == 0:
            continue
        if numbers[3] & 2:
            sort(image.items[: image.ends[1]], state.scratch, np.float32(np.inf))
        why = fold(state, sizes, groups[i], high_ranks != 0, image, depth, numbers[1], numbers[2])
        if why != DONE:
            return i, why
    return len(groups), DONE


@inner
def find_edges(state, g, zero, edges):
    """Find the lowest and the highest value; level 0, sorted in `zero`, may hold newer extremes."""
    edges[0], edges[1] = state.low[g], state.high[g]
    if len(zero):
        edges[0], edges[1] = min(edges[0], zero[0]), max(edges[1], zero[-1])


@lean
def write(state, raw, sizes, high_ranks, offsets, out, edges, items, levels):
    """Write every sketch's image into the bytes `out`, and its end into `offsets`, after ``offsets[0]``.

    `edges` has room for three floats, `items` and `levels` are for `saved`.
    """
    for g in range(len(state.n)):
        compacted = saved(state, sizes, g, high_ranks, items, levels)
        at, n, depth = offsets[g], state.n[g], np.int64(state.depth[g])
        few = n <= _MOST_RAW
        out[at] = 4 if depth > 1 else 2
        out[at + 1], out[at + 2] = 1, _FAMILY
        flags = _SORTED | (_EMPTY if n == 0 else 0) | (_HIGH if high_ranks else 0) | (_RAW if few else 0)
        out[at + 3] = flags
        _put(out, at + 4, 2, np.int64(state.k[g]))
        out[at + 6] = depth if n else 0
        out[at + 7] = n if few else 0
        if n == 0:
            offsets[g + 1] = at + 8
            continue
        end = state.start[g] + state.retained[g]
        zero = state.scratch[: state.counts[g, 0]]
        copy(state.items[end - len(zero) : end], zero)
        sort(zero, state.scratch[len(zero) :], np.float32(np.inf))
        at += 8
        if depth > 1:
            find_edges(state, g, zero, edges)
            _put(out, at, 8, n)
            copy(edges[:2].view(np.uint8), out[at + 8 :])
            at += 16
        for h in range(depth):
            count = np.int64(state.counts[g, h])
            if not few:
                schedule, k = state.schedule[g, h], np.int64(state.k[g])
                done = np.int64(state.doubled[g, h])
                _put(out, at, 8, schedule)
                edges[2] = raw[k >> 1, done]
                copy(edges[2:3].view(np.uint8), out[at + 8 :])
                out[at + 12], out[at + 13] = h, FIRST_SECTIONS << done
                out[at + 14] = out[at + 15] = 0
                _put(out, at + 16, 4, count)
                at += LEVEL
            end -= count
            source = zero if h == 0 else state.items[end : end + count]
            copy(source.view(np.uint8), out[at:])
            at += 4 * count
        offsets[g + 1] = at
        if compacted:
            restore(state, g, items, levels)


@lean
def unpack(state, sizes, high_ranks, first, items, weights, ends, edges, old_items, levels):
    """Write the sorted items of sketches from `first` on, their weights, where each sketch's items end, and
    its
    lowest and highest value; other arguments are as for `write`."""
    top = np.float32(np.inf)
    at = np.int64(0)
    for i in range(len(ends)):
        g = first + i
        compacted = saved(state, sizes, g, high_ranks, old_items, levels)
        before = state.start[g] + state.retained[g]
        end = at + state.retained[g]
        to = at
        # Each level is merged into the lower ones from the end, which needs no other room.
        for h in range(state.depth[g]):
            count = np.int64(state.counts[g, h])
            before -= count
            level = state.scratch[:count]
            copy(state.items[before : before + count], level)
            if h == 0:
                sort(level, state.scratch[count:], top)
                find_edges(state, g, level, edges[i])
            a, b = to - 1, count - 1
            to += count
            place = to - 1
            while b >= 0:
                if a >= at and items[a] > level[b]:
                    items[place], weights[place] = items[a], weights[a]
                    a -= 1
                else:
                    items[place], weights[place] = level[b], np.int64(1) << h
                    b -= 1
                place -= 1
        at = end
        ends[i] = at
        if compacted:
            restore(state, g, old_items, levels)
