"""Quantiles of many REQ sketches at once, with their bounds."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..core.groups.blocks import blocks
from ..core.sorting.shares import values_at
from .sections import rank_errors
from .store import Store

_AT_ONCE = 1 << 20
"""Items that are sorted at a time, unless a single sketch has more."""


class TailEstimates(NamedTuple):
    """The quantiles of each sketch (rows) at shares (columns), and their bounds."""

    value: np.ndarray
    lower: np.ndarray
    upper: np.ndarray


def errors_at(store: Store, first: int, end: int, ranks: np.ndarray, std_devs: int) -> np.ndarray:
    """Return `std_devs` standard deviations of the rank error for each sketch from `first` to `end`
    (rows)."""
    state = store.state
    k, depth, n = (column[first:end, None] for column in (state.k, state.depth, state.n))
    return std_devs * rank_errors(k, depth, n, ranks, store.high_ranks)


def quantiles(store: Store, shares: np.ndarray) -> TailEstimates:
    """Return the values at shares with bounds at 95.4 % confidence; zeros for empty sketches."""
    errors = errors_at(store, 0, store.n, shares[None, :], 2)
    columns = shares + 0 * errors, np.maximum(shares - errors, 0.0), np.minimum(shares + errors, 1.0)
    requested = np.concatenate(columns, axis=1)
    estimates = np.empty(requested.shape)
    for first, end in blocks(store.state.retained, _AT_ONCE):
        items, weights, ends, edges = store.unpacked(first, end)
        n = store.state.n[first:end]
        values_at(items, weights, ends, n, edges.T, requested[first:end], estimates[first:end])
    return TailEstimates(*np.split(estimates, 3, axis=1))
