"""Add weighted values, and the levels of other sketches, to a sketch level by level.

Meanwhile a sketch's levels are separate, each in its own row (`Apart`), so that adding an item to any level
is one step. A level is sorted when it is halved or put back.

A value of weight w has the same effect as w equal values. First, the sampler gets the weight that its block
still lacks; then, for each set bit h of the remaining weight, an item is added to level h, at most as high as
w values would have made the sketch. The top level therefore gets copies of a heavy value: k log(n) for all
values of a stream together. Otherwise, a value costs as many steps as its weight has bits.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..core.compilation.jit import fused, inner, lean
from ..core.hashing.bits import clz64
from ..core.resume import DONE, NO_ROOM
from ..core.sorting.sort import copy, sort
from .block_thinning import THINNED, thin
from .compaction import MORE_LEVELS, coarsen, move, scrambled, toss
from .levels import Capacities
from .update import SCANNED, draw, drawn, scan_extremes, top_bit

_AT_ONCE = 256
"""Items added to a level before its sketch is compressed."""
_LG_RUN = 3
"""The weights of 2^3 rows are summed together: there are fewer sums than rows, and few rows to search."""


class Apart(NamedTuple):
    """A sketch with separate levels: level h is ``rows[h, : held[h]]``, and ``count[0]`` counts all items.

    `kept` has its sampler's items; `figures` its depth, grain and n, and `coin` its coin. For the rows to
    add, ``sums[b]`` is the weight of the first (b + 1) × 8; `spare` and `counts` hold the rows that count.
    """

    rows: np.ndarray
    held: np.ndarray
    kept: np.ndarray
    figures: np.ndarray
    coin: np.ndarray
    scratch: np.ndarray
    sums: np.ndarray
    spare: np.ndarray
    counts: np.ndarray


DEPTH, GRAIN, N, RETAINED = 0, 1, 2, 3
"""Indexes in `Apart.figures`."""


def new_apart(tables: Capacities, dtype: Any, rows: int) -> Apart:
    """Return room for any sketch of these capacities, and for this many rows with weights."""
    room = int(tables.total[tables.deepest + 1]) + THINNED + _AT_ONCE + 64
    return Apart(
        rows=np.empty((tables.deepest + 2, room), dtype),
        held=np.zeros(tables.deepest + 2, np.int64),
        kept=np.empty(64, dtype),
        figures=np.zeros(4, np.int64),
        coin=np.zeros(1, np.uint64),
        scratch=np.empty(2 * room + 1024, dtype),
        sums=np.empty((rows >> _LG_RUN) + 1, np.int64),
        spare=np.empty(rows, dtype),
        counts=np.empty(rows, np.int64),
    )


@inner
def take_apart(state, total, deepest, g, apart):
    """Separate the levels of group `g`; return `DONE`, or why there may be too little room to put it back."""
    if deepest + 3 > state.levels.shape[1]:
        return MORE_LEVELS
    surplus = state.depth[g] - deepest
    if surplus > 0:
        if state.levels[g, 0] < state.grain[g] + surplus and not move(state, g, state.room[g] + surplus):
            return NO_ROOM
        for _ in range(surplus):
            coarsen(state, g)
    most = total[deepest] + 64 + THINNED
    if state.extent[0].used + most > len(state.items):
        state.extent[0].wanted = most
        return NO_ROOM
    depth, grain, room = np.int64(state.depth[g]), np.int64(state.grain[g]), np.int64(state.room[g])
    region = state.items[state.start[g] : state.start[g] + room]
    levels, figures = state.levels[g], apart.figures
    copy(region[:grain], apart.kept)
    begin, end = np.int64(levels[0]), np.int64(levels[1])
    oldest = apart.rows[0]
    for i in range(end - begin):  # level 0 fills downwards
        oldest[i] = region[end - 1 - i]
    apart.held[0] = end - begin
    for h in range(1, depth):
        begin, end = np.int64(levels[h]), np.int64(levels[h + 1])
        copy(region[begin:end], apart.rows[h])
        apart.held[h] = end - begin
    figures[DEPTH], figures[GRAIN], figures[N] = depth, grain, state.n[g]
    figures[RETAINED] = room - levels[0]
    apart.coin[0] = state.coin[g]
    return DONE


@inner
def put_back(state, total, leaps, g, apart):
    """Pack the levels of group `g` again; `take_apart` has ensured that there is room."""
    figures = apart.figures
    depth, grain, retained = figures[DEPTH], figures[GRAIN], figures[RETAINED]
    levels = state.levels[g]
    if state.room[g] < retained + grain:
        full = total[depth] + grain + (THINNED if leaps[depth] else 0)
        state.depth[g], levels[0], levels[1] = 0, state.room[g], state.room[g]  # nothing to move
        state.grain[g] = 0
        move(state, g, max(retained + grain, min(2 * np.int64(state.room[g]), full)))
    room = np.int64(state.room[g])
    region = state.items[state.start[g] : state.start[g] + room]
    copy(apart.kept[:grain], region)
    at = room - retained
    levels[0] = at
    for i in range(apart.held[0]):
        region[at + i] = apart.rows[0, apart.held[0] - 1 - i]
    at += apart.held[0]
    levels[1] = at
    for h in range(1, depth):
        run = apart.rows[h, : apart.held[h]]
        sort(run, apart.scratch, state.high[g])
        copy(run, region[at:])
        at += len(run)
        levels[h + 1] = at
    state.depth[g], state.grain[g], state.n[g], state.coin[g] = depth, grain, figures[N], apart.coin[0]


@inner
def _halve(apart, h, top):
    """Move half of a level to the next one; an odd item stays."""
    held, row, above = apart.held, apart.rows[h], apart.rows[h + 1]
    odd = held[h] & 1
    if h > 0:
        sort(row[: held[h]], apart.scratch, top)
    else:
        sort(row[odd : held[h]], apart.scratch, top)
    first, to, half = odd + toss(apart.coin), held[h + 1], held[h] >> 1
    for i in range(half):
        above[to + i] = row[first + 2 * i]
    held[h + 1] += half
    held[h] = odd
    apart.figures[RETAINED] -= half


@inner
def _deepen(apart, deepest, top):
    """Add an empty top level; beyond `deepest`, a sampler replaces the lowest level (`coarsen`)."""
    figures, held = apart.figures, apart.held
    held[figures[DEPTH]] = 0
    figures[DEPTH] += 1
    if figures[DEPTH] <= deepest:
        return
    _halve(apart, 0, top)
    if held[0]:
        apart.kept[figures[GRAIN]] = apart.rows[0, 0]
        figures[RETAINED] -= 1
    # The odd item of level 0 is chosen by order, which must not depend on when the level was last packed.
    sort(apart.rows[1, : held[1]], apart.scratch, top)
    for h in range(figures[DEPTH] - 1):
        copy(apart.rows[h + 1, : held[h + 1]], apart.rows[h])
        held[h] = held[h + 1]
    figures[DEPTH] -= 1
    figures[GRAIN] += 1


@inner
def _leap(apart, leap, top):
    """Thin the 256 oldest items of level 0 into the level `leap` above, like `compaction.leap_up`."""
    rows, held, count = apart.rows, apart.held, THINNED >> leap
    toss(apart.coin)
    to = held[leap]
    out = rows[leap, to : to + count]
    thin(rows[0, :THINNED], leap, scrambled(apart.coin[0]), out, top, apart.scratch)
    copy(rows[0, THINNED : held[0]], rows[0])
    held[leap] += count
    held[0] -= THINNED
    apart.figures[RETAINED] -= THINNED - count


@inner
def _compress(apart, below_top, total, deepest, leaps, top):
    """Halve levels, from the lowest on, until they have at most as many items as their sketch may have."""
    figures, h = apart.figures, np.int64(0)
    leap = leaps[figures[DEPTH]]
    if leap and apart.held[0] >= THINNED:
        _leap(apart, leap, top)
    while figures[RETAINED] > total[figures[DEPTH]]:
        depth, grain = figures[DEPTH], figures[GRAIN]
        if h >= depth:  # halving while a level was added may have filled a lower level
            h = np.int64(0)
        if apart.held[h] >= below_top[depth - 1 - h]:
            if h == depth - 1:
                _deepen(apart, deepest, top)
                h -= figures[GRAIN] - grain
            _halve(apart, h, top)
        h += 1


@inner
def _limit(total, leaps, depth):
    """Return how many items a sketch may have before it is compressed."""
    # A sketch that gathers blocks has room for a block: it is compressed less often, and loses less.
    return total[depth] + (THINNED if leaps[depth] else 0)


@inner
def _most(k, depth, grain):
    """Return the most values of weight 1 for this number of levels: 1.5 k times the top level's weight."""
    return 1.5 * k * 2.0 ** (depth + grain - 1)


