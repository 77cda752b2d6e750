"""The items of many REQ sketches in one pool, and the kernels that add and compact them.

Sketch g owns a region of the pool, which holds its levels one after another, the top level first, each sorted
ascending; the last one, level 0, is followed by free room and sorted when it is compacted. When the levels
have `nominal` items together, full levels are compacted from the bottom up: of the items away from the
accurate end, in order, every second one moves to the next level, where it has twice the weight.

This leaves little room in a deep sketch, because levels are compacted no further than necessary. So level 0
of a sketch with `_DEEP` levels accepts half as many items again before it is compacted: a compaction's cost
is shared by more values, and fewer compactions cause less error. Images and answers are those of the
compacted sketch.

Source: Cormode, Karnin, Liberty, Thaler, Veselý, "Relative Error Streaming Quantiles", PODS 2021; the
schedule is as in datasketches-cpp `req_sketch`, so that until then levels hold as many items as there.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..core.compilation.jit import inner, lean
from ..core.groups.arena import allocate
from ..core.hashing.random import mix, step
from ..core.resume import DONE, NO_ROOM
from ..core.sorting.sort import copy, merge_sorted, sort
from ..core.sorting.sorting_network import CHUNK
from .sections import capacity, doublings, kept_back

MORE_LEVELS, MORE_SCRATCH = -2, -3
TOO_MANY = 1
MAX_N = (1 << 62) - 1
SHARED = 3
"""The first fields of `State`, which all sketches share; each row of the other fields is one sketch's."""
_LEAST = 8
_DEEP = 8


class State(NamedTuple):
    """The pool, its extent and scratch; then a row for each sketch.

    `retained` and `nominal` count items, `room` the places of its region, `ordered` the sorted items of level
    0. Bit h of `coins` is the last coin of level h; `schedule` counts the level's compactions, `doubled` how
    often they have doubled its sections.
    """

    items: np.ndarray
    extent: np.ndarray
    scratch: np.ndarray
    start: np.ndarray
    room: np.ndarray
    retained: np.ndarray
    nominal: np.ndarray
    ordered: np.ndarray
    depth: np.ndarray
    k: np.ndarray
    n: np.ndarray
    low: np.ndarray
    high: np.ndarray
    state: np.ndarray
    coins: np.ndarray
    schedule: np.ndarray
    doubled: np.ndarray
    counts: np.ndarray


class Image(NamedTuple):
    """A decoded sketch: its items, level 0 first, where each level ends, and its numbers of compactions.

    `size` has its levels, k, n, and whether it is empty.
    """

    items: np.ndarray
    ends: np.ndarray
    schedule: np.ndarray
    edges: np.ndarray


def scratch_places(items):
    """Return the scratch needed to compact this many items: three arrays, and room for sorting."""
    return 6 * items + 16 * CHUNK


scratch_size = inner(scratch_places)
"""`scratch_places` for kernels."""


@inner
def _combined(state, sizes, g, k, image, depth_of_image):
    """Compute (levels, items, nominal) of sketch `g` merged with an image but not compacted, and the number
    of
    levels after compacting full levels. Changes nothing."""
    own_depth = np.int64(state.depth[g])
    depth = max(own_depth, depth_of_image)
    retained, nominal = np.int64(0), np.int64(0)
    final, carried, h = depth, np.int64(0), 0
    while h < final:
        schedule, count = np.int64(0), np.int64(0)
        if h < own_depth:
            schedule |= state.schedule[g, h]
            count += state.counts[g, h]
        if h < depth_of_image:
            schedule |= image.schedule[h]
            count += image.ends[h + 1] - image.ends[h]
        room = capacity(sizes, k, doublings(sizes, k, schedule))
        if h < depth:
            retained += count
            nominal += room
        count += carried
        carried = np.int64(0)
        if count >= room:
            done = doublings(sizes, k, schedule)
            carried = (count - kept_back(sizes, k, done, schedule, count)) >> 1
            if h == final - 1:
                final += 1
        h += 1
    return depth, retained, nominal, final


