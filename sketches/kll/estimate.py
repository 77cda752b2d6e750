"""Quantiles of many KLL sketches at once; `KLL.quantiles` is for one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from .levels import normalized_rank_error
from .store import Store

_AT_ONCE = 1 << 20
"""Items that are sorted at a time, unless a single sketch has more."""


class RankEstimates(NamedTuple):
    """The quantiles of each sketch (rows) at shares (columns), in the type of its items."""

    value: np.ndarray
    lower: np.ndarray
    upper: np.ndarray


def quantiles(store: Store, shares: np.ndarray) -> RankEstimates:
    """Return the values at shares with bounds at 99 % confidence; zeros for empty sketches."""
    state = store.state
    exact = state.depth + state.grain == 1
    sizes, at = np.unique(state.min_k, return_inverse=True)
    known = np.array([normalized_rank_error(int(k)) for k in sizes])
    errors = np.where(exact, 0.0, known[at])[:, None] if len(sizes) else np.empty((0, 1))
    columns = shares + 0 * errors, np.maximum(shares - errors, 0.0), np.minimum(shares + errors, 1.0)
    requested = np.concatenate(columns, axis=1)
    estimates = np.zeros(requested.shape, store.dtype)
    for first, end in _blocks(state.room):
        estimates[first:end] = _at_shares(store, first, end, requested[first:end])
    return RankEstimates(*np.split(estimates, 3, axis=1))


def _blocks(rooms: np.ndarray) -> Iterator[tuple[int, int]]:
    """Yield ranges of sketches with `_AT_ONCE` items together, or a single sketch."""
    ends, first = np.cumsum(rooms, dtype=np.int64), 0
    while first < len(rooms):
        before = int(ends[first - 1]) if first else 0
        end = max(int(np.searchsorted(ends, before + _AT_ONCE, "right")), first + 1)
        yield first, end
        first = end


def _at_shares(store: Store, first: int, end: int, shares: np.ndarray) -> np.ndarray:
    """Return the values at shares (rows) of the sketches from `first` to `end`."""
    items, weights, ends = store.unpacked(first, end)
    held = np.diff(ends, prepend=0)
    up_to = np.cumsum(weights)
    state = store.state
    n, low, high = (column[first:end, None] for column in (state.n, state.low, state.high))
    wanted = np.clip(np.ceil(shares * n).astype(np.int64), 1, np.maximum(n, 1))
    wanted = np.where(shares >= 1.0, n, wanted)  # beyond 2^53, not every n is a double
    before = np.concatenate([[0], up_to])[ends - held][:, None]
    places = np.minimum(np.searchsorted(up_to, before + wanted), np.maximum(ends[:, None] - 1, 0))
    estimates = np.where(wanted == 1, low, np.where(wanted == n, high, items[places] if len(items) else low))
    return np.where(n == 0, np.zeros(1, items.dtype), estimates)