@inner
def _row_at(weights, sums, lg_weight, i, until, place):
    """Return the row, from `i` on, to which weight number `place` belongs, and the weight of all rows up to
    it; the rows up to `i` weigh `until`."""
    if lg_weight >= 0:
        i = place >> lg_weight
        return i, (i + 1) << lg_weight
    if place < until:
        return i, until
    run = max(i, 0) >> _LG_RUN
    while sums[run] <= place:
        run += 1
    first = run << _LG_RUN
    before = sums[run - 1] if run > 0 else np.int64(0)
    own = weights[first : min(first + (1 << _LG_RUN), len(weights))]
    up_to, passed = before, np.int64(0)
    for j in range(len(own)):  # no branch, which would be unpredictable
        up_to += own[j]
        more = np.int64(up_to <= place)
        passed += more
        before += own[j] & -more
    return first + passed, before + own[passed]


@fused
def _absorb_apart(apart, below_top, total, deepest, leaps, values, weights, lg_weight, heaviest, top):
    """Add values without NaN and without weights of 0; no weight exceeds `heaviest`.

    Extremes are handled separately. Weights have the sums `apart.sums`, unless each is 2^lg_weight;
    `lg_weight` is negative otherwise.
    """
    # A call with all these arrays costs as much as ten values, so there is no call per value.
    figures, kept, rows, held, sums = apart.figures, apart.kept, apart.rows, apart.held, apart.sums
    n, retained = figures[N], figures[RETAINED]
    depth, grain = figures[DEPTH], figures[GRAIN]
    limit, most = _limit(total, leaps, depth), _most(below_top[0], depth, grain)
    begin, i, until = n, np.int64(-1), np.int64(0)
    if lg_weight >= 0:
        end = n + (np.int64(len(values)) << lg_weight)
    else:
        end = n + (sums[(len(values) - 1) >> _LG_RUN] if len(values) else 0)
    while n < end:
        size = np.int64(1) << grain
        within = n & (size - 1)
        weight = np.int64(0)
        if within == 0 and heaviest >= size:
            if n - begin == until and lg_weight < 0:
                i += 1
                until += weights[i]
            else:
                i, until = _row_at(weights, sums, lg_weight, i, until, n - begin)
            weight = begin + until - n
        if weight >= size:
            if float(n + weight) > most:
                figures[N], figures[RETAINED] = n, retained
                _deepen(apart, deepest, top)
                depth, grain, retained = figures[DEPTH], figures[GRAIN], figures[RETAINED]
                limit, most = _limit(total, leaps, depth), _most(below_top[0], depth, grain)
                continue
            chosen = values[i]
            while weight >= size and retained <= limit:
                blocks = weight >> grain
                h = 63 - np.int64(clz64(np.uint64(blocks)))
                if h < depth - 1:
                    rows[h, held[h]] = chosen
                    held[h] += 1
                    retained += 1
                    weight -= size << h
                    continue
                h, copies = depth - 1, min(blocks >> (depth - 1), _AT_ONCE)
                for c in range(held[h], held[h] + copies):
                    rows[h, c] = chosen
                held[h] += copies
                retained += copies
                weight -= copies << (grain + h)
            n = begin + until - weight
        else:
            # The coin and the block's number determine which place is drawn, as in `update`.
            place = draw(apart.coin, grain, n >> grain)
            first = n - within - begin
            if first + size > end - begin:
                count = end - (n - within)
                for bit in range(top_bit(within ^ count), -1, -1):
                    if (count >> bit) & 1:
                        at = (count >> (bit + 1) << (bit + 1)) + (place & ((np.int64(1) << bit) - 1))
                        if at >= within:
                            i, until = _row_at(weights, sums, lg_weight, i, until, first + at)
                            kept[bit] = values[i]
                        else:
                            kept[bit] = drawn(kept, at, within)
                n = end
                break
            if place >= within:
                i, until = _row_at(weights, sums, lg_weight, i, until, first + place)
                chosen = values[i]
            else:
                chosen = drawn(kept, place, within)
            n += size - within
            rows[0, held[0]] = chosen
            held[0] += 1
            retained += 1
        if retained > limit:
            figures[N], figures[RETAINED] = n, retained
            _compress(apart, below_top, total, deepest, leaps, top)
            depth, grain, retained = figures[DEPTH], figures[GRAIN], figures[RETAINED]
            limit, most = _limit(total, leaps, depth), _most(below_top[0], depth, grain)
    figures[N], figures[RETAINED] = n, retained


