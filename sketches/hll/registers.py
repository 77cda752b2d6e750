"""Raise the registers of one sketch in a store one by one, and keep the HIP estimator's sums up to date.

Source: datasketches-java 6.2.0 `hll.HllArray`, `hll.Hll8Array`.
"""

from __future__ import annotations

import numpy as np

from ..core.compilation.jit import inner
from .coupons import value_of
from .store import DENSE, STALE

_LOW, _FEW = 19, 1 << 12
"""For 2^12 registers of at most 19, Σ 2^(19 − v) is below 2^32."""
_INVERSE_POWERS = 0.5 ** np.arange(64)


@inner
def inverse_power(v):
    """Return 2^−v exactly."""
    return _INVERSE_POWERS[v]


@inner
def greatest(registers):
    """Return the highest register."""
    highest = np.uint8(0)
    for v in registers:
        highest = max(highest, v)
    return highest


@inner
def power_sums(registers, highest):
    """Return Σ 2^−v over registers below 32, and over the others; `highest` is the highest register."""
    low = np.uint64(0)
    if highest <= _LOW and len(registers) <= _FEW:
        # The usual case: the sum is exact in 32 bits, twice as many at a time. Numba widens whatever is not
        # truncated immediately, and LLVM must see that no shift exceeds 31.
        few = np.uint32(0)
        for v in registers:
            few = np.uint32(few + np.uint32(np.uint32(1 << _LOW) >> np.uint32(v & np.uint8(31))))
        return np.float64(few) / (1 << _LOW), 0.0
    for v in registers:
        low += np.uint64(1 << 31) >> np.uint64(v)  # exact and without a table look-up, so it vectorises
    high = 0.0
    if highest > 31:
        for v in registers:
            if v > 31:
                high += inverse_power(v)
    return np.float64(low) / 2147483648.0, high


@inner
def count_least(own, sums, row):
    """Find the least value of a sketch's registers and how many hold it."""
    lowest = np.uint8(255)
    for v in own:
        lowest = min(lowest, v)
    n = np.int32(0)
    for v in own:
        n += np.int32(v == lowest)
    sums[row].least = lowest
    sums[row].left = n


@inner
def raise_register(registers, sums, row, at, value):
    """Raise register `at` of a row: first the HIP sum, then the sums of inverse powers, as in the reference.

    `row` and `at` are uint64, because signed indices would be checked for being negative. The caller ensures
    that `value` is higher, and calls `count_least` if the result says that no least register is left.
    """
    old = registers[at]
    registers[at] = value
    # A new value changes the registers with probability Σ 2^−v / k, so each change stands for the inverse of
    # that number of values (HIP; Cohen 2015, Ting 2014). The sums must be those from before the change.
    sums[row].hip += sums[row].k / (sums[row].low + sums[row].high)
    # Two sums, so that the first is exact: up to 2^21 multiples of 2^−31, none above 1, fit 53 bits.
    if old < 32:
        sums[row].low -= inverse_power(old)
    else:
        sums[row].high -= inverse_power(old)
    if value < 32:
        sums[row].low += inverse_power(value)
    else:
        sums[row].high += inverse_power(value)
    sums[row].left -= np.int32(old == sums[row].least)  # no branch, which would be unpredictable
    return sums[row].left == 0


@inner
def raise_coupon(store, g, coupon):
    """Count a coupon in a sketch with registers."""
    k = np.uint64(1) << np.uint64(store.sketches[g].lg_k)
    first = np.uint64(store.sketches[g].where)
    at = first + (np.uint64(coupon) & (k - np.uint64(1)))
    row = first >> np.uint64(store.rows[0].lg_stride)
    value = value_of(coupon)
    if value <= store.registers[at]:
        return
    if store.sums[row].flags & STALE:
        store.registers[at] = value
    elif raise_register(store.registers, store.sums, row, at, value):
        count_least(store.registers[first : first + k], store.sums, row)


@inner
def raise_coupons(store, g, coupons):
    """Count coupons in a sketch with registers; zeros are ignored."""
    if not len(coupons):
        return
    k = np.uint64(1) << np.uint64(store.sketches[g].lg_k)
    first = np.uint64(store.sketches[g].where)
    row = first >> np.uint64(store.rows[0].lg_stride)
    registers, sums, stale = store.registers, store.sums, store.sums[row].flags & STALE
    for coupon in coupons:
        at = first + (np.uint64(coupon) & (k - np.uint64(1)))
        value = value_of(coupon)
        if coupon == 0 or value <= registers[at]:
            continue
        if stale:
            registers[at] = value
        elif raise_register(registers, sums, row, at, value):
            count_least(registers[first : first + k], sums, row)


@inner
def claim_row(store, g):
    """Give a sketch an array of zero registers; return the row. The caller ensures that there is room."""
    row = store.rows[0].used
    store.rows[0].used = row + 1
    k = np.int64(1) << store.sketches[g].lg_k
    store.sums[row].hip = 0.0
    store.sums[row].low = np.float64(k)
    store.sums[row].high = 0.0
    store.sums[row].k = np.float64(k)
    store.sums[row].least = 0
    store.sums[row].left = k
    store.sums[row].flags = 0
    store.sketches[g].form = DENSE
    store.sketches[g].coupons = 0
    store.sketches[g].where = row << store.rows[0].lg_stride
    return row
