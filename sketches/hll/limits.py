"""Upper limits of the estimate of a union of HLL sketches, without merging them.

A register of a union is the maximum of its parts' registers. So the deficit of a union's Σ 2^−v from k is at
most the sum of its parts' deficits, and it has at most as many nonzero registers as its parts together. Both
estimators from registers are monotone in these. HIP adds k / Σ 2^−v for each coupon that raises a register,
which is at most the last such step times the number of coupons; coupons alone give an estimate by their
number.
"""

from __future__ import annotations

import numpy as np

from ..core.compilation.jit import lean
from .coupons import value_of
from .estimate import composite_limits, composite_table, coupon_estimates
from .registers import inverse_power
from .store import DENSE, EMPTY, OUT_OF_ORDER, Store

_ROUNDING = 1 + 1e-9
"""A factor larger than the rounding errors of sums and estimators."""


@lean
def _raised(store, out):
    """Compute by how much each sketch's coupons reduce the sum of inverse powers if no two share a
    register."""
    for g in range(len(out)):
        form = store.sketches[g].form
        out[g] = 0.0
        if form in (EMPTY, DENSE):
            continue
        first = store.sketches[g].where
        for i in range(first, first + (np.int64(1) << form)):
            if store.words[i]:
                out[g] += 1.0 - inverse_power(value_of(store.words[i]))


def shares(store: Store, n: int, lg_k: int) -> dict[str, np.ndarray]:
    """Return upper limits of the first `n` sketches' contributions to a union, to be summed for `limits`.

    For a sketch with a number of registers other than 2^lg_k, nothing is known.
    """
    sketches = store.sketches[:n]
    coupons = sketches["coupons"].astype(np.float64)
    raised = np.empty(n)
    _raised(store, raised)
    seen, hip = coupons.copy(), np.zeros(n)
    dense = np.flatnonzero(sketches["form"] == DENSE)
    sums = store.sums[sketches["where"][dense] >> store.rows["lg_stride"][0]]
    raised[dense] = sums["k"] - (sums["low"] + sums["high"])
    seen[dense] = sums["k"] - np.where(sums["least"] == 0, sums["left"], 0)
    hip[dense] = np.where(sums["flags"] & OUT_OF_ORDER, 0.0, sums["hip"])
    coupons[sketches["lg_k"] != lg_k] = np.inf
    return {"coupons": coupons, "raised": raised, "taken": seen, "hip": hip}


def limits(sums: dict[str, np.ndarray], lg_k: int) -> np.ndarray:
    """Return upper limits of unions' estimates from their parts' summed `shares`; infinite if unknown."""
    k = float(1 << lg_k)
    coupons, hip = sums["coupons"], sums["hip"]
    left = k - sums["raised"] * _ROUNDING
    known = np.isfinite(coupons) & (left >= k * 2.0**-64)
    bounds = np.full(len(coupons), np.inf)
    zeros = np.maximum(k - np.ceil(sums["taken"][known]), 0.0)
    composite = np.empty(len(zeros))
    composite_limits(lg_k, left[known], zeros, composite_table(), composite)
    # A table of coupons has at most 2^18 places, and its estimate exceeds their number most for a full table.
    most = np.minimum(coupons[known], 2.0**18)
    in_order = (coupons[known] + coupon_estimates(most) - most) * (k / left[known]) + hip[known]
    bounds[known] = np.maximum(composite, in_order) * _ROUNDING
    return bounds
