"""Quantiles of many KLL sketches at once; `KLL.quantiles` is for one."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..core.groups.blocks import blocks
from ..core.sorting.shares import values_at
from .levels import normalized_rank_error
from .store import Store

_AT_ONCE = 1 << 16
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
    # The bounds of exact sketches are their values, and share their memory.
    estimates = np.empty((1 if exact.all() else 3, len(errors), len(shares)), store.dtype)
    for first, end in blocks(state.room, _AT_ONCE):
        off = errors[first:end]
        columns = [shares + 0 * off]
        if off.any():
            columns += [np.maximum(shares - off, 0.0), np.minimum(shares + off, 1.0)]
        items, weights, ends = store.unpacked(first, end)
        n, edges = state.n[first:end], np.stack([state.low[first:end], state.high[first:end]])
        block = np.empty((end - first, len(columns), len(shares)), store.dtype)
        requested = np.concatenate(columns, axis=1)
        values_at(items, weights, ends, n, edges, requested, block.reshape(requested.shape))
        estimates[:, first:end] = block.swapaxes(0, 1)
    return RankEstimates(*np.broadcast_to(estimates, (3, len(errors), len(shares))))
