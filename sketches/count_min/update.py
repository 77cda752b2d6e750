"""Spark's count-min hash functions, and updates of counter tables.

In row `r`, a long `x` is counted at ``(a[r] · x folded to 31 bits) mod width``, and bytes at
``|h1 + r · h2| mod width`` with two 32-bit Murmur3 hashes. A table is `depth` rows of `width` int64.

Counts are added one row of the table at a time: its 16 kB of counters stay in the first-level cache, and a
block's hashes, all by one function, are vectorised. The remainder is computed by multiplication with the
inverse of the width (Granlund and Montgomery, "Division by Invariant Integers using Multiplication", 1994).

Source: Spark `CountMinSketchImpl.hash`, `getHashBuckets`.
"""

from __future__ import annotations

import numpy as np

from ..core.compilation.jit import BLOCK, inner, kernel, lean

_31 = np.uint64(0x7FFFFFFF)

LONG, PAIR, ROWS = 0, 1, 2
"""The types of lines in the log: a long, a pair of hashes of bytes, or rows of counters in the format of
`images_sparse`, whose bytes fill the following lines."""
WORDS = 4
"""The int64 of a line: (group, key, weight, type). For rows of counters, the key is their size in bytes."""


def inverse(width: int) -> tuple[np.uint64, np.uint64]:
    """Return the multiplier and the shift that divide numbers up to 2^32 by `width`."""
    shift = 32 + (width - 1).bit_length()
    return np.uint64(-(-(1 << shift) // width)), np.uint64(shift)


@inner
def _buckets(block, a, width, factor, shift, out):
    for i in range(len(block)):
        h = np.uint64(block[i]) * a
        h = (h + (h >> np.uint64(32))) & _31
        out[i] = np.uint32(h - ((h * factor) >> shift) * width)


@inner
def bucket(x, a, width, factor, shift):
    """Return the bucket of a long in the row with factor `a`."""
    h = np.uint64(x) * a
    h = (h + (h >> np.uint64(32))) & _31
    return np.int64(h - ((h * factor) >> shift) * width)


@inner
def pair_bucket(pair, row, width, factor, shift):
    """Return the bucket of bytes in a row, from their two hashes in one int64."""
    h1 = np.uint32(np.uint64(pair) >> np.uint64(32))
    h2 = np.uint32(np.uint64(pair) & np.uint64(0xFFFFFFFF))
    both = np.uint32(h1 + np.uint32(row) * h2)
    h = np.uint64(both if both < np.uint32(0x80000000) else np.uint32(np.uint32(0) - both))
    return np.int64(h - ((h * factor) >> shift) * width)


@kernel
def add(table, keys, weights, factors, factor, shift):
    """Count longs (with the rows' `factors`) or pairs of hashes (`factors` empty) in one table."""
    depth, width = table.shape
    wide = np.uint64(width)
    at = np.empty(BLOCK, np.uint32)
    for first in range(0, len(keys), BLOCK):
        block = keys[first : first + BLOCK]
        for r in range(depth):
            if len(factors) > 0:
                _buckets(block, factors[r], wide, factor, shift, at)
            else:
                for i in range(len(block)):
                    at[i] = pair_bucket(block[i], r, wide, factor, shift)
            row = table[r]
            if len(weights) > 0:
                for i in range(len(block)):
                    row[at[i]] += weights[first + i]
            else:
                for i in range(len(block)):
                    row[at[i]] += 1


@kernel
def add_conservatively(table, keys, weights, factors, factor, shift):
    """Count one by one, raising only counters below the new estimate (Estan and Varghese 2002)."""
    depth, width = table.shape
    wide = np.uint64(width)
    at = np.empty(depth, np.int64)
    for i in range(len(keys)):
        least = np.int64(0x7FFFFFFFFFFFFFFF)
        for r in range(depth):
            if len(factors) > 0:
                at[r] = bucket(keys[i], factors[r], wide, factor, shift)
            else:
                at[r] = pair_bucket(keys[i], r, wide, factor, shift)
            least = min(least, table[r, at[r]])
        least += weights[i] if len(weights) > 0 else 1
        for r in range(depth):
            # No counter falls below a true count: none is lowered, and all of the value's own counters reach
            # the new estimate, the old estimate plus the weight.
            table[r, at[r]] = max(table[r, at[r]], least)


@lean
def estimate(table, keys, factors, factor, shift, out):
    """Compute the least of each key's counters."""
    depth, width = table.shape
    wide = np.uint64(width)
    for i in range(len(keys)):
        least = np.int64(0x7FFFFFFFFFFFFFFF)
        for r in range(depth):
            if len(factors) > 0:
                p = bucket(keys[i], factors[r], wide, factor, shift)
            else:
                p = pair_bucket(keys[i], r, wide, factor, shift)
            least = min(least, table[r, p])
        out[i] = least


@lean
def add_grouped(tables, slots, groups, keys, weights, factors, factor, shift, log, used, logged):
    """Count rows in their groups' tables, or in the log for groups without one; return the log's length.

    `logged` counts the lines of each group.
    """
    depth, width = tables.shape[1], tables.shape[2]
    wide = np.uint64(width)
    pairs = len(factors) == 0
    for i in range(len(keys)):
        g = groups[i]
        each = weights[i] if len(weights) > 0 else np.int64(1)
        s = slots[g]
        if s < 0:
            log[used, 0] = g
            log[used, 1] = keys[i]
            log[used, 2] = each
            log[used, 3] = PAIR if pairs else LONG
            used += 1
            logged[g] += 1
            continue
        for r in range(depth):
            if pairs:
                p = pair_bucket(keys[i], r, wide, factor, shift)
            else:
                p = bucket(keys[i], factors[r], wide, factor, shift)
            tables[s, r, p] += each
    return used
