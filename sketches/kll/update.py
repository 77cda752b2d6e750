"""Add values: the scan for NaN and extremes, the sampler, and updates of many groups."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.compilation.jit import inner, lean
from ..core.groups.arena import allocate
from ..core.hashing.bits import clz64
from ..core.resume import DONE, NO_ROOM
from .block_thinning import THINNED
from .compaction import FIRST_ROOM, coarsen, compact, fullest, leap_up, make_space, move, relieve

SCANNED = 1 << 14
"""Values scanned at a time, few enough to be still in the second-level cache when they are added."""
_LANES = 64
_ONE = np.uint64(1)
SPARE = 34
"""The items of a capacity left to level 0 of a sketch that gathers blocks; 255 items are reduced to fit."""


@inner
def scan(block, lows, highs):
    """Count NaN; update ``lows[i]`` and ``highs[i]`` by the lowest and highest value of lane i."""
    bad = 0
    whole = len(block) // _LANES * _LANES
    for at in range(0, whole, _LANES):
        row = block[at : at + _LANES]
        for i in range(_LANES):
            x = row[i]
            lows[i] = x if x < lows[i] else lows[i]
            highs[i] = x if x > highs[i] else highs[i]
            bad += x != x
    for i in range(whole, len(block)):
        x = block[i]
        lows[0] = x if x < lows[0] else lows[0]
        highs[0] = x if x > highs[0] else highs[0]
        bad += x != x
    return bad


@inner
def draw(coin, grain, block):
    """Return which value represents a block of 2^grain: SplitMix64 of the coin and the block's number."""
    z = coin[0] * np.uint64(0xD1342543DE82EF95) + np.uint64(block) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z ^= z >> np.uint64(31)
    return np.int64(z & ((_ONE << np.uint64(grain)) - _ONE))


@inner
def top_bit(x):
    """Return the number of the highest set bit; −1 for 0."""
    return 63 - np.int64(clz64(np.uint64(x)))


@inner
def drawn(kept, place, within):
    """Return the value at `place` of a block that has seen `within` > `place` values."""
    return kept[top_bit(place ^ within)]


@inner
def _keep(kept, place, within, values):
    """Add `values` at places `within` … of an unfinished block whose value at `place` will be drawn.

    For each set bit j of the count, ``kept[j]`` is the value that the low j bits of `place` would draw from
    its 2^j places, so the whole block's draw is always one of its parts' draws.
    """
    count = within + len(values)
    for bit in range(top_bit(within ^ count), -1, -1):
        if (count >> bit) & 1:
            at = (count >> (bit + 1) << (bit + 1)) + (place & ((1 << bit) - 1))
            kept[bit] = values[at - within] if at >= within else drawn(kept, at, within)


@inner
def _sample(region, levels, grain, floor, coin, n, values):
    """Sample the values that follow the first `n` until they end or level 0 is down to `floor`, at least
    `grain`; return how many were consumed."""
    size = np.int64(1) << grain
    slot, done = np.int64(levels[0]), 0
    within = n & (size - 1)
    if within:
        # The coin and the block's number determine the place, so blocks split by batches need no state.
        place = draw(coin, grain, n >> grain)
        need = size - within
        if len(values) < need:
            _keep(region, place, within, values)
            return len(values)
        slot -= 1
        region[slot] = values[place - within] if place >= within else drawn(region, place, within)
        done = need
    blocks = min(slot - floor, (len(values) - done) >> grain)
    first = (n + done) >> grain
    for b in range(blocks):
        slot -= 1
        region[slot] = values[done + (b << grain) + draw(coin, grain, first + b)]
    done += blocks << grain
    levels[0] = slot
    if slot > floor and done < len(values):
        _keep(region, draw(coin, grain, (n + done) >> grain), 0, values[done:])
        done = len(values)
    return done


@inner
def _fill_level_zero(state, g, floor, values):
    """Fill level 0 of group `g` down to `floor`, through its sampler if any; return how many were used."""
    levels, grain, n = state.levels[g], np.int64(state.grain[g]), state.n[g]
    region = state.items[state.start[g] : state.start[g] + state.room[g]]
    if grain:
        n_read = _sample(region, levels, grain, floor, state.coin[g : g + 1], n, values)
    else:
        slot = np.int64(levels[0])
        n_read = min(slot - floor, len(values))
        to = region[slot - n_read : slot]
        for i in range(n_read):
            to[n_read - 1 - i] = values[i]
        levels[0] = slot - n_read
    state.n[g] = n + n_read
    return n_read


@inner
def fill(state, below_top, total, deepest, g, values):
    """Add values level by level, until they end or the sketch has changed its shape."""
    levels = state.levels[g]
    grain, depth, room = np.int64(state.grain[g]), np.int64(state.depth[g]), np.int64(state.room[g])
    done = 0
    while done < len(values):
        if levels[0] == grain:
            level = fullest(levels, depth, below_top) if room >= total[depth] + grain else depth
            if level >= depth - 1:
                return make_space(state, below_top, total, deepest, g, len(values) - done), done
            region = state.items[state.start[g] : state.start[g] + room]
            compact(region, levels, level, state.coin[g : g + 1], state.scratch, state.high[g])
        else:
            done += _fill_level_zero(state, g, grain, values[done:])
    return DONE, done


