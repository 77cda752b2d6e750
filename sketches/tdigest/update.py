"""Many t-digests in one pool: kernels that buffer values, and merge them into clusters.

Digest g owns a region of the pool: the means of its clusters, ascending, their weights, then waiting values.
Once as many wait as may, all are put in order and joined from one end: a cluster takes the next value, or
cluster, in as long as its weight stays below the limit that the scale function sets at its rank, which is
least at both ends. Every second time it goes from the other end.

Source: Dunning, Ertl, "Computing Extremely Accurate Quantiles Using t-Digests", 2019 (merging digests, scale
function k2); the buffer, limits and arithmetic of datasketches-cpp `tdigest`, whose bytes come out.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ..core.arena import allocate
from ..core.jit import inner, lean
from ..core.resume import DONE, NO_ROOM
from ..core.sort import copy, sort
from ..core.sorting_network import CHUNK

MORE_SCRATCH = -2
TOO_MANY = 1
MAX_N = (1 << 53) - 1
"""Weights are doubles within kernels: whole numbers up to here."""
SHARED = 3
"""The first fields of `State` that digests share; a row of each other one belongs to one digest."""
_LEAST = 8


class State(NamedTuple):
    """The pool, its extent and what is worked in; then a row for each digest.

    `room` places of its region; `clusters` and `waiting` values; `weight` of the clusters together; whether
    the next merge goes `backwards`.
    """

    items: np.ndarray
    extent: np.ndarray
    scratch: np.ndarray
    start: np.ndarray
    room: np.ndarray
    clusters: np.ndarray
    waiting: np.ndarray
    weight: np.ndarray
    low: np.ndarray
    high: np.ndarray
    backwards: np.ndarray


@inner
def most_waiting(k):
    """How many values wait at most: four times as many as DataSketches has room for clusters."""
    return 4 * (2 * k + (30 if k < 30 else 10))


@inner
def joined(k, values, means, weights, other_means, other_weights, total, backwards, work):
    """Join values, sorted, and the clusters of one or two digests, of so much weight together; how many
    clusters come of it. They lie in `work` then, means first, weights from ``len(work) // 4`` on.

    The rest of `work` holds everything in order: its last quarters, of as many items at least.
    """
    part = len(work) // 4
    out, out_weights, ordered, amounts = (
        work[:part],
        work[part : 2 * part],
        work[2 * part : 3 * part],
        work[3 * part :],
    )
    a, b, c, n = 0, 0, 0, len(values) + len(means) + len(other_means)
    for i in range(n):
        # Of equal ones values come first, then another's clusters, as a stable sort leaves them.
        x, weight, which = np.inf, 1.0, 3
        if a < len(values):
            x, which = values[a], 0
        if b < len(other_means) and (which == 3 or other_means[b] < x):
            x, weight, which = other_means[b], other_weights[b], 1
        if c < len(means) and (which == 3 or means[c] < x):
            x, weight, which = means[c], weights[c], 2
        a, b, c = a + (which == 0), b + (which == 1), c + (which == 2)
        place = n - 1 - i if backwards else i
        ordered[place], amounts[place] = x, weight
    # The scale function k2: a cluster at rank q may weigh q (1 − q) / normalizer of everything.
    normalizer = 2.0 * k / (4.0 * math.log(total / (2.0 * k)) + 24.0)
    count, before, at_before = 0, 0.0, 0.0
    mean, weight = ordered[0], amounts[0]
    for i in range(1, n):
        x, more = ordered[i], amounts[i]
        proposed = weight + more
        to = (before + proposed) / total
        limit = min(at_before, to * (1.0 - to) / normalizer)
        if i != 1 and proposed <= total * limit:
            weight = proposed
            step = (x - mean) * more / weight
            if abs(step) == np.inf:  # too far apart for a difference
                step = 0.0
                mean = mean * ((weight - more) / weight) + x * (more / weight)
            moved = mean + step
            # Rounding must not carry a mean past what it is a mean of.
            mean = max(min(moved, mean), x) if x < mean else min(max(moved, mean), x)
        else:
            out[count], out_weights[count] = mean, weight
            count += 1
            before += weight
            at = before / total
            at_before = at * (1.0 - at) / normalizer
            mean, weight = x, more
    out[count], out_weights[count] = mean, weight
    count += 1
    if backwards:
        _turn(out[:count])
        _turn(out_weights[:count])
    return count


@inner
def _turn(items):
    """Turn the order of items round."""
    for i in range(len(items) >> 1):
        j = len(items) - 1 - i
        items[i], items[j] = items[j], items[i]


def scratch_places(items):
    """What joining so many items takes: four arrays of them, values, and what those are sorted in."""
    return 8 * items + 16 * CHUNK


scratch_size = inner(scratch_places)
"""`scratch_places` for kernels."""


@inner
def _has_scratch(state, items):
    if scratch_size(items) <= len(state.scratch):
        return True
    state.extent[0].wanted = scratch_size(items)
    return False


@inner
def merged(state, k, g, values, means, weights, more):
    """Join what digest `g` has with another's values and clusters, of weight `more`, in the scratch alone;
    how many clusters come of it. See `joined` for where they lie. There is scratch for all of them."""
    own, waiting = np.int64(state.clusters[g]), np.int64(state.waiting[g])
    start = state.start[g]
    n = own + waiting + len(means) + len(values)
    work, rest = state.scratch[: 4 * n], state.scratch[4 * n :]
    ordered, spare = rest[: waiting + len(values)], rest[waiting + len(values) :]
    copy(state.items[start + 2 * own : start + 2 * own + waiting], ordered)
    copy(values, ordered[waiting:])
    sort(ordered, spare, np.inf)
    own_means = state.items[start : start + own]
    own_weights = state.items[start + own : start + 2 * own]
    total = state.weight[g] + waiting + more
    return joined(k, ordered, own_means, own_weights, means, weights, total, state.backwards[g], work)


@inner
def _move(state, g, room):
    """Give digest `g` a region of so many places; False, and nothing has changed, if there is no room."""
    to = allocate(state.extent, room, len(state.items))
    if to < 0:
        return False
    held = 2 * np.int64(state.clusters[g]) + state.waiting[g]
    copy(state.items[state.start[g] : state.start[g] + held], state.items[to : to + held])
    state.start[g], state.room[g] = to, room
    return True


@inner
def absorb(state, k, g, values, means, weights, more):
    """Join digest `g` with another's values and clusters, of weight `more`; how it ended."""
    n = np.int64(state.clusters[g]) + state.waiting[g] + len(means) + len(values)
    if n == 0:
        return DONE
    if not _has_scratch(state, n):
        return MORE_SCRATCH
    count = merged(state, k, g, values, means, weights, more)
    if state.room[g] < 2 * count and not _move(state, g, 2 * count + _LEAST):
        return NO_ROOM
    to = state.start[g]
    copy(state.scratch[:count], state.items[to:])
    copy(state.scratch[n : n + count], state.items[to + count :])
    state.weight[g] += state.waiting[g] + more
    state.clusters[g], state.waiting[g] = count, 0
    state.backwards[g] = not state.backwards[g]
    return DONE


