"""Write and read the protobufs of many DDSketches, in the plain layout that nearly all of them have.

    0a 09 09 <gamma: 8 bytes>                      mapping
    12 <size> [12 <bytes> <counts> [18 <first>]]   positive values: consecutive keys from `first` on
    1a <size> [12 <bytes> <counts> [18 <first>]]   negative values
    [21 <zeros: 8 bytes>]

Sizes are varints, `first` is a zigzag varint, omitted if 0; counts are little-endian doubles. The protobuf
library writes such a sketch this way; any other layout is read by that library (`read_image`).
"""

from __future__ import annotations

import numpy as np

from ..core.compilation.jit import inner, lean
from ..core.hashing.words import load64, store64
from ..core.resume import DONE, NO_ROOM
from .update import FAR, widen

MOST = 2.0**62
"""A sketch must count fewer values than this."""
GAMMA_ERROR = 2e-15
"""The relative difference of γ when it is computed in another way from the same accuracy."""


@inner
def _varint_size(x):
    size = 1
    while x >= 128:
        x >>= 7
        size += 1
    return size


@inner
def _put_varint(data, at, x):
    while x >= 128:
        data[at] = (x & 127) | 128
        x >>= 7
        at += 1
    data[at] = x
    return at + 1


@inner
def _get_varint(data, at, end):
    """Return (end, value) of a varint; end is −1 if it doesn't end before `end`, or exceeds 35 bits."""
    value = np.int64(0)
    for i in range(5):
        if at + i >= end:
            break
        byte = np.int64(data[at + i])
        value |= (byte & 127) << (7 * i)
        if byte < 128:
            return at + i + 1, value
    return np.int64(-1), np.int64(0)


@inner
def _window_size(count, first):
    if count == 0:
        return np.int64(0)
    size = 1 + _varint_size(8 * count) + 8 * count
    return size if first == 0 else size + 1 + _varint_size((first << 1) ^ (first >> 63))


@lean
def measure(state, spans, sizes):
    """Find for each sketch and sign the place of its counts in the pool, their number and first key; compute
    sizes.

    Empty ends of windows are omitted.
    """
    for g in range(len(sizes)):
        sizes[g] = 11
        start = state.start[g]
        for s in range(2):
            begin, end = np.int64(0), np.int64(0)
            if start >= 0:
                begin = start + 2 + (state.length[g, 0] if s else 0)
                end = begin + state.length[g, s]
            window = begin
            while begin < end and state.pool[begin] == 0.0:
                begin += 1
            while begin < end and state.pool[end - 1] == 0.0:
                end -= 1
            first = state.low[g, s] + begin - window
            spans[g, s, 0], spans[g, s, 1], spans[g, s, 2] = begin, end - begin, first
            size = _window_size(end - begin, first)
            sizes[g] += 1 + _varint_size(size) + size
        if start >= 0 and state.pool[start] != 0.0:
            sizes[g] += 9


@lean
def write(state, gamma_bits, spans, offsets, data):
    """Write each sketch's protobuf from ``offsets[g]`` on, with the sizes from `measure`."""
    bits = state.pool.view(np.uint64)
    for g in range(len(offsets) - 1):
        at = offsets[g]
        data[at], data[at + 1], data[at + 2] = 0x0A, 9, 9
        store64(data, at + 3, gamma_bits)
        at += 11
        for s in range(2):
            begin, count, first = spans[g, s, 0], spans[g, s, 1], spans[g, s, 2]
            data[at] = 0x1A if s else 0x12
            at = _put_varint(data, at + 1, _window_size(count, first))
            if count:
                data[at] = 0x12
                at = _put_varint(data, at + 1, 8 * count)
                for i in range(begin, begin + count):
                    store64(data, at, bits[i])
                    at += 8
                if first:
                    data[at] = 0x18
                    at = _put_varint(data, at + 1, (first << 1) ^ (first >> 63))
        start = state.start[g]
        if start >= 0 and state.pool[start] != 0.0:
            data[at] = 0x21
            store64(data, at + 1, bits[start])


