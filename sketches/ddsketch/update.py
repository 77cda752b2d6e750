"""DDSketch's buckets of many sketches in one pool, and the kernels that count into them.

Sketch g owns a region of the pool (float64 counts): a count of zeros, a place where NaN are dropped, then the
window of buckets of positive and the window of negative values. Window s (0 positive, 1 negative) holds the
keys from ``low[g, s]`` on, ``length[g, s]`` of them, and grows to the keys it meets.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..core.jit import kernel, lean
from .slots import look_up, work_out

BLOCK = 512
_SLACK = 8
_FAR = np.int64(1 << 40)


class State(NamedTuple):
    """The pool, `used[0]`, the end of its last region, and a row for each sketch."""

    pool: np.ndarray
    used: np.ndarray
    start: np.ndarray
    low: np.ndarray
    length: np.ndarray


@kernel
def widen(state, g, low, high):
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


@lean
def _reach(slots, found, low, high):
    """The lowest and the highest key of the positive and of the negative values of a block."""
    low[0] = low[1] = _FAR
    high[0] = high[1] = -_FAR
    for i in range(len(found)):
        s = np.int64(found[i] >= slots.spread)
        slot = found[i] - s * slots.spread
        if 0 < slot < slots.spread - 1:
            low[s] = min(low[s], slot + slots.first - 1)
            high[s] = max(high[s], slot + slots.first - 1)


@lean
def _place(state, slots, g, found, places):
    """Where in the region of sketch `g` each slot is counted; whether any has no bucket yet, as 0 or 1."""
    spread = np.int32(slots.spread)
    first = np.int32(state.low[g, 0] - slots.first + 1)
    length = np.int32(state.length[g, 0])
    to_first = np.int32(state.low[g, 1] - slots.first + 1) - first
    to_length = np.int32(state.length[g, 1]) - length
    missing = np.int32(0)
    for i in range(len(found)):
        negative = -np.int32(found[i] >= spread)  # all bits set, or none
        slot = found[i] - (negative & spread)
        place = slot - first - (negative & to_first)
        counts = np.int32(slot > 0) & np.int32(slot < spread - 1)
        missing |= counts & (np.int32(place < 0) | np.int32(place >= length + (negative & to_length)))
        aside = np.int32(slot > 0)
        places[i] = aside + counts * (2 + place + (negative & length) - aside)
    return missing


@kernel
def _find(slots, block, found):
    if len(slots.ends):
        look_up(block.view(np.uint64), slots.shift, slots.ends, slots.bases, found)
    else:
        work_out(block, slots, found)


@kernel
def _update(state, slots, g, values, at, found, places):
    for begin in range(at, len(values), BLOCK):
        block = values[begin : begin + BLOCK]
        slot, place = found[: len(block)], places[: len(block)]
        _find(slots, block, slot)
        if state.start[g] < 0 or _place(state, slots, g, slot, place):
            low, high = np.empty(2, np.int64), np.empty(2, np.int64)
            _reach(slots, slot, low, high)
            if not widen(state, g, low, high):
                return begin
            _place(state, slots, g, slot, place)
        region = state.pool[state.start[g] :]
        for i in range(len(block)):
            region[np.uint64(place[i])] += 1.0
        region[1] = 0.0
    return len(values)


@kernel
def update_one(state, slots, g, values, at):
    """Count ``values[at:]`` in sketch `g`; gives the number of the first value that found no room."""
    found, places = np.empty(BLOCK, np.int32), np.empty(BLOCK, np.int32)
    return _update(state, slots, g, values, at, found, places)


@kernel
def update_rows(state, slots, groups, values, at):
    """Count ``values[i]`` in sketch ``groups[i]`` from value `at` on; ends as `update_one` does."""
    found, places = np.empty(BLOCK, np.int32), np.empty(BLOCK, np.int32)
    for i in range(at, len(values)):
        if _update(state, slots, groups[i], values[i : i + 1], 0, found, places) == 0:
            return i
    return len(values)


@kernel
def update_sorted(state, slots, ends, values, at):
    """Count values ordered by group: those of group g end at ``ends[g]``. Ends as `update_one` does."""
    found, places = np.empty(BLOCK, np.int32), np.empty(BLOCK, np.int32)
    begin = 0
    for g in range(len(ends)):
        first = begin if begin > at else at
        if ends[g] > first:
            done = _update(state, slots, g, values[first : ends[g]], 0, found, places)
            if done < ends[g] - first:
                return first + done
        begin = ends[g]
    return len(values)


@kernel
def add(state, g, sign, first, counts, zeros, at):
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
def repack(state, pool):
    """Copy every sketch's region to the new pool, closing the gaps that growth left."""
    to = 0
    for g in range(len(state.start)):
        if state.start[g] >= 0:
            size = 2 + state.length[g, 0] + state.length[g, 1]
            pool[to : to + size] = state.pool[state.start[g] : state.start[g] + size]
            state.start[g] = to
            to += size
    state.used[0] = to
