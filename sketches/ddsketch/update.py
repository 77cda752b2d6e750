"""The buckets of many DDSketches in one pool, and the kernels that count into them.

Sketch g owns a region of the pool (float64 counts): a count of zeros, a place that absorbs NaN, then the
windows of buckets for positive and for negative values. Window s (0 positive, 1 negative) holds
``length[g, s]`` keys from ``low[g, s]`` on, and grows with new keys.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..core.compilation.jit import inner, lean
from ..core.groups.arena import allocate
from ..core.resume import DONE, NO_ROOM
from .slots import look_up

_BLOCK = 512
_SLACK = 8
FAR = np.int64(1 << 40)
"""Larger than all keys; as lowest key, it means no key at all."""


class State(NamedTuple):
    """The pool, `extent` words of which are in use, and a row for each sketch; start −1 means no region."""

    pool: np.ndarray
    extent: np.ndarray
    start: np.ndarray
    low: np.ndarray
    length: np.ndarray


class Work(NamedTuple):
    """Scratch for a block of values: slots, places in a region, and their range of keys; for an image the
    place
    of its windows' counts, their numbers and first keys."""

    slots: np.ndarray
    places: np.ndarray
    low: np.ndarray
    high: np.ndarray
    windows: np.ndarray


def new_work() -> Work:
    """Return scratch for one caller."""
    slots, places = np.empty((2, _BLOCK), np.int32)
    low, high = np.empty((2, 2), np.int64)
    return Work(slots, places, low, high, windows=np.empty((2, 3), np.int64))


@inner
def _widened(state, g, s, low, high):
    """Return the first key and length of window `s` extended to the keys low … high, and whether it grows."""
    first, length = state.low[g, s], state.length[g, s]
    if low > high:
        return first, length, False
    if length == 0:
        return low - _SLACK, high + 1 + _SLACK - (low - _SLACK), True
    spare, end, grows = _SLACK + (length >> 2), first + length, False
    if low < first:
        first, grows = low - spare, True
    if high >= end:
        end, grows = high + 1 + spare, True
    return first, end - first, grows


@inner
def widen(state, g, low, high):
    """Extend the windows to the keys ``low[s]`` … ``high[s]``, if low ≤ high.

    Returns False, with nothing changed, if the pool is too small.
    """
    first, length, grows = _widened(state, g, 0, low[0], high[0])
    other_first, other_length, other_grows = _widened(state, g, 1, low[1], high[1])
    old = state.start[g]
    if not grows and not other_grows and old >= 0:
        return True
    to = allocate(state.extent, 2 + length + other_length, len(state.pool))
    if to < 0:
        return False
    region = state.pool[to : to + 2 + length + other_length]
    region[:] = 0.0
    if old >= 0:
        own, others = state.length[g, 0], state.length[g, 1]
        region[0] = state.pool[old]
        for i in range(own):
            region[2 + state.low[g, 0] - first + i] = state.pool[old + 2 + i]
        for i in range(others):
            region[2 + length + state.low[g, 1] - other_first + i] = state.pool[old + 2 + own + i]
    state.start[g] = to
    state.low[g, 0], state.length[g, 0] = first, length
    state.low[g, 1], state.length[g, 1] = other_first, other_length
    return True


@inner
def _reach(slots, slots_of, low, high):
    """Find the lowest and the highest key of a block's positive and negative values."""
    low[0] = low[1] = FAR
    high[0] = high[1] = -FAR
    for i in range(len(slots_of)):
        s = np.int64(slots_of[i] >= slots.spread)
        slot = slots_of[i] - s * slots.spread
        if 0 < slot < slots.spread - 1:
            low[s] = min(low[s], slot + slots.first - 1)
            high[s] = max(high[s], slot + slots.first - 1)


