"""Count coupons sorted by group, one group after another: for one sketch, or for many rows per group.

The registers of a thousand sketches exceed the caches near the processor, so a row that looks up its register
waits for memory. Sorting the 32-bit coupons by group costs less (`group_order`), and a group's registers are
then fetched once for all its coupons, while the previous group is being counted. Each group's coupons keep
their order, which its HIP estimator needs: the result is byte for byte that of counting row by row.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.compilation.jit import inner, lean
from ..core.hashing.bits import prefetch
from ..core.resume import DONE, NO_ROOM
from .coupon_tables import add_coupon, add_to_table
from .coupons import value_of
from .registers import count_least, inverse_power
from .store import DENSE, EMPTY, row_of, span_of

ORDERED = 1 << 18
"""Coupons sorted at a time: they and their group numbers stay in the second-level cache."""
_BLOCK = 256
_LINE = 64


def new_candidates() -> np.ndarray:
    """Return scratch for one call: coupons that may change something."""
    return np.empty(_BLOCK, np.uint32)


@inner
def _fetch(store, g):
    """Prefetch a group's registers, if it has any."""
    if store.sketches[g].form == DENSE:
        first = np.uint64(store.sketches[g].where)
        for line in range(0, np.int64(1) << store.sketches[g].lg_k, _LINE):
            prefetch(store.registers, first + np.uint64(line))


@inner
def _count_in_table(store, g, coupons):
    """Count coupons until the group has registers or there is no room; return how many were counted."""
    for i in range(len(coupons)):
        if store.sketches[g].form == DENSE:
            return i
        if coupons[i] == 0:
            continue
        if store.sketches[g].form != EMPTY:  # the usual case, and short enough to be inlined
            done, _ = add_to_table(store.sketches, store.words, g, coupons[i])
            if done:
                continue
        if not add_coupon(store, g, coupons[i]):
            return i
    return len(coupons)


@inner
def _count_in_registers(registers, sums, row, coupons, candidates):
    """Count coupons in one sketch's registers, with its sums in local variables: a batched
    `raise_register`."""
    mask = np.uint32(len(registers) - 1)
    hip, low, high, k = sums[row].hip, sums[row].low, sums[row].high, sums[row].k
    least, left = sums[row].least, sums[row].left
    for first in range(0, len(coupons), _BLOCK):
        n = np.int64(0)
        for coupon in coupons[first : first + _BLOCK]:  # a branch would be mispredicted
            candidates[n] = coupon
            n += np.int64(registers[np.uint64(coupon & mask)] < value_of(coupon))
        for coupon in candidates[:n]:
            at, value = np.uint64(coupon & mask), value_of(coupon)
            old = registers[at]
            # An earlier candidate of the block may have raised it meanwhile.
            if value <= old:
                continue
            registers[at] = value
            hip += k / (low + high)
            if value < 32:  # all terms are multiples of 2^−31, so one addition is as exact as two
                low += inverse_power(value) - inverse_power(old)
            else:
                high += inverse_power(value)
                if old < 32:
                    low -= inverse_power(old)
                else:
                    high -= inverse_power(old)
            left -= np.int32(old == least)
            if left == 0:
                count_least(registers, sums, row)
                least, left = sums[row].least, sums[row].left
    sums[row].hip, sums[row].low, sums[row].high = hip, low, high
    sums[row].left = left


@lean
def update_ordered(store, ends, coupons, candidates, at):
    """Count coupons sorted by group, from number `at` on; those of group g end at ``ends[g]``.

    Returns how far it came, and why it stopped.
    """
    begin: Any = np.int64(0)
    for g in range(len(ends)):
        # The interrupted call has counted the groups that end before `at`.
        begin = max(begin, at)
        if g + 1 < len(ends):
            _fetch(store, g + 1)
        if begin < ends[g] and store.sketches[g].form != DENSE:
            begin += _count_in_table(store, g, coupons[begin : ends[g]])
            if begin < ends[g] and store.sketches[g].form != DENSE:
                return begin, NO_ROOM
        if begin < ends[g]:
            first, end = span_of(store, g)
            own = store.registers[first:end]
            _count_in_registers(own, store.sums, row_of(store, g), coupons[begin : ends[g]], candidates)
        begin = ends[g]
    return np.int64(len(coupons)), DONE