@inner
def absorb_levels(apart, below_top, total, deepest, leaps, items, levels, n, top):
    """Add the items of another sketch with `n` values; `levels` bounds its levels."""
    figures, held = apart.figures, apart.held
    while float(figures[N] + n) > _most(below_top[0], figures[DEPTH], figures[GRAIN]):
        _deepen(apart, deepest, top)
    for h in range(len(levels) - 2, -1, -1):
        run, done = items[levels[h] : levels[h + 1]], 0
        while done < len(run) and figures[GRAIN] <= h < figures[GRAIN] + figures[DEPTH]:
            to, some = h - figures[GRAIN], min(_AT_ONCE, len(run) - done)
            copy(run[done : done + some], apart.rows[to, held[to] :])
            held[to] += some
            done += some
            figures[N] += some << h
            figures[RETAINED] += some
            if figures[RETAINED] > _limit(total, leaps, figures[DEPTH]):
                _compress(apart, below_top, total, deepest, leaps, top)
        # Items lighter than the lowest level go through the sampler; items that are too heavy are added as
        # copies.
        if done < len(run):
            rest, lg_weight, weight = run[done:], np.int64(h), np.int64(1) << h
            _absorb_apart(apart, below_top, total, deepest, leaps, rest, apart.counts, lg_weight, weight, top)