@inner
def _move(state, g, room):
    """Give sketch `g` a region of `room` places. Returns False, with nothing changed, if there is no room."""
    # The merging network reads a chunk beyond a run.
    to = allocate(state.extent, room, len(state.items) - CHUNK)
    if to < 0:
        return False
    held = np.int64(state.retained[g])
    copy(state.items[state.start[g] : state.start[g] + held], state.items[to : to + held])
    state.start[g], state.room[g] = to, room
    return True


@inner
def _has_scratch(state, items):
    if scratch_size(items) <= len(state.scratch):
        return True
    state.extent[0].wanted = scratch_size(items)
    return False


@inner
def _order_zero(state, g, work):
    """Sort level 0 of sketch `g`, and update the sketch's extremes."""
    count, ordered = np.int64(state.counts[g, 0]), np.int64(state.ordered[g])
    end = state.start[g] + state.retained[g]
    level, top = state.items[end - count : end], np.float32(np.inf)
    if ordered < count:
        out, spare = work[:count], work[count:]
        sort(level[ordered:], spare, top)
        if ordered:
            merge_sorted(level[:ordered], level[ordered:], out, top, spare)
            copy(out, level)
        state.ordered[g] = count
    if count:
        state.low[g] = min(state.low[g], level[0])
        state.high[g] = max(state.high[g], level[-1])


@inner
def _is_full(state, sizes, g, k, level):
    """Whether any level from `level` up is full."""
    for h in range(level, state.depth[g]):
        if state.counts[g, h] >= capacity(sizes, k, state.doubled[g, h]):
            return True
    return False


@inner
def _compress(state, sizes, g, high_ranks):
    """Compact the full levels of sketch `g`, from the bottom up. The caller has ensured that there are
    columns
    for another level, and scratch.

    Levels are written from the end of `out` towards its beginning, because a region has upper levels first.
    Levels above the last changed one stay in place.
    """
    k, total, top = np.int64(state.k[g]), np.int64(state.retained[g]), np.float32(np.inf)
    region = state.items[state.start[g] : state.start[g] + total]
    span = total + 2 * CHUNK
    promoted, out, spare = state.scratch[:span], state.scratch[span : 2 * span], state.scratch[2 * span :]
    _order_zero(state, g, state.scratch)
    state.state[g] = step(state.state[g])
    bits, coins = mix(state.state[g]), state.coins[g]
    before, to, n_promoted, h = total, total, np.int64(0), 0
    while h < state.depth[g]:
        if h and n_promoted == 0 and not _is_full(state, sizes, g, k, h):
            break
        count: Any = np.int64(state.counts[g, h])
        level = region[before - count : before]
        before -= count
        if n_promoted:
            # The rest of a level ends where the level ends: with high ranks, it is already in place.
            both = out[to - count - n_promoted : to]
            merge_sorted(level, promoted[:n_promoted], both, top, spare)
            level = both
        in_place = n_promoted > 0
        count, n_promoted = len(level), np.int64(0)
        first, end = np.int64(0), np.int64(0)
        done = np.int64(state.doubled[g, h])
        if count >= capacity(sizes, k, done):
            schedule, bit = state.schedule[g, h], np.uint64(1) << np.uint64(h)
            kept = kept_back(sizes, k, done, schedule, count)
            first, end = (np.int64(0), count - kept) if high_ranks else (kept, count)
            # Every second compaction keeps the items that the previous one dropped, so that errors cancel.
            coins = coins ^ bit if schedule & 1 else (coins & ~bit) | (bits & bit)
            taken = level[first + 1 : end] if coins & bit else level[first:end]
            n_promoted = (end - first) >> 1
            for i in range(n_promoted):
                promoted[i] = taken[2 * i]
            state.schedule[g, h] = schedule + 1
            if (schedule + 1) & schedule == 0:  # the schedule reaches a power of two
                now = doublings(sizes, k, schedule + 1)
                state.doubled[g, h] = now
                state.nominal[g] += capacity(sizes, k, now) - capacity(sizes, k, done)
            if h == state.depth[g] - 1:
                state.depth[g] += 1
                state.counts[g, h + 1] = 0
                state.schedule[g, h + 1] = 0
                state.doubled[g, h + 1] = 0
                state.nominal[g] += capacity(sizes, k, 0)
        left = count - (end - first)
        to -= left
        if end < count and not in_place:
            copy(level[end:], out[to + first :])
        if first:
            copy_up(level[:first], out[to : to + first])
        state.counts[g, h] = left
        h += 1
    copy(out[to:total], region[before:])
    state.coins[g] = coins
    state.retained[g] = before + total - to
    state.ordered[g] = state.counts[g, 0]


