"""KLL's arrays and the kernels that make room in them.

All sketches of one k and one item type are stored side by side. Group g owns
``items[start[g] : start[g] + room[g]]``; inside that region, level h extends from ``levels[g, h]`` to
``levels[g, h + 1]``, packed to the region's end, so that level 0 grows downwards into the free space. Regions
start with 4 items, double until they hold what k allows, and move within the pool, an arena, when they grow.

An item of level h stands for 2^(grain[g] + h) values. The grain is 0 until the sketch is deep; then a sampler
replaces the bottom level, whose capacity no longer shrinks: one of each 2^grain values is drawn and added to
level 0. For the w = n mod 2^grain values since the last draw, the region's first `grain` places hold one
drawn value for each set bit of w (place j for 2^j values), so that all weights always add up to n.

With grain 0, a sketch equals one of datasketches-java's `kll` package in every level and coin: the coin is
`java.util.Random`'s, so the same seed and values give the same bytes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..core.compilation.jit import inner, lean
from ..core.groups.arena import allocate
from ..core.resume import DONE, NO_ROOM
from ..core.sorting.sort import copy, merge_apart, sort
from .block_thinning import THINNED, thin

MORE_LEVELS = -2
"""Why a kernel stopped: `levels` needs more columns."""
TOO_MANY, OTHER = 1, 2
"""Why a merge ends: n would leave its range; bytes are invalid or have another k."""

MAX_N = 1 << 62
FIRST_ROOM = 4
_MASK_48 = np.uint64((1 << 48) - 1)


class State(NamedTuple):
    """The shared arrays, then one row per group. Shared are the pool, how much of it is used, and `scratch`,
    which kernels use freely (at least 2 × the largest room + 1024 items)."""

    items: np.ndarray
    extent: np.ndarray
    scratch: np.ndarray
    start: np.ndarray
    room: np.ndarray
    levels: np.ndarray
    depth: np.ndarray
    grain: np.ndarray
    n: np.ndarray
    low: np.ndarray
    high: np.ndarray
    min_k: np.ndarray
    coin: np.ndarray


SHARED = 3
"""The first fields of `State`, which don't have a row for each group."""


@inner
def toss(coin):
    """Draw one fair bit from ``coin[0]``, like `java.util.Random.nextInt(2)` after `setSeed`."""
    coin[0] = (coin[0] * np.uint64(0x5DEECE66D) + np.uint64(0xB)) & _MASK_48
    return np.int64(coin[0] >> np.uint64(47))


@inner
def scrambled(coin):
    """64 random bits of a coin: SplitMix64's mixing."""
    z = coin * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@inner
def move(state, g, room):
    """Give group `g` a region of `room` items at the pool's end; False if the pool has no such room."""
    to = allocate(state.extent, room, len(state.items))
    if to < 0:
        return False
    old, depth, at, grain = state.room[g], state.depth[g], state.start[g], state.grain[g]
    shift = room - old
    first = state.levels[g, 0]
    copy(state.items[at : at + grain], state.items[to : to + grain])
    copy(state.items[at + first : at + old], state.items[to + first + shift : to + room])
    for h in range(depth + 1):
        state.levels[g, h] += shift
    state.start[g] = to
    state.room[g] = room
    return True


@inner
def promote(buffer, begin, middle, end, coin, scratch, top):
    """Move half of the even, sorted run ``buffer[begin:middle]`` to the sorted level
    ``buffer[middle:end]``."""
    # A fair coin selects all items of even or all of odd rank: any rank is off by at most the weight of one
    # item, and by nothing on average (Karnin, Lang and Liberty 2016). Into an empty level the reference
    # halves from the upper end, which swaps the two choices.
    half = (middle - begin) // 2
    bit = toss(coin)
    chosen = buffer[begin + (bit if end > middle else 1 - bit) : middle : 2]
    merge_apart(chosen, buffer[middle:end], buffer[begin + half : end], top, scratch)
    return half


@inner
def fullest(levels, depth, below_top):
    """The lowest level that holds at least its capacity; there is one in a region without free space."""
    # Lowest first: halving lighter items adds less error.
    level = 0
    while levels[level + 1] - levels[level] < below_top[depth - 1 - level]:
        level += 1
    return level


