"""Quantiles of many KLL sketches at once, as `KLL.quantiles` finds those of one."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..core.jit import kernel
from .compaction import fitted
from .levels import normalized_rank_error
from .store import Store


class Found(NamedTuple):
    """Of each sketch (rows) the values at shares of its values (columns), in the type of its items."""

    value: np.ndarray
    lower: np.ndarray
    upper: np.ndarray


def quantiles(store: Store, shares: np.ndarray) -> Found:
    """The values at shares, and between which ones they lie at 99 % confidence; of empty sketches zeros."""
    store.make_ready()
    state = store.state
    exact = state.depth + state.grain == 1
    sizes, at = np.unique(state.min_k, return_inverse=True)
    known = np.array([normalized_rank_error(int(k)) for k in sizes])
    errors = np.where(exact, 0.0, known[at]) if len(sizes) else np.empty(0)
    found = Found(*(np.zeros((store.n, len(shares)), store.dtype) for _ in range(3)))
    most = int(state.room.max(initial=0))
    region, items = np.empty((2, most), store.dtype)
    levels = np.empty(state.levels.shape[1] + 1, np.int32)
    weights, up_to = np.empty((2, most), np.int64)
    work = region, items, levels, weights, up_to, np.empty(1, np.uint64)
    _locate(state, store.tables.total, shares, errors, *work, *found)
    return found


@kernel
def _value_at(q, n, items, up_to, size, low, high):
    wanted = min(max(np.int64(np.ceil(q * n)), np.int64(1)), n)
    if wanted == 1:
        return low
    if wanted == n:
        return high
    at = np.searchsorted(up_to[:size], wanted)
    return items[min(at, size - 1)]


@kernel
def _locate(state, total, shares, errors, region, items, levels, weights, up_to, coin, value, lower, upper):
    """The items of each sketch in order, and of those the ones at each share and at its bounds."""
    for g in range(len(errors)):
        n = np.int64(state.n[g])
        if n == 0:
            continue
        fitted(state, total, g, region, levels, coin)
        size = 0
        for j in range(np.int64(state.grain[g])):
            if n >> np.int64(j) & 1:
                items[size] = region[j]
                weights[size] = np.int64(1) << np.int64(j)
                size += 1
        for h in range(np.int64(state.depth[g])):
            for i in range(levels[h], levels[h + 1]):
                items[size] = region[i]
                weights[size] = np.int64(1) << np.int64(state.grain[g] + h)
                size += 1
        order = np.argsort(items[:size])
        sorted_items = items[:size][order]
        seen = np.int64(0)
        for i in range(size):
            seen += weights[order[i]]
            up_to[i] = seen
        low, high = state.low[g], state.high[g]
        for j in range(len(shares)):
            q, error = shares[j], errors[g]
            value[g, j] = _value_at(q, n, sorted_items, up_to, size, low, high)
            lower[g, j] = _value_at(max(0.0, q - error), n, sorted_items, up_to, size, low, high)
            upper[g, j] = _value_at(min(1.0, q + error), n, sorted_items, up_to, size, low, high)
