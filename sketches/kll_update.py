"""Taking values in: the scan for NaN and the extremes, the sampler, and many groups at once."""

from __future__ import annotations

from typing import Any

import numpy as np

from .jit import inlined, kernel
from .kll_kernels import DONE, POOL_FULL, coarsen, compact, fullest, make_space, move

SCANNED = 1 << 14
"""Values scanned at a time: they are still in the second-level cache when they are taken in."""
_LANES = 64
_ONE = np.uint64(1)


@kernel
def scan(block, lows, highs):  # type: ignore[no-untyped-def]
    """How many NaN; the lowest and highest value of lane i are folded into ``lows[i]`` and ``highs[i]``."""
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


@inlined
def _draw(coin, grain, block):  # type: ignore[no-untyped-def]
    """Which value of a block of 2^grain stands for it: SplitMix64 of the coin and the block's number."""
    z = coin[0] * np.uint64(0xD1342543DE82EF95) + np.uint64(block) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z ^= z >> np.uint64(31)
    return np.int64(z & ((_ONE << np.uint64(grain)) - _ONE))


@kernel
def _top_bit(x):  # type: ignore[no-untyped-def]
    bit = -1
    while x:
        x >>= 1
        bit += 1
    return bit


@kernel
def _drawn(kept, place, within):  # type: ignore[no-untyped-def]
    """The value at `place` of a block of which `within` > `place` values were seen."""
    return kept[_top_bit(place ^ within)]


@kernel
def _keep(kept, place, within, values):  # type: ignore[no-untyped-def]
    """Take `values` as places `within` … of an unfinished block, of which place `place` will be drawn.

    For each set bit j of the count, ``kept[j]`` is the value that would be drawn from its 2^j places by the
    low j bits of `place`; so the whole block's draw is always one of its parts' draws.
    """
    count = within + len(values)
    for bit in range(_top_bit(within ^ count), -1, -1):
        if (count >> bit) & 1:
            at = (count >> (bit + 1) << (bit + 1)) + (place & ((1 << bit) - 1))
            kept[bit] = values[at - within] if at >= within else _drawn(kept, at, within)


@kernel
def _sample(region, levels, grain, coin, n, values):  # type: ignore[no-untyped-def]
    """Draw from the values after the first `n` until they end or level 0 is full; gives how many it took."""
    size = np.int64(1) << grain
    slot, done = np.int64(levels[0]), 0
    within = n & (size - 1)
    if within:
        place = _draw(coin, grain, n >> grain)
        need = size - within
        if len(values) < need:
            _keep(region, place, within, values)
            return len(values)
        slot -= 1
        region[slot] = values[place - within] if place >= within else _drawn(region, place, within)
        done = need
    blocks = min(slot - grain, (len(values) - done) >> grain)
    first = (n + done) >> grain
    for b in range(blocks):
        slot -= 1
        region[slot] = values[done + (b << grain) + _draw(coin, grain, first + b)]
    done += blocks << grain
    levels[0] = slot
    if slot > grain and done < len(values):
        _keep(region, _draw(coin, grain, (n + done) >> grain), 0, values[done:])
        done = len(values)
    return done


