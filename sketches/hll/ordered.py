"""Coupons brought together by their group and then counted, group by group: for many rows a group.

A thousand sketches' registers are larger than the caches near the processor, so a row that looks up its own
waits. Moving a row's 32-bit coupon to its group's others costs less, and a group's registers are then fetched
once for all of them, while the group before is being counted. Each group's coupons keep their order, as its
HIP estimator needs: the result is that of counting row by row, to the byte.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.bits import prefetch
from ..core.jit import lean
from .store import DENSE, EMPTY, add_coupon, add_to_table, count_least, inverse_power

ORDERED = 1 << 18
"""Coupons brought together at a time: they and what says whose they are stay in the second-level cache."""
_BLOCK = 256
_LINE = 64


@lean
def _fetch(store, g):
    """Have a group's registers fetched, if it has any."""
    sketch = store.sketches[g]
    if sketch.form == DENSE:
        first = np.uint64(sketch.where)
        for line in range(0, np.int64(1) << sketch.lg_k, _LINE):
            prefetch(store.registers, first + np.uint64(line))


@lean
def _count_in_table(store, g, coupons):
    """Count coupons until the group has registers or there is no room; how many are counted."""
    sketches, words = store.sketches, store.words
    for i in range(len(coupons)):
        form = sketches[g].form
        if form == DENSE:
            return i
        if coupons[i] == 0:
            continue
        if form != EMPTY:
            done, _ = add_to_table(sketches, words, g, coupons[i])
            if done:
                continue
        if not add_coupon(store, g, coupons[i]):
            return i
    return len(coupons)


@lean
def _count_in_registers(registers, sums, least, coupons, candidates):
    """Count coupons in one sketch's registers, its sums kept at hand: `raise_register` for many at once."""
    mask = np.uint32(len(registers) - 1)
    hip, low_sum, high_sum, k = sums[0], sums[1], sums[2], sums[3]
    lowest, left = np.uint8(least[0]), least[1]
    for first in range(0, len(coupons), _BLOCK):
        n = np.int64(0)
        for coupon in coupons[first : first + _BLOCK]:  # most change nothing, or half: no branch foresees it
            candidates[n] = coupon
            n += np.int64(registers[np.uint64(coupon & mask)] < np.uint8(coupon >> np.uint32(26)))
        for coupon in candidates[:n]:
            at, value = np.uint64(coupon & mask), np.uint8(coupon >> np.uint32(26))
            old = registers[at]
            if value <= old:
                continue
            registers[at] = value
            hip += k / (low_sum + high_sum)
            if value < 32:  # all terms are multiples of 2^−31: one addition is as exact as two
                low_sum += inverse_power(value) - inverse_power(old)
            else:
                high_sum += inverse_power(value)
                if old < 32:
                    low_sum -= inverse_power(old)
                else:
                    high_sum -= inverse_power(old)
            left -= np.int32(old == lowest)
            if left == 0:
                count_least(registers, least)
                lowest, left = np.uint8(least[0]), least[1]
    sums[0], sums[1], sums[2] = hip, low_sum, high_sum
    least[1] = left


@lean
def update_ordered(store, ends, coupons, at, candidates):
    """Count coupons ordered by group from number `at` on: those of group g end at ``ends[g]``.

    The number of the first that found no room, or how many there are. `candidates` holds 256 coupons.
    """
    begin: Any = 0
    for g in range(len(ends)):
        begin = max(begin, at)
        if g + 1 < len(ends):
            _fetch(store, g + 1)
        if begin < ends[g] and store.sketches[g].form != DENSE:
            begin += _count_in_table(store, g, coupons[begin : ends[g]])
            if begin < ends[g] and store.sketches[g].form != DENSE:
                return begin
        if begin < ends[g]:
            first = store.sketches[g].where
            row = first >> store.lg_stride[0]
            own = store.registers[first : first + (np.int64(1) << store.sketches[g].lg_k)]
            _count_in_registers(own, store.sums[row], store.least[row], coupons[begin : ends[g]], candidates)
        begin = ends[g]
    return len(coupons)
