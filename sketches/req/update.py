"""REQ's items of many sketches in one pool, and the kernels that add to them and compact them.

Sketch g owns a region of the pool. Its levels lie in it one after another, the top one first, each sorted
ascending; the last one, level 0, is followed by free room and sorted when it is compacted. Once the levels
hold `nominal` items together, those that are full are compacted from the bottom up: of the items away from
the accurate end, in order, every second one goes to the next level, where it counts twice as much.

Source: Cormode, Karnin, Liberty, Thaler, Veselý, "Relative Error Streaming Quantiles", PODS 2021; the
schedule as in datasketches-cpp `req_sketch`, so that levels hold as many items there and here.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..core.arena import allocate
from ..core.jit import inner, lean
from ..core.random import mix, step
from ..core.resume import DONE, NO_ROOM
from ..core.sort import copy, merge_sorted, sort
from ..core.sorting_network import CHUNK
from .sections import capacity, kept_back

MORE_LEVELS, MORE_SCRATCH = -2, -3
TOO_MANY = 1
MAX_N = 1 << 62
SHARED = 3
"""The first fields of `State` that sketches share; a row of each other one belongs to one sketch."""
_LEAST = 8


class State(NamedTuple):
    """The pool, its extent and what is worked in; then a row for each sketch.

    `retained` and `nominal` count items, `room` the places of its region. Bit h of `coins` is the last coin
    of level h, whose compactions `schedule` counts.
    """

    items: np.ndarray
    extent: np.ndarray
    scratch: np.ndarray
    start: np.ndarray
    room: np.ndarray
    retained: np.ndarray
    nominal: np.ndarray
    depth: np.ndarray
    k: np.ndarray
    n: np.ndarray
    low: np.ndarray
    high: np.ndarray
    state: np.ndarray
    coins: np.ndarray
    schedule: np.ndarray
    count: np.ndarray


class Image(NamedTuple):
    """A sketch that was read: its items, level 0 first, where each level ends, and how often compacted.

    `size` says what there is of it: its levels, k, n, and whether it is empty.
    """

    items: np.ndarray
    ends: np.ndarray
    schedule: np.ndarray
    edges: np.ndarray


@inner
def scratch_size(items):
    """What compacting so many items takes: four arrays of them, and what they are sorted in."""
    return 8 * items + 16 * CHUNK


@inner
def _outcome(state, sizes, g, k, image, depth_of_image, own_zero):
    """(depth, retained, nominal, whether anything is compacted) once an image is folded in and levels that
    are full are compacted; `own_zero` is how many items level 0 has by then. Nothing is changed."""
    own_depth = np.int64(state.depth[g])
    depth = max(own_depth, depth_of_image)
    retained, nominal = np.int64(0), np.int64(0)
    for h in range(depth):
        schedule = np.int64(0)
        if h < own_depth:
            schedule |= state.schedule[g, h]
            retained += own_zero if h == 0 else np.int64(state.count[g, h])
        if h < depth_of_image:
            schedule |= image.schedule[h]
            retained += image.ends[h + 1] - image.ends[h]
        nominal += capacity(sizes, k, schedule)
    if retained < nominal:
        return depth, retained, nominal, False
    carried, h = np.int64(0), 0
    while h < depth:
        schedule, count = np.int64(0), carried
        if h < own_depth:
            schedule |= state.schedule[g, h]
            count += own_zero if h == 0 else np.int64(state.count[g, h])
        if h < depth_of_image:
            schedule |= image.schedule[h]
            count += image.ends[h + 1] - image.ends[h]
        room, carried = capacity(sizes, k, schedule), np.int64(0)
        if count >= room:
            carried = (count - kept_back(sizes, k, schedule, count)) >> 1
            retained -= carried
            nominal += capacity(sizes, k, schedule + 1) - room
            if h == depth - 1:
                depth += 1
                nominal += capacity(sizes, k, 0)
        h += 1
    return depth, retained, nominal, True


@inner
def _move(state, g, room):
    """Give sketch `g` a region of so many places; False, and nothing has changed, if the pool is too small."""
    # The network that merges reads a chunk beyond a run.
    to = allocate(state.extent, room, len(state.items) - CHUNK)
    if to < 0:
        return False
    held = np.int64(state.retained[g])
    copy(state.items[state.start[g] : state.start[g] + held], state.items[to : to + held])
    state.start[g], state.room[g] = to, room
    return True


@inner
def _prepare(state, sizes, g, k, image, depth_of_image, own_zero):
    """(why it can't be rebuilt, and nothing has changed, or `DONE`; the nominal size then; as `_outcome`)."""
    depth, retained, nominal, compacts = _outcome(state, sizes, g, k, image, depth_of_image, own_zero)
    if depth > state.count.shape[1]:
        return MORE_LEVELS, nominal, compacts
    total = np.int64(state.retained[g]) + own_zero - state.count[g, 0] + image.ends[depth_of_image]
    if scratch_size(total) > len(state.scratch):
        state.extent[0].wanted = scratch_size(total)
        return MORE_SCRATCH, nominal, compacts
    room = nominal if depth > 1 else min(nominal, max(2 * retained, _LEAST))
    if state.room[g] < max(retained, room if compacts else 0) and not _move(state, g, room):
        return NO_ROOM, nominal, compacts
    return DONE, nominal, compacts


@inner
def _rebuild(state, sizes, g, k, high_ranks, image, depth_of_image, compacts):
    """Fold the levels of an image into those of sketch `g`, and compact those that are full if `compacts`.

    `_prepare` has made room. Levels are taken from the bottom up, and laid down from the end of the scratch
    towards its beginning, as a region has the top level first.
    """
    own_depth, top = np.int64(state.depth[g]), np.float32(np.inf)
    depth = max(own_depth, depth_of_image)
    region = state.items[state.start[g] : state.start[g] + state.retained[g]]
    total = len(region) + image.ends[depth_of_image]
    span = total + 2 * CHUNK
    promoted, merged = state.scratch[:span], state.scratch[span : 2 * span]
    mixed, out = state.scratch[2 * span : 3 * span], state.scratch[3 * span : 4 * span]
    spare = state.scratch[4 * span :]
    if compacts or depth_of_image:
        state.state[g] = step(state.state[g])
    bits = mix(state.state[g])
    if depth_of_image:
        # What was merged in has had coins of its own: the second of a pair of coins must not follow from a
        # first one that fell elsewhere.
        state.coins[g] = mix(bits)
    before, to, n_promoted, h = len(region), total, 0, 0
    while h < depth:
        level = region[before:before]
        schedule = np.int64(0)
        if h < own_depth:
            before -= state.count[g, h]
            level = region[before : before + state.count[g, h]]
            schedule |= state.schedule[g, h]
            if h == 0:
                sort(level, spare, top)
                if len(level):
                    state.low[g] = min(state.low[g], level[0])
                    state.high[g] = max(state.high[g], level[-1])
        if n_promoted:
            both = merged[: len(level) + n_promoted]
            merge_sorted(level, promoted[:n_promoted], both, top, spare)
            level = both
        if h < depth_of_image:
            schedule |= image.schedule[h]
            other = image.items[image.ends[h] : image.ends[h + 1]]
            both = mixed[: len(level) + len(other)]
            merge_sorted(level, other, both, top, spare)
            level = both
        count, n_promoted = len(level), 0
        first, end = np.int64(0), np.int64(0)
        if compacts and count >= capacity(sizes, k, schedule):
            kept = kept_back(sizes, k, schedule, count)
            first, end = (np.int64(0), count - kept) if high_ranks else (kept, count)
            # Every second compaction takes those that the one before would have left, so that errors cancel.
            if schedule & 1:
                state.coins[g] ^= np.uint64(1) << np.uint64(h)
            else:
                state.coins[g] &= ~(np.uint64(1) << np.uint64(h))
                state.coins[g] |= bits & (np.uint64(1) << np.uint64(h))
            odd = np.int64((state.coins[g] >> np.uint64(h)) & np.uint64(1))
            n_promoted = (end - first) >> 1
            taken = level[first:end]
            for i in range(n_promoted):
                promoted[i] = taken[2 * i + odd]
            schedule += 1
            if h == depth - 1:
                depth += 1
        to -= count - (end - first)
        copy(level[:first], out[to:])
        copy(level[end:], out[to + first :])
        state.count[g, h] = count - (end - first)
        state.schedule[g, h] = schedule
        h += 1
    state.depth[g], state.retained[g] = depth, total - to
    copy(out[to:total], state.items[state.start[g] :])


@inner
def _append(values, to):
    """Values as items, zeros all of one sign; how many of them are NaN."""
    bad = 0
    for i in range(len(values)):
        to[i] = values[i] + np.float32(0.0)
        bad += values[i] != values[i]
    return bad


@inner
def _without_nan(items):
    """Move the items that aren't NaN to the front; how many they are."""
    count = 0
    for i in range(len(items)):
        x = items[i]
        items[count] = x
        count += x == x
    return count


@inner
def _add(state, sizes, g, high_ranks, nothing, values):
    """Add values until they end or room does; (how many were added, how it ended)."""
    done = 0
    k = np.int64(state.k[g])
    while done < len(values):
        held, nominal = np.int64(state.retained[g]), np.int64(state.nominal[g])
        free = min(np.int64(state.room[g]), nominal) - held
        if free == 0:
            # Double its room until it holds what it may hold.
            wanted = min(nominal, max(2 * held, held + len(values) - done, _LEAST))
            if not _move(state, g, wanted):
                return done, NO_ROOM
            continue
        some = min(free, len(values) - done)
        if held + some == nominal:
            # Whatever compacting takes is made sure of before the item that is one too many: else a sketch
            # would depend on how its values were cut.
            own_zero = np.int64(state.count[g, 0]) + some
            why, _, _ = _prepare(state, sizes, g, k, nothing, 0, own_zero)
            if why != DONE:
                return done, why
        items = state.items[state.start[g] + held : state.start[g] + held + some]
        if _append(values[done : done + some], items):
            some_good = _without_nan(items)
        else:
            some_good = some
        state.retained[g] = held + some_good
        state.count[g, 0] += some_good
        state.n[g] += some_good
        done += some
        if held + some_good == nominal:
            _, _, state.nominal[g], _ = _outcome(state, sizes, g, k, nothing, 0, np.int64(state.count[g, 0]))
            _rebuild(state, sizes, g, k, high_ranks, nothing, 0, True)
    return done, DONE


@lean
def update(state, sizes, groups, ends, values, high_ranks, nothing, at):
    """Add runs of values from number `at` on, NaN skipped, as `resume` has it.

    Run r, up to ``ends[r]``, is of sketch ``groups[r]``. `nothing` is an image without levels.
    """
    begin = np.int64(at)
    for r in range(len(ends)):
        if begin < ends[r]:
            added, why = _add(state, sizes, groups[r], high_ranks, nothing, values[begin : ends[r]])
            begin += added
            if why != DONE:
                return begin, why
    return begin, DONE


@inner
def fold(state, sizes, g, high_ranks, image, depth, k, n):
    """Fold a sketch of so many levels into `g`; how it ended. Of different k the smaller counts, but for one
    that still holds every value and so has no error of its own."""
    if n > MAX_N - state.n[g]:
        return TOO_MANY
    smaller = np.int64(state.k[g])
    if depth > 1:
        smaller = min(smaller, k)
    why, nominal, compacts = _prepare(
        state, sizes, g, smaller, image, depth, np.int64(state.count[g, 0])
    )
    if why != DONE:
        return why
    state.k[g], state.nominal[g] = smaller, nominal
    _rebuild(state, sizes, g, smaller, high_ranks, image, depth, compacts)
    state.n[g] += n
    state.low[g] = min(state.low[g], image.edges[0])
    state.high[g] = max(state.high[g], image.edges[1])
    return DONE
