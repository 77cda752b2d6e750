"""The answers of all sketches in a store: estimates with bounds."""

from __future__ import annotations

import numpy as np

from .bounds import collisions, hip_shares
from .estimate import composite_estimates, composite_table, coupon_estimates, relative_errors
from .store import DENSE, FROM_ZERO, OUT_OF_ORDER, Store


def estimates(store: Store, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return, for each of the first `n` sketches, the estimate and the number of values that it has certainly
    seen (float64)."""
    sketches = store.sketches[:n]
    dense = np.flatnonzero(sketches["form"] == DENSE)
    seen = sketches["coupons"].astype(np.float64)
    estimate = _of_coupons(seen)
    sums = store.sums[sketches["where"][dense] >> store.rows["lg_stride"][0]]
    zeros = np.where(sums["least"] == 0, sums["left"], 0)
    seen[dense] = sums["k"] - zeros
    estimate[dense] = sums["hip"]
    merged = np.flatnonzero(sums["flags"] & OUT_OF_ORDER)
    if len(merged):
        power_sums, results = (sums["low"] + sums["high"])[merged], np.empty(len(merged))
        lg_k = sketches["lg_k"][dense[merged]]
        composite_estimates(lg_k, power_sums, zeros[merged], composite_table(), results)
        estimate[dense[merged]] = results
    return estimate, seen


def _of_coupons(n: np.ndarray) -> np.ndarray:
    """Like `coupon_estimates`, but computed once per number of coupons if many sketches have few coupons."""
    most = int(n.max(initial=0))
    if most >= len(n):
        return coupon_estimates(n)
    return coupon_estimates(np.arange(most + 1.0))[n.astype(np.int64)]


def bounds(store: Store, n: int, std_devs: int) -> tuple[np.ndarray, np.ndarray]:
    """Return (lower, upper) of each of the first `n` sketches."""
    estimate, seen = estimates(store, n)
    sketches = store.sketches[:n]
    dense = sketches["form"] == DENSE
    rows = np.where(dense, sketches["where"] >> store.rows["lg_stride"][0], 0)
    flags = store.sums["flags"][rows]
    out_of_order = flags & OUT_OF_ORDER
    errors = relative_errors()[sketches["lg_k"], out_of_order, std_devs - 1]
    in_order = dense & (out_of_order == 0)
    lg_k, from_zero = sketches["lg_k"][in_order], flags[in_order] & FROM_ZERO > 0
    errors[in_order] *= hip_shares(estimate[in_order], lg_k, from_zero, std_devs)
    lower, upper = estimate / (1 + errors[:, 0]), estimate / (1 - errors[:, 1])
    lower[in_order], upper[in_order] = np.floor(lower[in_order]), np.ceil(upper[in_order])
    fewest, most = collisions(estimate[~dense] - seen[~dense], std_devs)
    lower[~dense] = seen[~dense] + fewest
    upper[~dense] = np.maximum(seen[~dense] + most, estimate[~dense])
    return np.maximum(lower, seen), np.maximum(upper, seen)
