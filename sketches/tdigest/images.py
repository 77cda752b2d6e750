"""Write and validate the bytes of a t-digest of doubles: the image of Apache DataSketches.

    byte 0         1          2           3  4   5      6  7
         preamble  serial     family 20   k      flags  unused
         longs     version

1, 1, empty flag: nothing follows. 1, 1, single flag: the only value follows. Otherwise 2, 1:

    clusters (uint32), waiting values (uint32), lowest, highest value; mean and weight (uint64) of each
    cluster, ascending; the waiting values

Flags: 1 empty, 2 single, 4 the next merge goes backwards. Source: datasketches-cpp `tdigest`.
"""

from __future__ import annotations

import numpy as np

from ..core.compilation.jit import inner, lean
from ..core.resume import DONE
from ..core.sorting.sort import copy
from .update import MAX_N, TOO_MANY, absorb, adopt, all_clusters, most_waiting

HEADER, CLUSTER = 32, 16
_FAMILY = 20
_EMPTY, _SINGLE, _BACKWARDS = 1, 2, 4
MIN_K = 10

FAULTS = (
    "",
    "fewer bytes than its header needs",
    "another version, family, k or flags",
    "a length that isn't its clusters'",
    "more clusters or waiting values than its k allows",
    "a value is NaN or infinite, or beyond the lowest and highest",
    "its clusters are out of order or have no weight",
    "its weights are beyond any count",
)
"""What is wrong with an image, by the number that `decode` returns."""


@inner
def _number(data, at, width):
    word = np.uint64(0)
    for b in range(width):
        word |= np.uint64(data[at + b]) << np.uint64(8 * b)
    return np.int64(word)


@inner
def _put(data, at, width, number):
    word = np.uint64(number)
    for b in range(width):
        data[at + b] = np.uint8((word >> np.uint64(8 * b)) & np.uint64(255))


@inner
def decode(data, read, edges, numbers):
    """Decode bytes; return the fault. `numbers` becomes (k, clusters, waiting values, n, backwards).

    `read` gets means, weights and values one after another, and has room for an eighth as many as there are
    bytes; `edges` gets the lowest and the highest value.
    """
    size = len(data)
    if size < 8:
        return 1
    k, flags = _number(data, 3, 2), np.int64(data[5])
    if data[1] != 1 or data[2] != _FAMILY or k < MIN_K or flags > 7 or data[6] or data[7]:
        return 2
    numbers[0], numbers[1], numbers[2], numbers[3], numbers[4] = k, 0, 0, 0, flags & _BACKWARDS
    if flags & (_EMPTY | _SINGLE):
        count = 0 if flags & _EMPTY else 1
        if data[0] != 1 or flags & 3 == 3 or size != 8 + 8 * count:
            return 3
        if count:
            copy(data[8:16], read.view(np.uint8))
            edges[0] = edges[1] = read[0]
            if not abs(read[0]) < np.inf:
                return 5
            read[1] = 1.0
            numbers[1] = numbers[3] = 1
        return 0
    if data[0] != 2:
        return 2
    if size < HEADER:
        return 1
    clusters, waiting = _number(data, 8, 4), _number(data, 12, 4)
    end = HEADER + CLUSTER * clusters + 8 * waiting
    if size < end or clusters + waiting == 0:
        return 3
    for at in range(end, size):  # the datasketches package leaves room after freshly merged clusters
        if data[at]:
            return 3
    if clusters > 4 * k + 30 or waiting > most_waiting(k):
        return 4
    copy(data[16:32], edges.view(np.uint8))
    low, high = edges[0], edges[1]
    if not (abs(low) < np.inf and abs(high) < np.inf):
        return 5
    means = read[:clusters]
    at, total, good, rising = HEADER, 0.0, True, True
    for i in range(clusters):
        copy(data[at : at + 8], means[i : i + 1].view(np.uint8))
        weight = _number(data, at + 8, 8)
        read[clusters + i] = np.float64(weight)
        good &= (low <= means[i]) & (means[i] <= high)
        rising &= weight >= 1
        if i:
            rising &= means[i - 1] <= means[i]
        total += np.float64(weight)
        at += CLUSTER
    values = read[2 * clusters : 2 * clusters + waiting]
    copy(data[at : at + 8 * waiting], values.view(np.uint8))
    for i in range(waiting):
        good &= (low <= values[i]) & (values[i] <= high)
    if not good:
        return 5
    if not rising:
        return 6
    if total + waiting > np.float64(MAX_N):
        return 7
    numbers[1], numbers[2], numbers[3] = clusters, waiting, np.int64(total) + waiting
    return 0


@lean
def check(data, offsets, read, edges, numbers, at):
    """Return the first rejected image from `at` on, its fault, and the number of values before it."""
    seen = 0.0
    for i in range(at, len(offsets) - 1):
        fault = decode(data[offsets[i] : offsets[i + 1]], read, edges, numbers)
        if fault:
            return i, fault, seen
        seen += numbers[3]
    return len(offsets) - 1, 0, seen


@lean
def merge(state, k, data, offsets, read, edges, numbers, groups, at):
    """Merge image i, from number `at` on, into digest ``groups[i]``, as a step of `resume`.

    `check` has validated all images. An empty digest becomes an exact copy of an image with its own k.
    """
    for i in range(at, len(groups)):
        decode(data[offsets[i] : offsets[i + 1]], read, edges, numbers)
        clusters, waiting, n = numbers[1], numbers[2], numbers[3]
        if n == 0:
            continue
        g = groups[i]
        held = np.int64(state.weight[g]) + state.waiting[g]
        if held + n > MAX_N:
            return i, TOO_MANY
        means, weights = read[:clusters], read[clusters : 2 * clusters]
        values = read[2 * clusters : 2 * clusters + waiting]
        if held == 0 and numbers[0] == k:
            why = adopt(state, g, read[: 2 * clusters + waiting], clusters, n - waiting, numbers[4] != 0)
        else:
            why = absorb(state, k, g, values, means, weights, np.float64(n))
        if why != DONE:
            return i, why
        state.low[g] = min(state.low[g], edges[0])
        state.high[g] = max(state.high[g], edges[1])
    return len(groups), DONE


@lean
def write(state, k, first, out, ends):
    """Write the images of as many digests as there are `ends`, from `first` on, and their ends. The digests
    don't change, even if values are waiting."""
    at = np.int64(0)
    for i in range(len(ends)):
        g = first + i
        n = np.int64(state.weight[g]) + state.waiting[g]
        out[at] = 2 if n > 1 else 1
        out[at + 1], out[at + 2] = 1, _FAMILY
        _put(out, at + 3, 2, k)
        backwards = state.backwards[g] != (state.waiting[g] > 0)
        out[at + 5] = (
            (_EMPTY if n == 0 else 0) | (_SINGLE if n == 1 else 0) | (_BACKWARDS if backwards else 0)
        )
        out[at + 6] = out[at + 7] = 0
        at += 8
        if n == 1:
            copy(state.low[g : g + 1].view(np.uint8), out[at:])
            at += 8
        elif n > 1:
            count = all_clusters(state, k, g)
            _put(out, at, 4, count)
            _put(out, at + 4, 4, 0)
            copy(state.low[g : g + 1].view(np.uint8), out[at + 8 :])
            copy(state.high[g : g + 1].view(np.uint8), out[at + 16 :])
            at += HEADER - 8
            for j in range(count):
                copy(state.scratch[j : j + 1].view(np.uint8), out[at:])
                _put(out, at + 8, 8, np.int64(state.scratch[count + j]))
                at += CLUSTER
        ends[i] = at