@inner
def _counted(values, weights, apart):
    """Copy values that are not NaN and have a weight above 0, with their weights; return their number."""
    count = 0
    for i in range(len(values)):
        if values[i] == values[i] and weights[i] != 0:
            apart.spare[count], apart.counts[count] = values[i], weights[i]
            count += 1
    return count


@inner
def _sum_up(weights, sums):
    """Fill in `Apart.sums`; return the least and the greatest weight."""
    up_to, run = np.int64(0), 1 << _LG_RUN
    whole = len(weights) // run * run
    for at in range(0, whole, run):
        own = weights[at : at + run]
        for i in range(run):
            up_to += own[i]
        sums[at >> _LG_RUN] = up_to
    least, greatest = np.int64(1), np.int64(0)
    for i in range(len(weights)):
        least = min(least, weights[i])
        greatest = max(greatest, weights[i])
    for i in range(whole, len(weights)):
        up_to += weights[i]
    sums[whole >> _LG_RUN] = up_to
    return least, greatest


@lean
def update(state, below_top, total, deepest, leaps, groups, ends, values, weights, workspace, apart, at):
    """Add runs of weighted values from number `at` on, without NaN, as a step of `resume`. Run r, up to
    ``ends[r]``, belongs to group ``groups[r]``; no group's n leaves its range."""
    begin = np.int64(at)
    for r in range(len(ends)):
        g = groups[r]
        if begin == ends[r]:
            continue
        why = take_apart(state, total, deepest, g, apart)
        if why != DONE:
            return begin, why
        while begin < ends[r]:
            end = min(begin + SCANNED, ends[r])
            numbers, own = values[begin:end], weights[begin:end]
            # Usually all values count, and nothing is copied. Values that don't count are not extremes.
            least, greatest = _sum_up(own, apart.sums)
            if least == 0 or scan_extremes(state, g, numbers, workspace):
                count = _counted(numbers, own, apart)
                numbers, own = apart.spare[:count], apart.counts[:count]
                _sum_up(own, apart.sums)
                if least == 0:
                    scan_extremes(state, g, numbers, workspace)
            _absorb_apart(
                apart, below_top, total, deepest, leaps, numbers, own, np.int64(-1), greatest, state.high[g]
            )
            state.n[g] = apart.figures[N]
            begin = end
        put_back(state, total, leaps, g, apart)
    return begin, DONE
