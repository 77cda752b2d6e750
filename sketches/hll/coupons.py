"""From values to HLL coupons: the 32 bits of a hash that an HLL sketch of any size needs.

A coupon is ``value << 26 | address``: the 26 low bits of the hash's first half select a register, and the
second half's leading zeros plus one (1 … 63) are the value to raise it to. No coupon is zero, so zero stands
for an unused place in a table, or for an empty string, which DataSketches does not count.

Once every register of a sketch holds at least m, only a hash with m or more leading zeros in its second half,
one in 2^m, can raise one; the others never become coupons. So a single sketch is as fast as its hash.

Source: datasketches-java `hll.BaseHllSketch.coupon`; the hash is in `hash.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from ..core.columns.columns import Values
from ..core.compilation.jit import inner, lean
from ..core.groups.group_numbers import frozen
from ..core.hashing.bits import at_most, clz64, ctz64
from ..core.hashing.hash import SEED, STEP, canonical_bits, hash_block, hash_in_step, new_string_scratch

ADDRESS_BITS = 26
ADDRESS_MASK = np.uint32((1 << ADDRESS_BITS) - 1)

_ALL_ONES = np.uint64(0xFFFFFFFFFFFFFFFF)

CHUNK = 1 << 16
"""Coupons made at a time: they stay in the second-level cache until another kernel reads them."""


@inner
def value_of(coupon):
    """Return the value to which a coupon raises its register."""
    return np.uint8(coupon >> np.uint32(ADDRESS_BITS))


@inner
def _pack(h1, h2, out):
    """Make a block's coupons."""
    for i in range(len(out)):
        value = min(clz64(h2[i]), np.uint64(62)) + np.uint64(1)
        out[i] = np.uint32(value << np.uint64(ADDRESS_BITS) | h1[i] & np.uint64(ADDRESS_MASK))


@inner
def _select(h1, h2, n, limit, out, at):
    """Write to ``out[at:]`` the coupons of those of a block's first `n` hashes whose second half is at most
    `limit`, in order; return where they end. One comparison tests 64 hashes."""
    for begin in range(0, n, 64):
        n_selected = at_most(h2, begin, limit)
        if n - begin < 64:
            n_selected &= (np.uint64(1) << np.uint64(n - begin)) - np.uint64(1)
        while n_selected:
            i = np.uint64(begin) + ctz64(n_selected)
            n_selected &= n_selected - np.uint64(1)
            value = min(clz64(h2[i]), np.uint64(62)) + np.uint64(1)
            out[np.uint64(at)] = np.uint32(value << np.uint64(ADDRESS_BITS) | h1[i] & np.uint64(ADDRESS_MASK))
            at += 1
    return at


@inner
def _from_hashes(h1, h2, n, limit, out, at):
    """Write all coupons of a block, or those that pass `limit`; return where they end in `out`."""
    if limit != _ALL_ONES:
        return _select(h1, h2, n, limit, out, at)
    _pack(h1, h2, out[at : at + n])
    return at + n


@lean
def _of_int64(values, limit, h1, h2, out):
    """Write the coupons of int64 values, return their number; `h1` and `h2` are scratch of `STEP` words."""
    at = np.int64(0)
    for start in range(0, len(values), STEP):
        block = values[start : start + STEP]
        hash_block(block, SEED, h1, h2)
        at = _from_hashes(h1, h2, len(block), limit, out, at)
    return at


@lean
def _of_bytes(offsets, data, limit, scratch, h1, h2, out):
    """Write the coupons of strings in Arrow's buffers, return their number; empty strings give zero or
    none."""
    at = np.int64(0)
    for start in range(0, len(offsets) - 1, STEP):
        ends = offsets[start : start + STEP + 1]
        n = len(ends) - 1
        hash_in_step(ends, data, SEED, scratch, h1, h2)
        for i in range(n):
            h2[i] = h2[i] if scratch.lengths[i] else _ALL_ONES
        end = _from_hashes(h1, h2, n, limit, out, at)
        if limit == _ALL_ONES:
            for i in range(n):
                out[at + i] = out[at + i] if scratch.lengths[i] else np.uint32(0)
        at = end
    return at


def _nothing_yet() -> int:
    return 0


def coupon_chunks(
    values: Values, size: int = CHUNK, least: Callable[[], int] = _nothing_yet
) -> Iterator[tuple[int, np.ndarray]]:
    """Yield the coupons of all values, `size` values at a time, as (number of the first, coupons).

    If every register holds at least `least` by now, coupons that can't raise any are left out. The array is
    reused for the next chunk.
    """
    coupons = np.empty(min(len(values), size), np.uint32)
    h1, h2 = np.zeros((2, STEP), np.uint64)
    text = values.kind in ("string", "binary")
    scratch = new_string_scratch() if text else None
    bits = np.empty(len(coupons) if values.kind == "float64" else 0, np.int64)
    for first in range(0, len(values), size):
        end = min(first + size, len(values))
        limit = _ALL_ONES >> np.uint64(least())
        if text:
            offsets, data = frozen(values.offsets[first : end + 1]), frozen(values.data)
            n = _of_bytes(offsets, data, limit, scratch, h1, h2, coupons)
        else:
            numbers = values.numbers[first:end]
            if values.kind == "float64":
                canonical_bits(frozen(numbers), bits)
                numbers = bits[: end - first]
            n = _of_int64(frozen(numbers), limit, h1, h2, coupons)
        yield first, coupons[:n]
