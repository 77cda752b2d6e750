"""Quantiles of many DDSketches at once: the bucket of a rank, and the value that represents it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..core.compilation.jit import inner, lean
from .store import Store

_ROUNDING = 1e-12
_LONGS = -(2.0**63), 2.0**63
"""The range of int64."""


class Estimates(NamedTuple):
    """Quantiles and their bounds, float64."""

    value: np.ndarray
    lower: np.ndarray
    upper: np.ndarray


@inner
def _walk(state, g, rank, at, up_to, sign, key):
    """Walk from bucket number `at`, up to which there are `up_to` values, to the bucket of a rank; return its
    number, the values up to it, its sign and key."""
    start, first, positive, negative = state.start[g], state.low[g], state.length[g, 0], state.length[g, 1]
    # Ascending: negative values from their window's end, zeros, positive values.
    while up_to <= rank and at < negative + positive:
        at += 1
        if at < negative:
            here, place, k = np.int64(-1), 1 + positive + negative - at, first[1] + negative - 1 - at
        elif at == negative:
            here, place, k = np.int64(0), np.int64(0), np.int64(0)
        else:
            here, place, k = np.int64(1), 1 + at - negative, first[0] + at - negative - 1
        count = state.pool[start + place]
        if count > 0.0:
            up_to += count
            sign, key = here, k
    return at, up_to, sign, key


@lean
def locate(state, seen, whole, shares, signs, keys):
    """Find the signs and keys of three buckets at each share (ascending) of each nonempty sketch.

    They are the bucket of the value at share q, of rank ⌊q (n − 1)⌋, and those of the ranks ⌊q n⌋ − 1 and
    ⌈q n⌉, between which all definitions of a quantile lie. Fractional counts have no ranks: then it is the
    first value up to which there is a share q of the weight.
    """
    for g in range(len(seen)):
        if seen[g] <= 0.0:
            continue
        at, up_to, sign, key = np.int64(-1), 0.0, np.int64(0), np.int64(0)
        last = np.ceil(seen[g]) - 1.0
        for j in range(len(shares)):
            if not whole[g]:
                reached = shares[j] * seen[g]
                # Sums of fractions have rounding errors, which must not make it miss a share.
                rounding = 1e-12 * seen[g]
                before, behind = max(reached - rounding, 0.0), reached + rounding
                rank = behind if shares[j] == 1.0 else before
            else:
                rank = max(min(np.floor(shares[j] * (seen[g] - 1.0) + 1e-9), last), 0.0)
                before = max(min(np.floor(shares[j] * seen[g]) - 1.0, rank), 0.0)
                behind = min(max(np.ceil(shares[j] * seen[g]), rank), last)
            at, up_to, sign, key = _walk(state, g, before, at, up_to, sign, key)
            signs[0, g, j], keys[0, g, j] = sign, key
            # The next share may come before these.
            place, total, s, k = _walk(state, g, rank, at, up_to, sign, key)
            signs[1, g, j], keys[1, g, j] = s, k
            _, _, s, k = _walk(state, g, behind, place, total, s, k)
            signs[2, g, j], keys[2, g, j] = s, k


def seen_by(store: Store) -> np.ndarray:
    """Return the number of values in each sketch (float64, because weighted bytes may contain fractions)."""
    return store.seen()[0]


def quantiles(store: Store, shares: np.ndarray, whole: bool) -> Estimates:
    """Return the values of each sketch (rows) at shares (columns); those of empty sketches are meaningless.

    A value's rank is ⌊q (n − 1)⌋; the bounds hold for the ranks of all definitions of a quantile, ⌊q n⌋ − 1
    to ⌈q n⌉ from 0. With `whole`, all values are integers: then bounds are integers, and so is each quantile
    for which an integer is within the accuracy of its whole bucket.
    """
    order = np.argsort(shares, kind="stable")
    (seen, whole_counts), ascending = store.seen(), np.ascontiguousarray(shares[order], np.float64)
    signs, keys = (np.zeros((3, store.n, len(shares)), np.int64) for _ in range(2))
    locate(store.state, seen, whole_counts, ascending, signs, keys)
    back = np.argsort(order)
    buckets = [buckets_of(store, signs[i][:, back], keys[i][:, back]) for i in range(3)]
    buckets = [_whole(bucket, store) if whole else widened(bucket, store) for bucket in buckets]
    return Estimates(buckets[1].value, buckets[0].lower, buckets[2].upper)


def buckets_of(store: Store, signs: np.ndarray, keys: np.ndarray) -> Estimates:
    """Return the values that represent buckets, from signs and keys, and the edges, up to rounding."""
    with np.errstate(over="ignore"):
        near, far = (np.exp2((keys - inner) / store.multiplier) for inner in (1, 0))
        middle = np.exp2(keys / store.multiplier + np.log2(2 / (1 + store.gamma)))
    for powers in (near, far, middle):
        # The topmost finite bucket reaches beyond the finite values.
        powers[:] = np.where(keys >= store.infinite, np.inf, np.minimum(powers, np.finfo(float).max))
    least = store.least
    value = signs * np.where(signs == 0, 0.0, middle)
    lower = np.where(signs > 0, near, np.where(signs < 0, -far, -least))
    upper = np.where(signs > 0, far, np.where(signs < 0, -near, least))
    return Estimates(value, lower, upper)


def widened(bucket: Estimates, store: Store) -> Estimates:
    """Widen a bucket's edges by the rounding error, so that they contain all its values."""
    value, lower, upper = bucket
    most, share = np.finfo(float).max, store.edge_error
    with np.errstate(over="ignore", invalid="ignore"):
        least, largest = lower - np.abs(lower) * share, upper + np.abs(upper) * share
    least = np.where(np.isfinite(lower), np.maximum(least, -most), lower)
    return Estimates(value, least, np.where(np.isfinite(upper), np.minimum(largest, most), upper))


def _whole(quantiles: Estimates, store: Store) -> Estimates:
    """Round a bucket's edges to integers inside it, and its value to one that is close to all of them, if
    any.

    A bucket with 58 and 59 has no integer within 1 % of both: there, the value stays between them.
    """
    value, lower, upper = quantiles
    accuracy, wide = store.relative_accuracy, widened(quantiles, store)
    with np.errstate(invalid="ignore"):
        # An edge that should be an integer may be off by a rounding error.
        least = np.ceil(lower - np.abs(lower) * _ROUNDING)
        most = np.floor(upper + np.abs(upper) * _ROUNDING)
    near, far = np.where(value < 0, -most, least), np.where(value < 0, -least, most)
    first, last = np.ceil(far * (1 - accuracy)), np.floor(near * (1 + accuracy))
    whole = np.copysign(np.clip(np.rint(np.abs(value)), first, last), value) + 0.0
    known = least <= most
    rounded = (
        np.where(known & (first <= last), whole, value),
        np.where(known, np.ceil(wide.lower), wide.lower),
        np.where(known, np.floor(wide.upper), wide.upper),
    )
    return Estimates(*(np.clip(part, *_LONGS) for part in rounded))
