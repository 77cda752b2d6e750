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
from ..core.hash import SEED, canonical_bits, finish_hash, first_word, hash_bytes
from ..core.jit import BLOCK, inlined, kernel, lean

ADDRESS_BITS = 26
ADDRESS_MASK = np.uint32((1 << ADDRESS_BITS) - 1)

CHUNK = 1 << 16
"""Values hashed at a time where a second kernel takes the coupons: they stay in the second-level cache."""


@inlined
def coupon(h1, h2):
    """The coupon of one hash."""
    zeros = min(clz64(h2), np.uint64(62))
    return np.uint32(((zeros + np.uint64(1)) << np.uint64(26)) | (h1 & np.uint64(0x3FFFFFF)))


@kernel
def coupons_of_hashes(h1, h2, out):
    """Pack a block of hashes."""
    for i in range(len(out)):
        out[i] = coupon(h1[i], h2[i])


@lean
def coupons_of_int64(values, out):
    """The coupon of every int64."""
    for i in range(len(out)):
        h1, h2 = finish_hash(first_word(SEED, np.uint64(values[i])), SEED, np.uint64(8))
        out[i] = coupon(h1, h2)


@kernel
def coupons_of_bytes(offsets, data, out):
    """The coupon of every string in Arrow's buffers; zero for an empty one."""
    h1 = np.empty(BLOCK, np.uint64)
    h2 = np.empty(BLOCK, np.uint64)
    for start in range(0, len(out), BLOCK):
        block = out[start : start + BLOCK]
        ends = offsets[start : start + len(block) + 1]
        hash_bytes(ends, data, SEED, h1, h2)
        coupons_of_hashes(h1, h2, block)
        for i in range(len(block)):
            if ends[i] == ends[i + 1]:
                block[i] = 0


def coupon_chunks(values: Values, size: int = CHUNK) -> Iterator[tuple[int, np.ndarray]]:
    """The coupons of all values as (number of the first, coupons), `size` at a time in one reused array."""
    scratch = np.empty(min(len(values), size), np.uint32)
    bits = np.empty(len(scratch) if values.kind == "float64" else 0, np.int64)
    for start in range(0, len(values), size):
        out = scratch[: min(size, len(values) - start)]
        end = start + len(out)
        if values.kind == "int64":
            coupons_of_int64(read_only(values.numbers[start:end]), out)
        elif values.kind == "float64":
            canonical_bits(values.numbers[start:end], bits)
            coupons_of_int64(read_only(bits[: len(out)]), out)
        else:
            coupons_of_bytes(read_only(values.offsets[start : end + 1]), read_only(values.data), out)
        yield start, out


def bit_chunks(values: Values, start: int) -> Iterator[np.ndarray]:
    """What is hashed of doubles from `start` on, their bits, in chunks."""
    bits = np.empty(min(len(values) - start, CHUNK // 8), np.int64)
    for first in range(start, len(values), max(len(bits), 1)):
        block = values.numbers[first : first + len(bits)]
        canonical_bits(block, bits)
        yield read_only(bits[: len(block)])


def read_only(array: np.ndarray) -> np.ndarray:
    """Arrow's buffers can't be written to, NumPy's can: one kind of array means one compiled kernel."""
    view = array.view()
    view.flags.writeable = False
    return view