@inner
def compact(buffer, levels, level, coin, scratch, top):
    """Halve one level of a region into the one above it, and give the freed space to level 0."""
    begin, end = np.int64(levels[level]), np.int64(levels[level + 1])
    odd = (end - begin) & 1
    # Only level 0 is unsorted. An odd level keeps one item, so that the weights add up to n.
    if level == 0:
        sort(buffer[begin + odd : end], scratch, top)
    half = promote(buffer, begin + odd, end, np.int64(levels[level + 2]), coin, scratch, top)
    levels[level + 1] = end - half
    levels[level] = end - half - odd
    if odd:
        buffer[end - half - 1] = buffer[begin]
    if level > 0:
        for i in range(begin - 1, levels[0] - 1, -1):
            buffer[i + half] = buffer[i]
        for h in range(level):
            levels[h] += half


@inner
def leap_up(state, g, leap):
    """Thin the 256 oldest items of level 0 into the level `leap` above; all other items stay."""
    levels = state.levels[g]
    region = state.items[state.start[g] : state.start[g] + state.room[g]]
    middle, end = np.int64(levels[leap]), np.int64(levels[leap + 1])
    bottom = np.int64(levels[1])
    count = THINNED >> leap
    toss(state.coin[g : g + 1])
    run, scratch, top = state.scratch[:count], state.scratch[count:], state.high[g]
    thin(region[bottom - THINNED : bottom], leap, scrambled(state.coin[g]), run, top, scratch)
    copy(region[bottom:middle], region[bottom - count :])
    merge_apart(run, region[middle:end], region[middle - count : end], top, scratch)
    shift = THINNED - count
    for i in range(bottom - THINNED - 1, levels[0] - 1, -1):
        region[i + shift] = region[i]
    levels[0] += shift
    for h in range(1, leap + 1):
        levels[h] -= count


@inner
def relieve(state, below_top, total, deepest, g):
    """Compact one level above 0: the lowest that is full, or else the lowest with two items."""
    depth, grain, room = np.int64(state.depth[g]), np.int64(state.grain[g]), np.int64(state.room[g])
    levels = state.levels[g]
    level = 1
    while level < depth and levels[level + 1] - levels[level] < below_top[depth - 1 - level]:
        level += 1
    if level == depth:
        level = 1
        while levels[level + 1] - levels[level] < 2:
            level += 1
    if level == depth - 1:
        if depth + 2 > state.levels.shape[1]:
            return MORE_LEVELS
        if not move(state, g, max(room, total[depth + 1] + grain + THINNED)):
            return NO_ROOM
        levels[depth + 1] = state.room[g]
        state.depth[g] = depth + 1
    region = state.items[state.start[g] : state.start[g] + state.room[g]]
    compact(region, levels, level, state.coin[g : g + 1], state.scratch, state.high[g])
    if state.depth[g] > deepest:
        coarsen(state, g)
    return DONE


@inner
def fit(region, levels, depth, total, coin, scratch, top):
    """Halve levels, from the lowest on, until a region has at most `total` items for its depth.

    Leaps may have made the top level so full that halving all levels below is not enough; then it is halved
    as well, into a new level, for which `levels` has a place. Returns the depth.
    """
    level = 0
    while levels[depth] - levels[0] > total[depth]:
        if level == depth - 1:
            levels[depth + 1] = levels[depth]
            depth += 1
        if levels[level + 1] - levels[level] > 1:
            compact(region, levels, level, coin, scratch, top)
        level += 1
    return depth


@inner
def fitted(state, total, g, region, levels, coin):
    """Copy the items and levels of group `g`; if it leaps, at most its depth's capacity.

    `region` needs as many places as the group, `levels` two more than its levels, `coin` one. Returns the
    depth, without the grain.
    """
    depth, grain, room = np.int64(state.depth[g]), np.int64(state.grain[g]), np.int64(state.room[g])
    first = np.int64(state.levels[g, 0])
    own = state.items[state.start[g] : state.start[g] + room]
    copy(own[:grain], region)
    copy(own[first:], region[first:])
    for h in range(depth + 1):
        levels[h] = state.levels[g, h]
    coin[0] = state.coin[g]
    return fit(region, levels, depth, total, coin, state.scratch, state.high[g])


@inner
def _merge_in(items, weights, held, run, weight):
    """Merge a sorted run of items with weight `weight` into the first `held` items, from the end."""
    if held == 0:  # all items of most small sketches; without branches, copying is vectorised
        for at in range(len(run)):
            items[at], weights[at] = run[at], weight
        return len(run)
    i, j = held - 1, len(run) - 1
    for at in range(held + len(run) - 1, -1, -1):
        if j < 0:
            break
        if i >= 0 and items[i] > run[j]:
            items[at], weights[at] = items[i], weights[i]
            i -= 1
        else:
            items[at], weights[at] = run[j], weight
            j -= 1
    return held + len(run)