@inner
def adopt(state, g, items, clusters, weight, backwards):
    """Make the empty digest `g` one of so many clusters: `items` are their means, weights, waiting values."""
    if state.room[g] < len(items) and not _move(state, g, max(len(items), _LEAST)):
        return NO_ROOM
    copy(items, state.items[state.start[g] :])
    state.clusters[g], state.waiting[g] = clusters, len(items) - 2 * clusters
    state.weight[g], state.backwards[g] = weight, backwards
    return DONE


@inner
def all_clusters(state, k, g):
    """How many clusters digest `g` has once nothing waits: the scratch begins with their means, then their
    weights. The digest stays as it is. There is scratch for all it has."""
    own, start = np.int64(state.clusters[g]), state.start[g]
    if state.waiting[g] == 0:
        copy(state.items[start : start + 2 * own], state.scratch)
        return own
    nothing = state.items[:0]
    count = merged(state, k, g, nothing, nothing, nothing, 0.0)
    n = own + state.waiting[g]
    copy(state.scratch[n : n + count], state.scratch[count:])
    return count


@lean
def unpack(state, k, g, clusters):
    """How many clusters digest `g` has; their means and weights as the rows of `clusters`."""
    count = all_clusters(state, k, g)
    copy(state.scratch[:count], clusters[0])
    copy(state.scratch[count : 2 * count], clusters[1])
    return count


