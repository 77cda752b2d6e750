"""Set and test bits in three layouts of a Bloom filter, all in arrays of uint32.

`BLOCKED`: a value picks one block of 256 bits and sets a bit in each of its eight words, so that it touches
one cache line (Putze, Sanders and Singler, "Cache-, Hash- and Space-Efficient Bloom Filters", 2007; the word
masks are those of Apache Parquet's split-block filter). `SPARK_V1` and `SPARK_V2`: `k` bits anywhere, from
two hashes of 32 bits, as Spark's two versions derive them. Little-endian, the uint32 are its int64.

Source: Spark `BloomFilterImpl` and `BloomFilterImplV2`, `scatterHashAndSetAllBits`.
"""

from __future__ import annotations

import numpy as np

from ..core.compilation.jit import inner, lean

BLOCKED, SPARK_V1, SPARK_V2 = 0, 1, 2
WORDS = 8
"""Words of 32 bits in a block."""

_SALTS = np.array(
    [0x47B6137B, 0x44974D91, 0x8824AD5B, 0xA2B7289D, 0x705495C7, 0x2DF1424B, 0x9EFC4947, 0x5C6BFB31],
    np.uint32,
)


@inner
def block_of(key, blocks):
    """Return the key's block: its upper half, scaled to the number of blocks."""
    upper = np.uint64(key) >> np.uint64(32)
    return np.int64((upper * np.uint64(blocks)) >> np.uint64(32))


@inner
def bit_of(key, j):
    """Return the key's bit, 0 to 31, in word `j` of its block."""
    low = np.uint32(np.uint64(key) & np.uint64(0xFFFFFFFF))
    return np.uint32(low * _SALTS[j]) >> np.uint32(27)


@inner
def _block(key, words):
    """Return the first word of the key's block."""
    return block_of(key, len(words) // WORDS) * WORDS


@inner
def _mask(key, j):
    return np.uint32(1) << bit_of(key, j)


@inner
def _spark_bit(key, i, bits, layout):
    """Return the `i`-th bit (from 0) for a pair of hashes."""
    h1 = np.int64(key) >> np.int64(32)
    h2 = np.int64(np.int32(np.int64(key) & np.int64(0xFFFFFFFF)))
    if layout == SPARK_V1:
        both = np.int64(np.int32((h1 + np.int64(i + 1) * h2) & np.int64(0xFFFFFFFF)))
    else:
        both = h1 * np.int64(0x7FFFFFFF) + np.int64(i + 1) * h2
    if both < 0:
        both = ~both
    return np.int64(np.uint64(both) % np.uint64(bits))


@inner
def put(words, key, layout, k):
    """Set a value's bits; True if one was not set before."""
    new = False
    if layout == BLOCKED:
        # The block uses the upper half of the hash and the masks the lower, so they are independent.
        first = _block(key, words)
        missing = np.uint32(0)
        for j in range(WORDS):
            mask = _mask(key, j)
            missing |= mask & ~words[first + j]
            words[first + j] |= mask
        new = missing != 0
    else:
        bits = 32 * len(words)
        for i in range(k):
            bit = _spark_bit(key, i, bits, layout)
            mask = np.uint32(1) << np.uint32(bit & 31)
            new = new or (words[bit >> 5] & mask) == 0
            words[bit >> 5] |= mask
    return new


@inner
def has(words, key, layout, k):
    """Whether all of a value's bits are set."""
    all_set = True
    if layout == BLOCKED:
        first = _block(key, words)
        missing = np.uint32(0)
        for j in range(WORDS):
            missing |= _mask(key, j) & ~words[first + j]
        all_set = missing == 0
    else:
        bits = 32 * len(words)
        for i in range(k):
            bit = _spark_bit(key, i, bits, layout)
            if (words[bit >> 5] & (np.uint32(1) << np.uint32(bit & 31))) == 0:
                all_set = False
                break
    return all_set


@lean
def add(words, keys, layout, k):
    """Set the bits of every key."""
    for i in range(len(keys)):
        put(words, keys[i], layout, k)


@lean
def admit(words, keys, layout, k, new):
    """Set the bits of every key in turn, and record which keys had an unset bit."""
    for i in range(len(keys)):
        new[i] = put(words, keys[i], layout, k)


@lean
def ask(words, keys, layout, k, contained):
    """Record which keys have all their bits set."""
    for i in range(len(keys)):
        contained[i] = has(words, keys[i], layout, k)


@lean
def admit_grouped(tables, slots, groups, keys, layout, k, new):
    """Like `admit`, for rows whose groups all have a filter."""
    for i in range(len(keys)):
        new[i] = put(tables[slots[groups[i]]], keys[i], layout, k)


@lean
def add_grouped(tables, slots, groups, keys, layout, k, log, lines, logged):
    """Set bits if the group has a filter, else add a line (group, key) to the log; return the log's
    length."""
    for i in range(len(keys)):
        g = groups[i]
        if slots[g] < 0:
            log[lines, 0] = g
            log[lines, 1] = keys[i]
            lines += 1
            logged[g] += 1
        else:
            put(tables[slots[g]], keys[i], layout, k)
    return lines


@lean
def replay(tables, slots, log, layout, k, keep):
    """Add the log's lines of groups that have a filter to it; returns how many lines are left.

    The other lines are moved to the front, unless `keep` preserves the log.
    """
    left = 0
    for i in range(len(log)):
        s = slots[log[i, 0]]
        if s >= 0:
            put(tables[s], log[i, 1], layout, k)
        elif not keep:
            for w in range(log.shape[1]):
                log[left, w] = log[i, w]
            left += 1
    return left


@lean
def lane_fill(words):
    """Return the mean over blocks of the product of their words' shares of set bits: a random value's hit
    rate."""
    total = 0.0
    for first in range(0, len(words), WORDS):
        share = 1.0
        for j in range(WORDS):
            w = words[first + j]
            n = 0
            while w:
                w &= w - np.uint32(1)
                n += 1
            share *= n / 32.0
        total += share
    return total / (len(words) // WORDS)