@inner
def _place(state, slots, g, slots_of, places):
    """Find each slot's place in the region of sketch `g`; return 1 if any has no bucket yet, else 0."""
    spread = np.int32(slots.spread)
    first = np.int32(state.low[g, 0] - slots.first + 1)
    length = np.int32(state.length[g, 0])
    to_first = np.int32(state.low[g, 1] - slots.first + 1) - first
    to_length = np.int32(state.length[g, 1]) - length
    missing = np.int32(0)
    for i in range(len(slots_of)):
        # Place 0 for zeros, 1 for NaN, else 2 + the key's place in the windows, computed without
        # branches, which would be unpredictable.
        negative = -np.int32(slots_of[i] >= spread)  # all bits set, or none
        slot = slots_of[i] - (negative & spread)
        place = slot - first - (negative & to_first)
        counts = np.int32(slot > 0) & np.int32(slot < spread - 1)
        missing |= counts & (np.int32(place < 0) | np.int32(place >= length + (negative & to_length)))
        aside = np.int32(slot > 0)
        places[i] = aside + counts * (2 + place + (negative & length) - aside)
    return missing


@inner
def _count(state, slots, g, values, weights, given, work):
    """Count a block, each value once if there are no weights.

    Returns False, with nothing changed, if the pool is too small."""
    slots_of, places = work.slots[: len(values)], work.places[: len(values)]
    if len(given):
        for i in range(len(values)):
            slots_of[i] = given[i]
    else:
        look_up(values.view(np.uint64), slots.shift, slots.ends, slots.bases, slots_of)
    if state.start[g] < 0 or _place(state, slots, g, slots_of, places):
        _reach(slots, slots_of, work.low, work.high)
        if not widen(state, g, work.low, work.high):
            return False
        _place(state, slots, g, slots_of, places)
    # All places exist by now, so a block is counted completely or not at all.
    region = state.pool[state.start[g] :]
    for i in range(len(weights)):
        region[np.uint64(places[i])] += weights[i]
    for i in range(len(weights), len(values)):
        region[np.uint64(places[i])] += 1.0
    region[1] = 0.0
    return True


@lean
def update(state, slots, groups, ends, values, weights, given, work, at):
    """Count runs of values from number `at` on, as a step of `resume`, with weights if there are any.

    Run r, up to ``ends[r]``, belongs to sketch ``groups[r]``. `given` has the slot of each value if there is
    no table to look it up, and is empty otherwise.
    """
    begin = np.int64(at)
    for r in range(len(ends)):
        while begin < ends[r]:
            end = min(begin + _BLOCK, ends[r])
            own = given[begin:end] if len(given) else given
            block = weights[begin:end] if len(weights) else weights
            if not _count(state, slots, groups[r], values[begin:end], block, own, work):
                return begin, NO_ROOM
            begin = end
    return begin, DONE


@lean
def count_all(state, seen, whole):
    """Count each sketch's values, and test whether all of its counts are whole numbers."""
    for g in range(len(seen)):
        seen[g], whole[g] = 0.0, True
        start = state.start[g]
        if start >= 0:
            seen[g], whole[g] = state.pool[start], state.pool[start] == np.floor(state.pool[start])
            for i in range(start + 2, start + 2 + state.length[g, 0] + state.length[g, 1]):
                seen[g] += state.pool[i]
                whole[g] &= state.pool[i] == np.floor(state.pool[i])


@lean
def add(state, g, sign, first, counts, zeros, work):
    """Add counts of the keys from `first` on to window `sign`, and zeros; a step of `resume`."""
    low, high = work.low, work.high
    low[0] = low[1] = FAR
    high[0] = high[1] = -FAR
    if len(counts):
        low[sign], high[sign] = first, first + len(counts) - 1
    if not widen(state, g, low, high):
        return 0, NO_ROOM
    state.pool[state.start[g]] += zeros
    begin = state.start[g] + 2 + first - state.low[g, sign] + (state.length[g, 0] if sign else 0)
    for i in range(len(counts)):
        state.pool[begin + i] += counts[i]
    return 1, DONE
