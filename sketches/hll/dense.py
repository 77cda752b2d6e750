"""One HLL sketch with registers, at the speed of its hash: what can't change anything is not looked at.

Once every register holds at least m, only a hash with m or more leading zeros in its second half, one in 2^m,
can raise one. Of 64 second halves at a time one comparison tells which are that small, and only these touch
the registers, in the stream's order, as the HIP estimator needs.
"""

from __future__ import annotations

import numpy as np

from ..core.bits import at_most, clz64, ctz64
from ..core.hash import READ_AHEAD, SEED, STEP, hash_block
from ..core.jit import inner, lean
from .registers import count_least, raise_register

_ALL_ONES = np.uint64(0xFFFFFFFFFFFFFFFF)


@inner
def _count(store, where, h1, h2, n):
    """Count the first `n` hashes in the registers of sketch 0; `READ_AHEAD` more of `h2` may be read."""
    registers, sums = store.registers, store.sums
    first = np.uint64(where)
    row = first >> np.uint64(store.rows[0].lg_stride)
    k = np.uint64(1) << np.uint64(store.sketches[0].lg_k)
    limit = _ALL_ONES >> np.uint64(sums[row].least)
    for begin in range(0, n, READ_AHEAD):
        found = at_most(h2, begin, limit)
        if n - begin < READ_AHEAD:
            found &= (np.uint64(1) << np.uint64(n - begin)) - np.uint64(1)
        while found:
            i = np.uint64(begin) + ctz64(found)
            found &= found - np.uint64(1)
            value = np.uint8(min(clz64(h2[i]), np.uint64(62)) + np.uint64(1))
            at = first + (h1[i] & (k - np.uint64(1)))
            if registers[at] < value and raise_register(registers, sums, row, at, value):
                count_least(registers[first : first + k], sums, row)
                limit = _ALL_ONES >> np.uint64(sums[row].least)


@lean
def update_dense_int64(store, values, h1, h2):
    """Count int64 values in sketch 0, which has registers; `h1` and `h2` are scratch of `STEP` words."""
    where = store.sketches[0].where
    for start in range(0, len(values), STEP):
        block = values[start : start + STEP]
        hash_block(block, SEED, h1, h2)
        _count(store, where, h1, h2, len(block))