@kernel
def absorb(state, below_top, total, deepest, g, values):  # type: ignore[no-untyped-def]
    """Take in values without NaN, extremes apart; gives (how it ended, how many were taken in)."""
    levels = state.levels[g]
    surplus = state.depth[g] - deepest
    if surplus > 0 and len(values):
        if levels[0] < state.grain[g] + surplus and not move(state, g, state.room[g] + surplus):
            return POOL_FULL, 0
        for _ in range(surplus):
            coarsen(state, g)
    done = 0
    coin = state.coin[g : g + 1]
    while done < len(values):
        grain, depth, room = np.int64(state.grain[g]), np.int64(state.depth[g]), np.int64(state.room[g])
        region = state.items[state.start[g] : state.start[g] + room]
        while done < len(values):
            slot = np.int64(levels[0])
            if slot == grain:
                level = fullest(levels, depth, below_top) if room >= total[depth] + grain else depth
                if level >= depth - 1:
                    break
                compact(region, levels, level, coin, state.scratch, state.high[g])
            elif grain:
                taken = _sample(region, levels, grain, coin, state.n[g], values[done:])
                state.n[g] += taken
                done += taken
            else:
                take: Any = min(slot, len(values) - done)
                for i in range(take):
                    region[slot - 1 - i] = values[done + i]
                levels[0] = slot - take
                state.n[g] += take
                done += take
        if done < len(values):
            end = make_space(state, below_top, total, deepest, g)
            if end != DONE:
                return end, done
    return DONE, done


@kernel
def _first_number(values):  # type: ignore[no-untyped-def]
    at = 0
    while at < len(values) and values[at] != values[at]:
        at += 1
    return at


@kernel
def widen(state, g, low, high):  # type: ignore[no-untyped-def]
    """Fold a lowest and a highest value into those of group `g`."""
    if state.n[g] == 0:
        state.low[g] = low
        state.high[g] = high
    else:
        state.low[g] = min(state.low[g], low)
        state.high[g] = max(state.high[g], high)


@kernel
def update_one(state, below_top, total, deepest, g, values, at):  # type: ignore[no-untyped-def]
    """Add ``values[at:]`` to group `g`, NaN skipped; gives (how it ended, the next value's number)."""
    at += _first_number(values[at:])
    if at == len(values):
        return DONE, at
    lows = np.full(_LANES, values[at])
    highs = np.full(_LANES, values[at])
    spare = np.empty(0, values.dtype)
    while at < len(values):
        block = values[at : at + SCANNED]
        bad = scan(block, lows, highs)
        if bad < len(block):
            widen(state, g, lows.min(), highs.max())
        numbers = block
        if bad:
            if len(spare) == 0:
                spare = np.empty(SCANNED, values.dtype)
            count = 0
            for i in range(len(block)):
                spare[count] = block[i]
                count += block[i] == block[i]
            numbers = spare[:count]
        end, done = absorb(state, below_top, total, deepest, g, numbers)
        if end != DONE:
            while done > 0:
                done -= values[at] == values[at]
                at += 1
            return end, at
        at += len(block)
    return DONE, len(values)


@kernel
def update_rows(state, below_top, total, deepest, groups, values, at):  # type: ignore[no-untyped-def]
    """Add ``values[i]`` to group ``groups[i]`` from value `at` on; gives (how it ended, the next number)."""
    for i in range(at, len(values)):
        x = values[i]
        if x == x:
            widen(state, groups[i], x, x)
            end, _ = absorb(state, below_top, total, deepest, groups[i], values[i : i + 1])
            if end != DONE:
                return end, i
    return DONE, len(values)


@kernel
def update_sorted(state, below_top, total, deepest, ends, values, at):  # type: ignore[no-untyped-def]
    """Add values ordered by group: those of group g end at ``ends[g]``. Ends as `update_rows` does."""
    begin = 0
    for g in range(len(ends)):
        if ends[g] > max(at, begin):
            begin = max(at, begin)
            end, done = update_one(state, below_top, total, deepest, g, values[begin : ends[g]], 0)
            if end != DONE:
                return end, begin + done
        begin = ends[g]
    return DONE, len(values)


@kernel
def order_by_group(groups, values, ends, out):  # type: ignore[no-untyped-def]
    """Counting sort: `values` into `out` by group, in their order; `ends` (zeros, one a group) is filled."""
    for g in groups:
        ends[g] += 1
    before = 0
    for g in range(len(ends)):
        count = ends[g]
        ends[g] = before
        before += count
    for i in range(len(values)):
        g = groups[i]
        out[ends[g]] = values[i]
        ends[g] += 1
