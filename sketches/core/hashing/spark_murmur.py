"""Spark's 32-bit Murmur3, twice per value: the second hash is seeded with the first.

Both hashes are packed into one int64, the first in its upper half.

Source: Spark `Murmur3_x86_32.hashLong`, `hashUnsafeBytes` (which mixes in the bytes after the last word one
by one, signed, unlike Appleby's original).
"""

from __future__ import annotations

import numpy as np

from ..columns.columns import Values
from ..compilation.jit import inlined, kernel
from .words import load32


@inlined
def _mix(h, k):
    k = np.uint32(k * np.uint32(0xCC9E2D51))
    k = np.uint32((k << np.uint32(15)) | (k >> np.uint32(17)))
    h ^= np.uint32(k * np.uint32(0x1B873593))
    h = np.uint32((h << np.uint32(13)) | (h >> np.uint32(19)))
    return np.uint32(h * np.uint32(5) + np.uint32(0xE6546B64))


@inlined
def _finish(h, length):
    h ^= np.uint32(length)
    h ^= h >> np.uint32(16)
    h = np.uint32(h * np.uint32(0x85EBCA6B))
    h ^= h >> np.uint32(13)
    h = np.uint32(h * np.uint32(0xC2B2AE35))
    h ^= h >> np.uint32(16)
    return np.uint32(h)


@kernel
def _of_bytes(data, begin, end, seed):
    h = np.uint32(seed)
    at = begin
    while at + 4 <= end:
        h = _mix(h, load32(data, at))
        at += 4
    while at < end:
        h = _mix(h, np.uint32(np.int32(np.int8(data[at]))))
        at += 1
    return _finish(h, end - begin)


@inlined
def _of_long(x, seed):
    low = np.uint32(np.uint64(x) & np.uint64(0xFFFFFFFF))
    return _finish(_mix(_mix(seed, low), np.uint32(np.uint64(x) >> np.uint64(32))), 8)


@kernel
def _hash_strings(offsets, data, seed, out):
    for i in range(len(offsets) - 1):
        begin, end = np.int64(offsets[i]), np.int64(offsets[i + 1])
        h1 = _of_bytes(data, begin, end, seed)
        h2 = _of_bytes(data, begin, end, h1)
        out[i] = np.int64((np.uint64(h1) << np.uint64(32)) | np.uint64(h2))


@kernel
def _hash_longs(numbers, seed, out):
    for i in range(len(numbers)):
        h1 = _of_long(numbers[i], seed)
        h2 = _of_long(numbers[i], h1)
        out[i] = np.int64((np.uint64(h1) << np.uint64(32)) | np.uint64(h2))


def hash_pairs(values: Values, seed: int = 0) -> np.ndarray:
    """Return both hashes of every long, string or binary value, as int64."""
    out = np.empty(len(values), np.int64)
    start = np.uint32(seed & 0xFFFFFFFF)
    if values.kind in ("string", "binary"):
        _hash_strings(values.offsets, values.data, start, out)
    else:
        _hash_longs(values.numbers, start, out)
    return out
