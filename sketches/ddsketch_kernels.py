"""DDSketch's buckets of many sketches in one pool, and the kernels that count into them.

Sketch g owns a region of the pool (float64 counts): a count of zeros, a place where NaN are dropped, then the
window of buckets of positive and the window of negative values. Window s (0 positive, 1 negative) holds the
keys from ``low[g, s]`` on, ``length[g, s]`` of them, and grows to the keys it meets.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .jit import kernel

_BLOCK = 512
_SLACK = 8
_MAGNITUDE = np.int64(0x7FFFFFFFFFFFFFFF)
_MANTISSA = np.int64(0x000FFFFFFFFFFFFF)
_ONE = np.int64(0x3FF0000000000000)
_ROOT_TWO = np.int64(0x3FF6A09E667F3BCD)
_INFINITY = np.int64(0x7FF0000000000000)
_FAR = np.int64(1 << 40)
_TWO_OVER_LN2 = 2.0 / np.log(2.0)


class State(NamedTuple):
    """The pool, `used[0]`, the end of its last region, and a row for each sketch."""

    pool: np.ndarray
    used: np.ndarray
    start: np.ndarray
    low: np.ndarray
    length: np.ndarray


@kernel
def keys(block, multiplier, exponents, mantissas, out):  # type: ignore[no-untyped-def]
    """The key ⌈log_γ |x|⌉ of each value, int64; `multiplier` is 1 / log2 γ.

    log2 by the exponent and 2 atanh((m − 1) / (m + 1)) of a mantissa in [√½, √2): eight terms, 2e-14.
    An infinity has the exponent 1027, so that its key is no finite number's.
    """
    bits = block.view(np.int64)
    for i in range(len(block)):
        b = bits[i] & _MAGNITUDE
        m = (b & _MANTISSA) | _ONE
        over = np.int64(m > _ROOT_TWO)
        exponents[i] = (b >> 52) - 1023 + over + 3 * np.int64(b == _INFINITY)
        mantissas[i] = m - (over << 52)
    numbers = mantissas.view(np.float64)
    for i in range(len(block)):
        s = (numbers[i] - 1.0) / (numbers[i] + 1.0)
        t = s * s
        p = 1 / 13 + t * (1 / 15)
        p = 1 / 9 + t * (1 / 11 + t * p)
        p = 1 / 5 + t * (1 / 7 + t * p)
        p = 1.0 + t * (1 / 3 + t * p)
        out[i] = np.int64(np.ceil((exponents[i] + _TWO_OVER_LN2 * s * p) * multiplier))


@kernel
def widen(state, g, low, high):  # type: ignore[no-untyped-def]
    """Make the windows hold the keys ``low[s]`` … ``high[s]``, none where low > high.

    False, and nothing has changed, if the pool is too small.
    """
    lows, lengths = np.empty(2, np.int64), np.empty(2, np.int64)
    grows = False
    for s in range(2):
        first, end = state.low[g, s], state.low[g, s] + state.length[g, s]
        if low[s] <= high[s]:
            spare = _SLACK + (state.length[g, s] >> 2)
            if state.length[g, s] == 0:
                first, end, grows = low[s] - _SLACK, high[s] + 1 + _SLACK, True
            if low[s] < first:
                first, grows = low[s] - spare, True
            if high[s] >= end:
                end, grows = high[s] + 1 + spare, True
        lows[s], lengths[s] = first, end - first
    if not grows and state.start[g] >= 0:
        return True
    to = state.used[0]
    end = to + 2 + lengths[0] + lengths[1]
    if end > len(state.pool):
        return False
    state.pool[to:end] = 0.0
    if state.start[g] >= 0:
        source, target = state.start[g], to
        state.pool[target] = state.pool[source]
        for s in range(2):
            source += 2 if s == 0 else state.length[g, 0]
            target += 2 if s == 0 else lengths[0]
            for i in range(state.length[g, s]):
                state.pool[target + state.low[g, s] - lows[s] + i] = state.pool[source + i]
    state.start[g] = to
    state.used[0] = end
    for s in range(2):
        state.low[g, s], state.length[g, s] = lows[s], lengths[s]
    return True


@kernel
def _reach(bits, found, least):  # type: ignore[no-untyped-def]
    """The lowest and the highest key of the positive and of the negative values of a block."""
    low, high = np.full(2, _FAR), np.full(2, -_FAR)
    for i in range(len(bits)):
        magnitude = bits[i] & _MAGNITUDE
        if magnitude >= least and magnitude <= _INFINITY:
            s = 0 if bits[i] > 0 else 1
            low[s] = min(low[s], found[i])
            high[s] = max(high[s], found[i])
    return low, high


@kernel
def _place(state, g, bits, found, least, places):  # type: ignore[no-untyped-def]
    """Where in the pool each value is counted; gives whether any has no bucket yet, as 0 or 1."""
    zero, first, length = state.start[g], state.low[g, 0], state.length[g, 0]
    to_first, to_length = state.low[g, 1] - first, state.length[g, 1] - length
    begin = zero + 2
    missing = np.int64(0)
    for i in range(len(bits)):
        magnitude, negative = bits[i] & _MAGNITUDE, bits[i] >> 63  # all bits set, or none
        place = found[i] - first - (negative & to_first)
        counts = np.int64(magnitude >= least) & np.int64(magnitude <= _INFINITY)
        missing |= counts & (np.int64(place < 0) | np.int64(place >= length + (negative & to_length)))
        aside = zero + np.int64(magnitude > _INFINITY)
        places[i] = aside + -counts * (aside - begin - place - (negative & length))
    return missing


@kernel
def update_one(state, multiplier, least, g, values, at):  # type: ignore[no-untyped-def]
    """Count ``values[at:]`` in sketch `g`; gives the number of the first value that found no room.

    Magnitudes below `least` count as zero.
    """
    exponents, mantissas = np.empty(_BLOCK, np.int64), np.empty(_BLOCK, np.int64)
    found, places = np.empty(_BLOCK, np.int64), np.empty(_BLOCK, np.int64)
    for begin in range(at, len(values), _BLOCK):
        block = values[begin : begin + _BLOCK]
        bits = block.view(np.int64)
        keys(block, multiplier, exponents, mantissas[: len(block)], found)
        if state.start[g] < 0 or _place(state, g, bits, found, least, places):
            low, high = _reach(bits, found, least)
            if not widen(state, g, low, high):
                return begin
            _place(state, g, bits, found, least, places)
        for i in range(len(block)):
            state.pool[np.uint64(places[i])] += 1.0
        state.pool[state.start[g] + 1] = 0.0
    return len(values)


@kernel
def update_rows(state, multiplier, least, groups, values, at):  # type: ignore[no-untyped-def]
    """Count ``values[i]`` in sketch ``groups[i]`` from value `at` on; ends as `update_one` does."""
    for i in range(at, len(values)):
        if update_one(state, multiplier, least, groups[i], values[i : i + 1], 0) == 0:
            return i
    return len(values)


@kernel
def update_sorted(state, multiplier, least, ends, values, at):  # type: ignore[no-untyped-def]
    """Count values ordered by group: those of group g end at ``ends[g]``. Ends as `update_one` does."""
    begin = 0
    for g in range(len(ends)):
        first = begin if begin > at else at
        if ends[g] > first:
            done = update_one(state, multiplier, least, g, values[first : ends[g]], 0)
            if done < ends[g] - first:
                return first + done
        begin = ends[g]
    return len(values)


@kernel
def add(state, g, sign, first, counts, zeros, at):  # type: ignore[no-untyped-def]
    """Add counts of the keys from `first` on to window `sign`, and zeros; 0 if there was no room, else 1."""
    low, high = np.full(2, _FAR), np.full(2, -_FAR)
    if len(counts):
        low[sign], high[sign] = first, first + len(counts) - 1
    if not widen(state, g, low, high):
        return 0
    state.pool[state.start[g]] += zeros
    begin = state.start[g] + 2 + first - state.low[g, sign] + (state.length[g, 0] if sign else 0)
    for i in range(len(counts)):
        state.pool[begin + i] += counts[i]
    return 1


@kernel
def repack(state, pool):  # type: ignore[no-untyped-def]
    """Copy every sketch's region to the new pool, closing the gaps that growth left."""
    to = 0
    for g in range(len(state.start)):
        if state.start[g] >= 0:
            size = 2 + state.length[g, 0] + state.length[g, 1]
            pool[to : to + size] = state.pool[state.start[g] : state.start[g] + size]
            state.start[g] = to
            to += size
    state.used[0] = to