@lean
def unpack(state, total, first, region, levels, coin, items, weights, ends):
    """Write the sorted items and their weights of each group from `first` on, as many groups as `ends`.

    `region`, `levels` and `coin` have the sizes that `fitted` needs for any of the groups.
    """
    size = np.int64(0)
    for i in range(len(ends)):
        g = first + i
        n, grain = state.n[g], np.int64(state.grain[g])
        depth = fitted(state, total, g, region, levels, coin)
        own, stands_for = items[size:], weights[size:]
        held = np.int64(0)
        for j in range(grain):
            if n >> np.int64(j) & 1:
                held = _merge_in(own, stands_for, held, region[j : j + 1], np.int64(1) << np.int64(j))
        sort(region[levels[0] : levels[1]], state.scratch, state.high[g])
        for h in range(depth):
            run = region[levels[h] : levels[h + 1]]
            held = _merge_in(own, stands_for, held, run, np.int64(1) << (grain + h))
        size += held
        ends[i] = size


@inner
def make_space(state, below_top, total, deepest, g, waiting):
    """Make room in a full group for at least one of `waiting` items, by growing its region or by compacting
    one level."""
    depth, room, grain = state.depth[g], np.int64(state.room[g]), state.grain[g]
    if room < total[depth] + grain:
        larger = min(max(FIRST_ROOM, 2 * room, room + waiting), total[depth] + grain)
        return DONE if move(state, g, larger) else NO_ROOM
    level = fullest(state.levels[g], depth, below_top)
    if level == depth - 1:
        if depth + 2 > state.levels.shape[1]:
            return MORE_LEVELS
        if not move(state, g, max(room, total[depth + 1] + grain)):
            return NO_ROOM
        state.levels[g, depth + 1] = state.room[g]
        state.depth[g] = depth + 1
    buffer = state.items[state.start[g] : state.start[g] + state.room[g]]
    compact(buffer, state.levels[g], level, state.coin[g : g + 1], state.scratch, state.high[g])
    if state.depth[g] > deepest:
        coarsen(state, g)
    return DONE


@inner
def coarsen(state, g):
    """Double the weight of the bottom level: halve its items into the level above, and give an odd item to
    the
    sampler. Needs two levels and, if the bottom level is empty, one free place."""
    levels = state.levels[g]
    buffer = state.items[state.start[g] : state.start[g] + state.room[g]]
    begin, end = np.int64(levels[0]), np.int64(levels[1])
    odd = (end - begin) & 1
    left = buffer[begin]
    sort(buffer[begin + odd : end], state.scratch, state.high[g])
    coin, top = state.coin[g : g + 1], state.high[g]
    levels[1] -= promote(buffer, begin + odd, end, np.int64(levels[2]), coin, state.scratch, top)
    # Two items of weight 2^grain became one of twice that; the odd item is the sampler's for its bit.
    if odd:
        buffer[state.grain[g]] = left
    depth = state.depth[g]
    for h in range(depth):
        levels[h] = levels[h + 1]
    state.depth[g] = depth - 1
    state.grain[g] += 1


@inner
def flatten_sampler(state, total, g):
    """Convert group `g` to grain 0 for a merge, with the sampler's items as levels of their own.

    The former level 0 is a level like any other now, so it is sorted.
    """
    grain, old_depth = np.int64(state.grain[g]), np.int64(state.depth[g])
    if state.room[g] <= total[old_depth] and grain == 0:
        return DONE
    if grain + old_depth + 3 > state.levels.shape[1]:
        return MORE_LEVELS
    # From here on the region and its levels are consistent, even if the call ends here and is repeated.
    at, levels = state.start[g], state.levels[g]
    own = state.items[at : at + state.room[g]]
    old_depth = fit(own, levels, old_depth, total, state.coin[g : g + 1], state.scratch, state.high[g])
    state.depth[g] = old_depth
    depth = grain + old_depth
    room = total[depth]
    to = allocate(state.extent, room, len(state.items))
    if to < 0:
        return NO_ROOM
    if grain:
        sort(own[levels[0] : levels[1]], state.scratch, state.high[g])
    retained = state.room[g] - levels[0]
    copy(own[levels[0] :], state.items[to + room - retained : to + room])
    shift = room - state.room[g]
    for h in range(old_depth, -1, -1):
        levels[h + grain] = levels[h] + shift
    for h in range(grain - 1, -1, -1):
        levels[h] = levels[h + 1]
        if (state.n[g] >> h) & 1:
            levels[h] -= 1
            state.items[to + levels[h]] = state.items[at + h]
    state.start[g], state.room[g], state.depth[g], state.grain[g] = to, room, depth, 0
    return DONE
