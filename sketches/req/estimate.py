"""Quantiles of many REQ sketches at once, with their bounds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

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
    estimates = np.zeros(requested.shape)
    for first, end in _blocks(store.state.retained):
        estimates[first:end] = _at_shares(store, first, end, requested[first:end])
    return TailEstimates(*np.split(estimates, 3, axis=1))


def _blocks(retained: np.ndarray) -> Iterator[tuple[int, int]]:
    """Yield ranges of sketches with `_AT_ONCE` items together, or a single sketch."""
    ends, first = np.cumsum(retained, dtype=np.int64), 0
    while first < len(retained):
        before = int(ends[first - 1]) if first else 0
        end = max(int(np.searchsorted(ends, before + _AT_ONCE, "right")), first + 1)
        yield first, end
        first = end


def _at_shares(store: Store, first: int, end: int, shares: np.ndarray) -> np.ndarray:
    """Return the values at shares (rows) of the sketches from `first` to `end`."""
    items, weights, ends, edges = store.unpacked(first, end)
    held = np.diff(ends, prepend=0)
    up_to = np.cumsum(weights)
    n = store.state.n[first:end, None]
    wanted = np.clip(np.ceil(shares * n).astype(np.int64), 1, np.maximum(n, 1))
    before = np.concatenate([[0], up_to])[ends - held][:, None]
    places = np.minimum(np.searchsorted(up_to, before + wanted), np.maximum(ends[:, None] - 1, 0))
    estimates = items[places] if len(items) else np.zeros(wanted.shape)
    estimates = np.where(wanted == 1, edges[:, :1], np.where(wanted == n, edges[:, 1:], estimates))
    return np.where(n == 0, 0.0, estimates)
