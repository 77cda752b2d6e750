"""Many t-digests in one pool: kernels that buffer values, and merge them into clusters.

Digest g owns a region of the pool: the means of its clusters, ascending, their weights, then waiting values.
When the buffer of waiting values is full, everything is sorted and joined from one end: a cluster absorbs the
next value or cluster as long as its weight stays below the limit of the scale function at its rank, which is
smallest at both ends. Every second merge starts from the other end.

Source: Dunning, Ertl, "Computing Extremely Accurate Quantiles Using t-Digests", 2019 (merging digests, scale
function k2); the buffer, limits and arithmetic are those of datasketches-cpp `tdigest`, with equal bytes.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ..core.compilation.jit import inner, lean
from ..core.groups.arena import allocate
from ..core.resume import DONE, NO_ROOM
from ..core.sorting.sort import copy, sort
from ..core.sorting.sorting_network import CHUNK

MORE_SCRATCH = -2
TOO_MANY = 1
MAX_N = (1 << 53) - 1
"""The largest weight: kernels use doubles for weights, which are exact integers up to here."""
SHARED = 3
"""The first fields of `State`, which all digests share; each row of the other fields is one digest's."""
_LEAST = 8


class State(NamedTuple):
    """The pool, its extent and scratch; then a row for each digest.

    A row has the `room` of its region in places, the numbers of `clusters` and `waiting` values, the total
    `weight` of the clusters, and whether the next merge goes `backwards`.
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
    """Return the most waiting values: four times as many as DataSketches has room for clusters."""
    return 4 * (2 * k + (30 if k < 30 else 10))


@inner
def joined(k, values, means, weights, other_means, other_weights, total, backwards, work):
    """Join sorted values and the clusters of one or two digests, with `total` weight; return the number of
    clusters. They are written to `work`, means first, weights from ``len(work) // 4`` on.

    The last quarters of `work` hold everything in order; each has room for all items.
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
        # Among equal items, values come first, then the other digest's clusters, as after a stable sort.
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
    # The scale function k2: a cluster at rank q may have a share q (1 − q) / normalizer of the weight.
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
            if abs(step) == np.inf:  # the difference overflows
                step = 0.0
                mean = mean * ((weight - more) / weight) + x * (more / weight)
            moved = mean + step
            # Rounding must not move a mean outside the range of its values.
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
    """Reverse the order of items."""
    for i in range(len(items) >> 1):
        j = len(items) - 1 - i
        items[i], items[j] = items[j], items[i]


def scratch_places(items):
    """Return the scratch needed to join this many items: four arrays, values, and room to sort these."""
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
    """Join digest `g` with another's values and clusters, of weight `more`, in the scratch only; return the
    number of clusters. See `joined` for their layout. There is scratch for all of them."""
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
    """Give digest `g` a region of `room` places. Returns False, with nothing changed, if there is no room."""
    to = allocate(state.extent, room, len(state.items))
    if to < 0:
        return False
    held = 2 * np.int64(state.clusters[g]) + state.waiting[g]
    copy(state.items[state.start[g] : state.start[g] + held], state.items[to : to + held])
    state.start[g], state.room[g] = to, room
    return True


@inner
def absorb(state, k, g, values, means, weights, more):
    """Join digest `g` with another's values and clusters, of weight `more`; return how it ended."""
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
    """Fill the empty digest `g`: `items` has the means and weights of its clusters, and waiting values."""
    if state.room[g] < len(items) and not _move(state, g, max(len(items), _LEAST)):
        return NO_ROOM
    copy(items, state.items[state.start[g] :])
    state.clusters[g], state.waiting[g] = clusters, len(items) - 2 * clusters
    state.weight[g], state.backwards[g] = weight, backwards
    return DONE


@inner
def all_clusters(state, k, g):
    """Merge the waiting values of digest `g` in the scratch and return the number of clusters: the scratch
    begins with their means, then their weights. The digest doesn't change. There is enough scratch."""
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
    """Write the means and weights of digest `g` as the rows of `clusters`; return the number of clusters."""
    count = all_clusters(state, k, g)
    copy(state.scratch[:count], clusters[0])
    copy(state.scratch[count : 2 * count], clusters[1])
    return count


@lean
def quantiles(state, k, shares, out):
    """Compute the values at shares for each digest (rows); 0 for empty digests.

    A cluster's mean is placed in the middle of its ranks; the extremes are before the first and after the
    last. Interpolation uses a weighted mean, not a difference, which might overflow.
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
    """Append values, with zeros of one sign, without NaN and infinities; return their number."""
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
    """Add values until they end or room runs out; return (how many were added, how it ended)."""
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
    """Add runs of values from number `at` on, without NaN and infinities, as a step of `resume`.

    Run r, up to ``ends[r]``, belongs to digest ``groups[r]``; `edges` has room for two numbers.
    """
    begin = np.int64(at)
    for r in range(len(ends)):
        if begin < ends[r]:
            added, why = _add(state, k, groups[r], edges, values[begin : ends[r]])
            begin += added
            if why != DONE:
                return begin, why
    return begin, DONE