@inner
def _combine(state, sizes, g, k, depth, nominal, image, depth_of_image):
    """Merge the levels of an image into sketch `g`, which then has this k; there is room and scratch."""
    own_depth, top = np.int64(state.depth[g]), np.float32(np.inf)
    held = np.int64(state.retained[g])
    region = state.items[state.start[g] : state.start[g] + held]
    total = held + image.ends[depth_of_image]
    span = total + 2 * CHUNK
    out, spare = state.scratch[:span], state.scratch[span:]
    before, to = held, total
    for h in range(depth):
        level = region[before:before]
        schedule = np.int64(0)
        if h < own_depth:
            schedule |= state.schedule[g, h]
            count = np.int64(state.counts[g, h])
            if h == 0:
                _order_zero(state, g, state.scratch)
            level = region[before - count : before]
            before -= count
        if h < depth_of_image:
            schedule |= image.schedule[h]
            other = image.items[image.ends[h] : image.ends[h + 1]]
            end, to = to, to - len(level) - len(other)
            merge_sorted(level, other, out[to:end], top, spare)
        else:
            to -= len(level)
            copy(level, out[to:])
        state.counts[g, h] = total - to
        for below in range(h):
            state.counts[g, h] -= state.counts[g, below]
        state.schedule[g, h] = schedule
        state.doubled[g, h] = doublings(sizes, k, schedule)
    copy(out[:total], state.items[state.start[g] :])
    # The merged sketch had its own coins: the second of a pair of coins must not depend on a first one that
    # was tossed elsewhere.
    state.state[g] = step(state.state[g])
    state.coins[g] = mix(state.state[g])
    state.depth[g], state.k[g], state.retained[g], state.nominal[g] = depth, k, total, nominal
    state.ordered[g] = state.counts[g, 0]


@inner
def copy_up(source, target):
    """Copy `source` to `target`, of the same length, which may overlap it from above."""
    for i in range(len(source) - 1, -1, -1):
        target[i] = source[i]


@inner
def _limit(state, g):
    """Return how many items sketch `g` accepts before it is compacted."""
    nominal = np.int64(state.nominal[g])
    return nominal + (nominal >> 1) if state.depth[g] >= _DEEP else nominal


@inner
def saved(state, sizes, g, high_ranks, items, levels):
    """Compact sketch `g` if it has more items than its image may have, after saving it in `items` and
    `levels`
    for `restore`. There is scratch and room for all its items. Returns whether it was compacted."""
    if state.retained[g] < state.nominal[g]:
        return False
    copy(state.items[state.start[g] : state.start[g] + state.retained[g]], items)
    depth = np.int64(state.depth[g])
    for h in range(depth):
        levels[0, h] = state.counts[g, h]
        levels[1, h] = state.schedule[g, h]
        levels[2, h] = state.doubled[g, h]
    row = levels[3]
    row[0], row[1], row[2] = depth, state.retained[g], state.nominal[g]
    row[3], row[4], row[5] = state.ordered[g], np.int64(state.state[g]), np.int64(state.coins[g])
    _compress(state, sizes, g, high_ranks)
    return True