@inner
def _window(data, at, end, tag, bits, filled, n_buckets):
    """Read one window's counts into `bits` from `filled` on; return where it ends, −1 if it isn't plain.

    `n_buckets` gets the place of its counts in `bits`, their number, and the first key.
    """
    n_buckets[0], n_buckets[1], n_buckets[2] = filled, 0, 0
    if at >= end or data[at] != tag:
        return np.int64(-1)
    at, size = _get_varint(data, at + 1, end)
    if at < 0 or at + size > end:
        return np.int64(-1)
    stop = at + size
    if size == 0:
        return stop
    if data[at] != 0x12:
        return np.int64(-1)
    at, size = _get_varint(data, at + 1, stop)
    if at < 0 or size % 8 or at + size > stop:
        return np.int64(-1)
    for i in range(size // 8):
        bits[filled + i] = load64(data, at + 8 * i)
    n_buckets[1] = size // 8
    at += size
    if at < stop:
        if data[at] != 0x18:
            return np.int64(-1)
        at, first = _get_varint(data, at + 1, stop)
        if at != stop or first >= 1 << 32:
            return np.int64(-1)
        n_buckets[2] = (first >> 1) ^ -(first & 1)
    return stop


@inner
def _plain(gamma, data, here, end, bits, counts, windows):
    """Read a protobuf in the plain layout: the count of zeros into ``bits[0]``, the other counts after it.

    `windows` gets the place of each sign's counts, their number, and the first key, without empty ends.
    Returns whether it is plain and has this γ; the counts themselves are not checked.
    """
    if end - here < 11 or data[here] != 0x0A or data[here + 1] != 9 or data[here + 2] != 9:
        return False
    bits[0] = load64(data, here + 3)
    if not abs(counts[0] - gamma) <= GAMMA_ERROR * gamma:
        return False
    here = _window(data, here + 11, end, 0x12, bits, 1, windows[0])
    if here >= 0:
        here = _window(data, here, end, 0x1A, bits, 1 + windows[0, 1], windows[1])
    if here < 0 or (here < end and (end - here != 9 or data[here] != 0x21)):
        return False
    bits[0] = load64(data, here + 1) if here < end else np.uint64(0)
    for s in range(2):
        while windows[s, 1] and counts[windows[s, 0]] == 0.0:
            windows[s, 0] += 1
            windows[s, 1] -= 1
            windows[s, 2] += 1
        while windows[s, 1] and counts[windows[s, 0] + windows[s, 1] - 1] == 0.0:
            windows[s, 1] -= 1
    return True


@lean
def check(gamma, infinite, data, offsets, bits, work, seen, at):
    """Return the first protobuf from `at` on that `merge` can't handle: it is not `_plain`, or a count or a
    key
    is out of range. `bits` (uint64) has room for the counts of any; ``seen[i]`` gets an upper limit of the
    number of values in protobuf i."""
    counts, windows = bits.view(np.float64), work.windows
    for i in range(at, len(offsets) - 1):
        if not _plain(gamma, data, offsets[i], offsets[i + 1], bits, counts, windows):
            return i
        # Without a branch, so that LLVM compares several at once; NaN is not `>= 0`.
        n, good, most = max(1, windows[0, 0] + windows[0, 1], windows[1, 0] + windows[1, 1]), True, 0.0
        for j in range(n):
            good &= counts[j] >= 0.0
            most = max(most, counts[j])
        # A sum of n counts is at most n times the largest; `read_image` adds up counts that may reach 2^62.
        if not good or not most * n < MOST:
            return i
        seen[i] = most * n
        for s in range(2):
            first, length = windows[s, 2], windows[s, 1]
            if length and (first < -infinite or first + length - 1 > infinite):
                return i
    return len(offsets) - 1


@lean
def merge(state, gamma, data, offsets, groups, end, bits, work, at):
    """Add the counts of protobuf i, from ``offsets[i]`` on, to sketch ``groups[i]``, from `at` up to `end`.

    A step of `resume`. `check` has validated all protobufs.
    """
    counts = bits.view(np.float64)
    windows, low, high = work.windows, work.low, work.high
    for i in range(at, end):
        _plain(gamma, data, offsets[i], offsets[i + 1], bits, counts, windows)
        for s in range(2):
            low[s], high[s] = FAR, -FAR
            if windows[s, 1]:
                low[s], high[s] = windows[s, 2], windows[s, 2] + windows[s, 1] - 1
        g = groups[i]
        if not widen(state, g, low, high):
            return i, NO_ROOM
        state.pool[state.start[g]] += counts[0]
        for s in range(2):
            to = state.start[g] + 2 + windows[s, 2] - state.low[g, s] + (state.length[g, 0] if s else 0)
            for j in range(windows[s, 1]):
                state.pool[to + j] += counts[windows[s, 0] + j]
    return end, DONE
