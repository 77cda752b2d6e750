"""Quantiles of many DDSketches at once: the bucket that a rank lies in, and the value that stands for it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..core.jit import lean
from .store import Store

_ROUNDING = 1e-12
_LONGS = -(2.0**63), 2.0**63
"""Between these lies all of int64."""


class Found(NamedTuple):
    """Quantiles and their bounds, float64."""

    value: np.ndarray
    lower: np.ndarray
    upper: np.ndarray


@lean
def count_all(state, seen):
    """How many values each sketch has seen."""
    for g in range(len(seen)):
        seen[g] = 0.0
        start = state.start[g]
        if start >= 0:
            seen[g] = state.pool[start]
            for i in range(start + 2, start + 2 + state.length[g, 0] + state.length[g, 1]):
                seen[g] += state.pool[i]


@lean
def locate(state, seen, shares, upwards, signs, keys):
    """Of each sketch that isn't empty the bucket at each share, given ascending: its sign and key.

    The value at share q has the rank ⌊q (n − 1)⌋, or ⌈q (n − 1)⌉ with `upwards`.
    """
    for g in range(len(seen)):
        if seen[g] <= 0.0:
            continue
        start, first, positive, negative = (
            state.start[g],
            state.low[g],
            state.length[g, 0],
            state.length[g, 1],
        )
        up_to, at, sign, key = 0.0, np.int64(-1), np.int64(0), np.int64(0)
        for j in range(len(shares)):
            rank = shares[j] * (seen[g] - 1.0)
            rank = min(np.ceil(rank - 1e-9) if upwards else np.floor(rank + 1e-9), np.ceil(seen[g]) - 1.0)
            # Ascending: negative values from their window's end, zeros, positive values.
            while up_to <= max(rank, 0.0) and at < negative + positive:
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
            signs[g, j], keys[g, j] = sign, key


def seen_by(store: Store) -> np.ndarray:
    """The values each sketch has seen (float64: weighted bytes may hold fractions)."""
    seen = np.empty(store.n)
    count_all(store.state, seen)
    return seen


def quantiles(store: Store, shares: np.ndarray, whole: bool) -> Found:
    """The values of each sketch (rows) at shares of its values (columns); those of empty ones mean nothing.

    A value's rank is ⌊q (n − 1)⌋; the bounds hold for the next rank too, so for a quantile by any of the
    usual definitions. With `whole` all values are whole numbers: so are the bounds, and each quantile for
    which a whole number is as close to all of its bucket as the accuracy says.
    """
    order = np.argsort(shares, kind="stable")
    seen, ascending = seen_by(store), np.ascontiguousarray(shares[order], np.float64)
    buckets = []
    for upwards in (False, True):
        signs, keys = (np.zeros((store.n, len(shares)), np.int64) for _ in range(2))
        locate(store.state, seen, ascending, upwards, signs, keys)
        back = np.argsort(order)
        buckets.append(_buckets(store, signs[:, back], keys[:, back]))
    if whole:
        buckets = [_whole(bucket, store.relative_accuracy) for bucket in buckets]
    return Found(buckets[0].value, buckets[0].lower, buckets[1].upper)


def _buckets(store: Store, signs: np.ndarray, keys: np.ndarray) -> Found:
    with np.errstate(over="ignore"):
        near, far = (np.exp2((keys - inner) / store.multiplier) for inner in (1, 0))
        middle = np.exp2(keys / store.multiplier + np.log2(2 / (1 + store.gamma)))
    for powers in (near, far, middle):
        # The topmost bucket of finite values reaches beyond them.
        powers[:] = np.where(keys >= store.infinite, np.inf, np.minimum(powers, np.finfo(float).max))
    least = np.finfo(float).tiny * store.gamma
    value = signs * np.where(signs == 0, 0.0, middle)
    lower = np.where(signs > 0, near, np.where(signs < 0, -far, -least))
    upper = np.where(signs > 0, far, np.where(signs < 0, -near, least))
    return Found(value, lower, upper)


def _whole(found: Found, accuracy: float) -> Found:
    """The whole numbers at a bucket's ends for its edges, and one of them as value where it is close to all.

    A bucket that holds 58 and 59 has none that is within 1 % of both: there the value stays between them.
    """
    value, lower, upper = found
    with np.errstate(invalid="ignore"):
        # An edge that is itself a whole number may have come out a rounding error below or above it.
        least = np.ceil(lower - np.abs(lower) * _ROUNDING)
        most = np.floor(upper + np.abs(upper) * _ROUNDING)
    near, far = np.where(value < 0, -most, least), np.where(value < 0, -least, most)
    first, last = np.ceil(far * (1 - accuracy)), np.floor(near * (1 + accuracy))
    whole = np.copysign(np.clip(np.rint(np.abs(value)), first, last), value) + 0.0
    known = least <= most
    told = (
        np.where(known & (first <= last), whole, value),
        np.where(known, least, lower),
        np.where(known, most, upper),
    )
    return Found(*(np.clip(part, *_LONGS) for part in told))
