"""One HLL sketch with registers, at the speed of its hash: what can't change anything is not looked at.

Once every register holds at least m, only a hash with m or more leading zeros in its second half, one in 2^m,
can raise one. A block is hashed into scratch in one vectorised loop that also finds its smallest second half;
if that is too large the block is done. Else the few places that count are gathered without branches, and only
they touch the registers, in the stream's order, as the HIP estimator needs.
"""

from __future__ import annotations

import numpy as np

from .bits import clz64
from .hash import SEED, finish_hash, first_word
from .hll_coupons import ADDRESS_BITS
from .hll_store import count_least, raise_register
from .jit import kernel

_BLOCK = 128
_ALL_ONES = np.uint64(0xFFFFFFFFFFFFFFFF)


@kernel
def _hash_and_least(block, h1_out, h2_out):  # type: ignore[no-untyped-def]
    """Hash a slice of int64; the smallest second half."""
    least = _ALL_ONES
    for i in range(len(block)):
        h1, h2 = finish_hash(first_word(SEED, np.uint64(block[i])), SEED, np.uint64(8))
        h1_out[i] = h1
        h2_out[i] = h2
        least = min(least, h2)
    return least


@kernel
def update_dense_int64(registers, sums, least, lg_stride, lg_k, where, values):  # type: ignore[no-untyped-def]
    """Count int64 values in the 2^lg_k registers from `where` on."""
    h1 = np.empty(_BLOCK, np.uint64)
    h2 = np.empty(_BLOCK, np.uint64)
    places = np.empty(_BLOCK, np.int64)
    first = np.uint64(where)
    row = first >> np.uint64(lg_stride)
    k = np.uint64(1) << np.uint64(lg_k)
    mask = k - np.uint64(1)
    for start in range(0, len(values), _BLOCK):
        block = values[start : start + _BLOCK]
        limit = _ALL_ONES >> np.uint64(least[row, 0])
        if _hash_and_least(block, h1, h2) > limit:
            continue
        n = np.int64(0)
        for i in range(len(block)):
            places[n] = i
            n += np.int64(h2[i] <= limit)
        for j in range(n):
            i = places[j]
            value = np.uint8(min(clz64(h2[i]), np.uint64(62)) + np.uint64(1))
            at = first + (h1[i] & mask)
            if registers[at] < value and raise_register(registers, sums, least, row, at, value):
                count_least(registers[first : first + k], least[row])


@kernel
def update_dense_coupons(registers, sums, least, lg_stride, lg_k, where, coupons):  # type: ignore[no-untyped-def]
    """Count coupons in the 2^lg_k registers from `where` on; zeros are passed over."""
    places = np.empty(_BLOCK, np.int64)
    first = np.uint64(where)
    row = first >> np.uint64(lg_stride)
    k = np.uint64(1) << np.uint64(lg_k)
    mask = k - np.uint64(1)
    for start in range(0, len(coupons), _BLOCK):
        block = coupons[start : start + _BLOCK]
        limit = np.uint32(least[row, 0] + 1) << np.uint32(ADDRESS_BITS)
        highest = np.uint32(0)
        for coupon in block:
            highest = max(highest, coupon)
        if highest < limit:
            continue
        n = np.int64(0)
        for i in range(len(block)):
            places[n] = i
            n += np.int64(block[i] >= limit)
        for j in range(n):
            coupon = block[places[j]]
            value = np.uint8(coupon >> np.uint32(ADDRESS_BITS))
            at = first + (np.uint64(coupon) & mask)
            if registers[at] < value and raise_register(registers, sums, least, row, at, value):
                count_least(registers[first : first + k], least[row])
