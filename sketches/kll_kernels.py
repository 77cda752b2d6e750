"""KLL's arrays and the kernels that fill and compact them.

All sketches of one k and one item type lie side by side. Group g owns
``items[start[g] : start[g] + room[g]]``; inside that region level h lies from ``levels[g, h]`` to
``levels[g, h + 1]``, weight 2^h an item, packed to the region's end, so that level 0 fills downwards into the
free space. Regions start at 4 items, double until they hold what k allows, and move within the pool when they
grow; the caller repacks the pool.

Level by level and coin by coin this is datasketches-java's `kll` package: the coin is `java.util.Random`'s,
so that the same seed and the same values give the same bytes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .jit import inlined, kernel

DONE, POOL_FULL, MORE_LEVELS, TOO_MANY = 0, 1, 2, 3
"""How a kernel ended: all is done; the pool needs room; `levels` needs columns; n would leave its range."""

MAX_N = 1 << 62
_FIRST_ROOM = 4
_MASK_48 = np.uint64((1 << 48) - 1)


class State(NamedTuple):
    """Arrays of all groups; `used[0]` is the end of the pool's last region. `levels` is int32, depth wide."""

    items: np.ndarray
    used: np.ndarray
    start: np.ndarray
    room: np.ndarray
    levels: np.ndarray
    depth: np.ndarray
    n: np.ndarray
    low: np.ndarray
    high: np.ndarray
    min_k: np.ndarray
    coin: np.ndarray


@inlined
def toss(state, g):  # type: ignore[no-untyped-def]
    """One fair bit: what `java.util.Random.nextInt(2)` gives after `setSeed`."""
    coin = (state.coin[g] * np.uint64(0x5DEECE66D) + np.uint64(0xB)) & _MASK_48
    state.coin[g] = coin
    return np.int64(coin >> np.uint64(47))


@kernel
def move(state, g, room):  # type: ignore[no-untyped-def]
    """Give group `g` a region of `room` items at the pool's end; False if the pool has no such room."""
    to = state.used[0]
    if to + room > len(state.items):
        return False
    old, depth = state.room[g], state.depth[g]
    shift = room - old
    first = state.levels[g, 0]
    source = state.items[state.start[g] + first : state.start[g] + old]
    state.items[to + first + shift : to + room] = source
    for h in range(depth + 1):
        state.levels[g, h] += shift
    state.start[g] = to
    state.room[g] = room
    state.used[0] = to + room
    return True


@kernel
def merge_sorted(a, b, out):  # type: ignore[no-untyped-def]
    """Merge two sorted arrays; `b` may be the end of `out`."""
    i, j = 0, 0
    for c in range(len(out)):
        if j == len(b) or (i < len(a) and a[i] < b[j]):
            out[c] = a[i]
            i += 1
        else:
            out[c] = b[j]
            j += 1


@kernel
def halve_up(run, offset):  # type: ignore[no-untyped-def]
    """Every second item of a sorted run, into its upper half."""
    j = len(run) - 1 - offset
    for i in range(len(run) - 1, len(run) // 2 - 1, -1):
        run[i] = run[j]
        j -= 2


@kernel
def halve_down(run, offset):  # type: ignore[no-untyped-def]
    """Every second item of a sorted run, into its lower half."""
    for i in range(len(run) // 2):
        run[i] = run[2 * i + offset]


@kernel
def promote(state, g, buffer, begin, middle, end):  # type: ignore[no-untyped-def]
    """Half of the even, sorted run ``buffer[begin:middle]`` joins the sorted level ``buffer[middle:end]``."""
    half = (middle - begin) // 2
    if end == middle:
        halve_up(buffer[begin:middle], toss(state, g))
    else:
        halve_down(buffer[begin:middle], toss(state, g))
        merge_sorted(buffer[begin : begin + half], buffer[middle:end], buffer[begin + half : end])
    return half


@kernel
def compact(state, g, level):  # type: ignore[no-untyped-def]
    """Halve one level into the one above it and hand the freed space to level 0."""
    levels = state.levels[g]
    buffer = state.items[state.start[g] : state.start[g] + state.room[g]]
    begin, end = levels[level], levels[level + 1]
    odd = (end - begin) & 1
    if level == 0:
        buffer[begin + odd : end].sort()
    half = promote(state, g, buffer, begin + odd, end, levels[level + 2])
    levels[level + 1] -= half
    levels[level] = levels[level + 1]
    if odd:
        levels[level] -= 1
        buffer[levels[level]] = buffer[begin]
    first = levels[0]
    if level > 0:
        for i in range(begin - 1, first - 1, -1):
            buffer[i + half] = buffer[i]
        for h in range(level):
            levels[h] += half


@kernel
def make_space(state, below_top, total, g):  # type: ignore[no-untyped-def]
    """Room for one more item of a full group, by growing its region or by compacting one level."""
    depth = state.depth[g]
    room = np.int64(state.room[g])
    if room < total[depth]:
        larger = min(max(_FIRST_ROOM, 2 * room), total[depth])
        return DONE if move(state, g, larger) else POOL_FULL
    level = 0
    while state.levels[g, level + 1] - state.levels[g, level] < below_top[depth - 1 - level]:
        level += 1
    if level == depth - 1:
        if depth + 2 > state.levels.shape[1]:
            return MORE_LEVELS
        if not move(state, g, total[depth + 1]):
            return POOL_FULL
        state.levels[g, depth + 1] = state.room[g]
        state.depth[g] = depth + 1
    compact(state, g, level)
    return DONE


@kernel
def update_one(state, below_top, total, g, values, at):  # type: ignore[no-untyped-def]
    """Add ``values[at:]`` to group `g`, NaN skipped; gives (how it ended, the next value's number)."""
    levels = state.levels[g]
    for i in range(at, len(values)):
        x = values[i]
        if x != x:
            continue
        if levels[0] == 0:
            end = make_space(state, below_top, total, g)
            if end != DONE:
                return end, i
        if state.n[g] == 0:
            state.low[g] = state.high[g] = x
        elif x < state.low[g]:
            state.low[g] = x
        elif x > state.high[g]:
            state.high[g] = x
        levels[0] -= 1
        state.items[state.start[g] + levels[0]] = x
        state.n[g] += 1
    return DONE, len(values)


@kernel
def update_rows(state, below_top, total, groups, values, at):  # type: ignore[no-untyped-def]
    """Add ``values[i]`` to group ``groups[i]`` from value `at` on; gives (how it ended, the next number)."""
    for i in range(at, len(values)):
        end, _ = update_one(state, below_top, total, groups[i], values[i : i + 1], 0)
        if end != DONE:
            return end, i
    return DONE, len(values)


@kernel
def repack(state, items):  # type: ignore[no-untyped-def]
    """Copy every group's region to the new pool `items`, closing the gaps that moves left."""
    to = 0
    for g in range(len(state.start)):
        room = state.room[g]
        items[to : to + room] = state.items[state.start[g] : state.start[g] + room]
        state.start[g] = to
        to += room
    state.used[0] = to
