"""From values to HLL coupons: the 32 bits of a hash that an HLL sketch of any size needs.

A coupon is ``value << 26 | address``: the 26 low bits of the hash's first half say which register, and the
second half's leading zeros plus one (1 … 63) say what to raise it to. No coupon is zero, so zero means
nothing: an unused place in a table, or an empty string, which DataSketches does not count.

Source: datasketches-java `hll.BaseHllSketch.coupon`; the hash is that of `hash.py`.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..core.bits import clz64
from ..core.columns import Values
from ..core.group_numbers import frozen
from ..core.hash import SEED, STEP, canonical_bits, hash_block, hash_in_step, new_string_scratch
from ..core.jit import inner, lean

ADDRESS_BITS = 26
ADDRESS_MASK = np.uint32((1 << ADDRESS_BITS) - 1)

CHUNK = 1 << 16
"""Coupons made at a time: they stay in the second-level cache until another kernel takes them."""


@inner
def value_of(coupon):
    """What a coupon raises its register to."""
    return np.uint8(coupon >> np.uint32(ADDRESS_BITS))


@inner
def _pack(h1, h2, out):
    """A block's coupons."""
    for i in range(len(out)):
        value = min(clz64(h2[i]), np.uint64(62)) + np.uint64(1)
        out[i] = np.uint32(value << np.uint64(ADDRESS_BITS) | h1[i] & np.uint64(ADDRESS_MASK))


@lean
def _of_int64(values, h1, h2, out):
    """The coupon of every int64; `h1` and `h2` are scratch of `STEP` words."""
    for start in range(0, len(out), STEP):
        hash_block(values[start : start + STEP], SEED, h1, h2)
        _pack(h1, h2, out[start : start + STEP])


@lean
def _of_bytes(offsets, data, scratch, h1, h2, out):
    """The coupon of every string in Arrow's buffers; zero for an empty one."""
    for start in range(0, len(out), STEP):
        block = out[start : start + STEP]
        hash_in_step(offsets[start : start + len(block) + 1], data, SEED, scratch, h1, h2)
        _pack(h1, h2, block)
        for i in range(len(block)):
            if scratch.lengths[i] == 0:
                block[i] = 0


def coupon_chunks(values: Values, size: int = CHUNK, start: int = 0) -> Iterator[tuple[int, np.ndarray]]:
    """The coupons of values from number `start` on, as (number of the first, coupons).

    `size` of them at a time in an array that is used again.
    """
    coupons = np.empty(min(len(values) - start, size), np.uint32)
    h1, h2 = np.zeros((2, STEP), np.uint64)
    text = values.kind in ("string", "binary")
    scratch = new_string_scratch() if text else None
    bits = np.empty(len(coupons) if values.kind == "float64" else 0, np.int64)
    for first in range(start, len(values), size):
        out = coupons[: min(size, len(values) - first)]
        end = first + len(out)
        if text:
            offsets, data = values.offsets[first : end + 1], values.data
            _of_bytes(frozen(offsets), frozen(data), scratch, h1, h2, out)
        else:
            numbers = values.numbers[first:end]
            if values.kind == "float64":
                canonical_bits(frozen(numbers), bits)
                numbers = bits[: len(out)]
            _of_int64(frozen(numbers), h1, h2, out)
        yield first, out
