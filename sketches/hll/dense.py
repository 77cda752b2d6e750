"""One HLL sketch with registers, at the speed of its hash: what can't change anything is not looked at.

Once every register holds at least m, only a hash with m or more leading zeros in its second half, one in 2^m,
can raise one. A block is hashed into scratch in one vectorised loop; of 64 second halves at a time one
comparison tells which are that small, and only these touch the registers, in the stream's order, as the HIP
estimator needs.
"""

from __future__ import annotations

import numpy as np

from ..core.bits import at_most, clz64, ctz64
from ..core.hash import SEED, STEP, finish_hash, first_word, hash_in_step
from ..core.jit import kernel, lean
from .store import count_least, raise_register

_BLOCK = 256
_CHUNK = 64
_ALL_ONES = np.uint64(0xFFFFFFFFFFFFFFFF)


@lean
def _hash(block, h1_out, h2_out):
    """Hash a slice of int64."""
    for i in range(len(block)):
        h1_out[i], h2_out[i] = finish_hash(first_word(SEED, np.uint64(block[i])), SEED, np.uint64(8))


@lean
def _count(registers, sums, least, row, first, k, h1, h2, n):
    """Count the first `n` hashes of a block in the `k` registers from `first` on."""
    limit = _ALL_ONES >> np.uint64(least[row, 0])
    for begin in range(0, n, _CHUNK):
        found = at_most(h2, begin, limit)
        if n - begin < _CHUNK:
            found &= (np.uint64(1) << np.uint64(n - begin)) - np.uint64(1)
        while found:
            i = np.uint64(begin) + ctz64(found)
            found &= found - np.uint64(1)
            value = np.uint8(min(clz64(h2[i]), np.uint64(62)) + np.uint64(1))
            at = first + (h1[i] & (k - np.uint64(1)))
            if registers[at] < value and raise_register(registers, sums, least, row, at, value):
                count_least(registers[first : first + k], least[row])


@kernel
def update_dense_int64(registers, sums, least, lg_stride, lg_k, where, values):
    """Count int64 values in the 2^lg_k registers from `where` on."""
    h1, h2 = np.empty(_BLOCK, np.uint64), np.empty(_BLOCK, np.uint64)
    first, k = np.uint64(where), np.uint64(1) << np.uint64(lg_k)
    row = first >> np.uint64(lg_stride)
    for start in range(0, len(values), _BLOCK):
        block = values[start : start + _BLOCK]
        _hash(block, h1, h2)
        _count(registers, sums, least, row, first, k, h1, h2, len(block))


@kernel
def update_dense_bytes(registers, sums, least, lg_stride, lg_k, where, offsets, data):
    """Count strings in the 2^lg_k registers from `where` on; empty ones are passed over."""
    h1, h2 = np.empty(STEP, np.uint64), np.empty(STEP, np.uint64)
    starts, lengths = np.empty(STEP, np.int64), np.empty(STEP, np.int64)
    k1, k2 = np.zeros(STEP, np.uint64), np.zeros(STEP, np.uint64)
    first, k = np.uint64(where), np.uint64(1) << np.uint64(lg_k)
    row = first >> np.uint64(lg_stride)
    for start in range(0, len(offsets) - 1, STEP):
        ends = offsets[start : start + STEP + 1]
        hash_in_step(ends, data, SEED, starts, lengths, k1, k2, h1, h2)
        n = 0
        for i in range(len(ends) - 1):
            n += ends[i] < ends[i + 1]
        if n < len(ends) - 1:
            n = 0
            for i in range(len(ends) - 1):
                h1[n], h2[n] = h1[i], h2[i]
                n += ends[i] < ends[i + 1]
        _count(registers, sums, least, row, first, k, h1, h2, n)