@inner
def restore(state, g, items, levels):
    """Restore sketch `g` to what `saved` saved."""
    row = levels[3]
    for h in range(row[0]):
        state.counts[g, h] = levels[0, h]
        state.schedule[g, h] = levels[1, h]
        state.doubled[g, h] = levels[2, h]
    state.depth[g], state.retained[g], state.nominal[g] = row[0], row[1], row[2]
    state.ordered[g], state.state[g], state.coins[g] = row[3], np.uint64(row[4]), np.uint64(row[5])
    copy(items[: row[1]], state.items[state.start[g] :])


@inner
def _append(values, to):
    """Copy values as items, with zeros of one sign; return how many are NaN."""
    bad = 0
    for i in range(len(values)):
        to[i] = values[i] + np.float32(0.0)
        bad += values[i] != values[i]
    return bad


@inner
def _without_nan(items):
    """Move the items that aren't NaN to the front; return their number."""
    count = 0
    for i in range(len(items)):
        x = items[i]
        items[count] = x
        count += x == x
    return count


@inner
def _add(state, sizes, g, high_ranks, values):
    """Add values until they end or room runs out; return (how many were added, how it ended)."""
    done = 0
    while done < len(values):
        held, limit = np.int64(state.retained[g]), _limit(state, g)
        free = min(np.int64(state.room[g]), limit) - held
        if free == 0:
            # Double the room, up to what the sketch may hold.
            wanted = max(2 * held, held + len(values) - done, _LEAST)
            if not _move(state, g, min(limit, wanted)):
                return done, NO_ROOM
            continue
        some = min(free, len(values) - done)
        if held + some >= state.nominal[g]:
            # Everything needed for compacting is allocated before the excess item arrives: otherwise a sketch
            # would depend on how its values were batched.
            if state.depth[g] >= state.counts.shape[1]:
                return done, MORE_LEVELS
            if not _has_scratch(state, limit):
                return done, MORE_SCRATCH
        items = state.items[state.start[g] + held : state.start[g] + held + some]
        good = some
        if _append(values[done : done + some], items):
            good = _without_nan(items)
        state.retained[g] += good
        state.counts[g, 0] += good
        state.n[g] += good
        done += some
        if held + good == limit:
            _compress(state, sizes, g, high_ranks)
    return done, DONE


@lean
def update(state, sizes, groups, ends, values, high_ranks, at):
    """Add runs of values from number `at` on, without NaN, as a step of `resume`.

    Run r, up to ``ends[r]``, belongs to sketch ``groups[r]``.
    """
    begin = np.int64(at)
    for r in range(len(ends)):
        if begin < ends[r]:
            added, why = _add(state, sizes, groups[r], high_ranks, values[begin : ends[r]])
            begin += added
            if why != DONE:
                return begin, why
    return begin, DONE


@inner
def fold(state, sizes, g, high_ranks, image, depth_of_image, k, n):
    """Merge a sketch with `depth_of_image` levels into `g`; return how it ended. The smaller k wins, unless
    it
    belongs to an image that has every value and so no error."""
    if n > MAX_N - state.n[g]:
        return TOO_MANY
    smaller = np.int64(state.k[g])
    if depth_of_image > 1:
        smaller = min(smaller, k)
    depth, retained, nominal, final = _combined(state, sizes, g, smaller, image, depth_of_image)
    if (final if retained >= nominal else depth) >= state.counts.shape[1]:
        return MORE_LEVELS
    if not _has_scratch(state, retained):
        return MORE_SCRATCH
    room = nominal if depth > 1 else min(nominal, max(2 * retained, _LEAST))
    if state.room[g] < retained and not _move(state, g, max(room, retained)):
        return NO_ROOM
    _combine(state, sizes, g, smaller, depth, nominal, image, depth_of_image)
    if retained >= nominal:
        _compress(state, sizes, g, high_ranks)
    state.n[g] += n
    state.low[g] = min(state.low[g], image.edges[0])
    state.high[g] = max(state.high[g], image.edges[1])
    return DONE