@lean
def quantiles(state, k, shares, out):
    """The values at shares of each digest's values (rows), of empty ones 0.

    A cluster's mean stands in the middle of its ranks; the ends lie before the first and after the last. What
    lies between is a mean of two values, not a difference, which might overflow.
    """
    for g in range(len(out)):
        n = state.weight[g] + state.waiting[g]
        if n == 0:
            out[g, :] = 0.0
            continue
        count = all_clusters(state, k, g)
        means, weights = state.scratch[:count], state.scratch[count : 2 * count]
        for j in range(len(shares)):
            rank = shares[j] * n
            at, before, value, i = 0.0, 0.0, state.low[g], 0
            to, higher = 0.5 * weights[0], means[0]
            while i < count and to < rank:
                at, value, before = to, higher, before + weights[i]
                i += 1
                to, higher = (before + 0.5 * weights[i], means[i]) if i < count else (n, state.high[g])
            part = min((rank - at) / (to - at), 1.0) if to > at else 1.0
            out[g, j] = min(max(value * (1.0 - part) + higher * part, value), higher)


@inner
def _append(values, to, edges):
    """Values behind one another, zeros all of one sign, without NaN and infinities; how many those are."""
    low, high, count = edges[0], edges[1], 0
    for i in range(len(values)):
        x = values[i] + 0.0
        to[count] = x
        good = abs(x) < np.inf
        count += good
        low = x if good and x < low else low
        high = x if good and x > high else high
    edges[0], edges[1] = low, high
    return count


@inner
def _add(state, k, g, edges, values):
    """Add values until they end or room does; (how many were added, how it ended)."""
    done = 0
    nothing = state.items[:0]
    full = most_waiting(k)
    while done < len(values):
        waiting = np.int64(state.waiting[g])
        if waiting == full:
            why = absorb(state, k, g, nothing, nothing, nothing, 0.0)
            if why != DONE:
                return done, why
            continue
        held = 2 * np.int64(state.clusters[g]) + waiting
        free = min(np.int64(state.room[g]) - held, full - waiting)
        if free <= 0:
            most = 2 * np.int64(state.clusters[g]) + full
            if not _move(state, g, min(most, max(2 * held, held + len(values) - done, _LEAST))):
                return done, NO_ROOM
            continue
        some = min(free, len(values) - done)
        edges[0], edges[1] = state.low[g], state.high[g]
        to = state.items[state.start[g] + held : state.start[g] + held + some]
        state.waiting[g] += _append(values[done : done + some], to, edges)
        state.low[g], state.high[g] = edges[0], edges[1]
        done += some
    return done, DONE


@lean
def update(state, k, groups, ends, values, edges, at):
    """Add runs of values from number `at` on, NaN and infinities skipped, as `resume` has it.

    Run r, up to ``ends[r]``, is of digest ``groups[r]``; `edges` is room for two numbers.
    """
    begin = np.int64(at)
    for r in range(len(ends)):
        if begin < ends[r]:
            added, why = _add(state, k, groups[r], edges, values[begin : ends[r]])
            begin += added
            if why != DONE:
                return begin, why
    return begin, DONE