@inner
def _fill_by_blocks(state, below_top, total, deepest, leap, g, values):
    """Add values in blocks of level 0, until they end or the sketch has changed its shape."""
    levels = state.levels[g]
    grain, depth = np.int64(state.grain[g]), np.int64(state.depth[g])
    room: Any = total[depth] + grain + THINNED
    if state.room[g] < room and not move(state, g, room):
        return NO_ROOM, 0
    done = 0
    while True:
        if state.room[g] - levels[1] > total[depth] - SPARE:
            return relieve(state, below_top, total, deepest, g), done
        if levels[1] - levels[0] >= THINNED:
            leap_up(state, g, leap)
        elif done < len(values):
            done += _fill_level_zero(state, g, np.int64(levels[1]) - THINNED, values[done:])
        else:
            return DONE, done


@inner
def begin(state, g, values):
    """Give the first values of group `g` a region; False if the pool has no room."""
    to = allocate(state.extent, FIRST_ROOM, len(state.items))
    if to < 0:
        return False
    for i in range(len(values)):
        state.items[to + FIRST_ROOM - 1 - i] = values[i]
    state.start[g], state.room[g] = to, FIRST_ROOM
    state.levels[g, 0], state.levels[g, 1] = FIRST_ROOM - len(values), FIRST_ROOM
    state.n[g] = len(values)
    return True


@inner
def absorb(state, below_top, total, deepest, leaps, g, values):
    """Add values without NaN; extremes are handled separately. Returns (how it ended, how many were
    added)."""
    if state.room[g] == 0 and 0 < len(values) <= FIRST_ROOM:
        # What the steps below come to, at a third of their cost: with many groups, most are small.
        return (DONE, len(values)) if begin(state, g, values) else (NO_ROOM, 0)
    levels = state.levels[g]
    surplus = state.depth[g] - deepest
    if surplus > 0 and len(values):
        if levels[0] < state.grain[g] + surplus and not move(state, g, state.room[g] + surplus):
            return NO_ROOM, 0
        for _ in range(surplus):
            coarsen(state, g)
    done = 0
    while done < len(values):
        leap = leaps[state.depth[g]]
        rest = values[done:]
        if leap:
            end, n_read = _fill_by_blocks(state, below_top, total, deepest, leap, g, rest)
        else:
            end, n_read = fill(state, below_top, total, deepest, g, rest)
        done += n_read
        if end != DONE:
            return end, done
    return DONE, done


@inner
def widen(state, g, low, high):
    """Extend the range of group `g` to a lowest and a highest value."""
    if state.n[g] == 0:
        state.low[g] = low
        state.high[g] = high
    else:
        state.low[g] = min(state.low[g], low)
        state.high[g] = max(state.high[g], high)


@inner
def scan_extremes(state, g, block, workspace):
    """Extend the range of group `g` to a block's values; return how many are NaN."""
    first = 0
    while first < len(block) and block[first] != block[first]:
        first += 1
    if first == len(block):
        return first
    lows, highs = workspace[:_LANES], workspace[_LANES : 2 * _LANES]
    lanes = _LANES if len(block) >= _LANES else 1
    for i in range(lanes):
        lows[i] = highs[i] = block[first]
    bad = scan(block, lows, highs)
    low, high = lows[0], highs[0]
    for i in range(1, lanes):
        low = min(low, lows[i])
        high = max(high, highs[i])
    widen(state, g, low, high)
    return bad


@inner
def _drop_nan(block, out):
    """Copy the values that are not NaN; return their number."""
    count = 0
    for i in range(len(block)):
        out[count] = block[i]
        count += block[i] == block[i]
    return count


def new_workspace(dtype: Any, values: int) -> np.ndarray:
    """Return the workspace of `update` for this many values."""
    return np.empty(2 * _LANES + min(SCANNED, values), dtype)


@lean
def update(state, below_top, total, deepest, leaps, groups, ends, values, workspace, at):
    """Add runs of values from number `at` on, without NaN, as a step of `resume`.

    Run r, up to ``ends[r]``, belongs to group ``groups[r]``.
    """
    begin = np.int64(at)
    for r in range(len(ends)):
        g = groups[r]
        while begin < ends[r]:
            block = values[begin : min(begin + SCANNED, ends[r])]
            numbers = block
            if scan_extremes(state, g, block, workspace):
                spare = workspace[2 * _LANES :]
                numbers = spare[: _drop_nan(block, spare)]
            why, done = absorb(state, below_top, total, deepest, leaps, g, numbers)
            if why != DONE:
                while done > 0:
                    done -= values[begin] == values[begin]
                    begin += 1
                return begin, why
            begin += len(block)
    return begin, DONE
