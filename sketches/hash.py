"""MurmurHash3_x64_128, seed 9001: the hash of Apache DataSketches, a block at a time.

Integers hash as int64 in 8 little-endian bytes, floats as doubles with −0.0 as 0.0 and one NaN, strings as
their UTF-8 bytes. Kernels fill `h1` and `h2` arrays handed in (uint64, at least as long as the block).

Source: Austin Appleby, MurmurHash3 (public domain); datasketches-java `MurmurHash3` and `hll.BaseHllSketch`.
"""

from __future__ import annotations

import numpy as np

from .bits import load64
from .columns import Values
from .jit import inlined, kernel

SEED = np.uint64(9001)
"""DataSketches' default update seed; sketches hashed with another can't be merged with these."""

_C1 = np.uint64(0x87C37B91114253D5)
_C2 = np.uint64(0x4CF5AD432745937F)
_CANONICAL_NAN = np.int64(0x7FF8000000000000)


@inlined
def rotl(x, r):  # type: ignore[no-untyped-def]
    """Rotate 64 bits left."""
    return (x << np.uint64(r)) | (x >> np.uint64(64 - r))


@inlined
def fmix(k):  # type: ignore[no-untyped-def]
    """MurmurHash3's 64-bit finaliser."""
    k ^= k >> np.uint64(33)
    k *= np.uint64(0xFF51AFD7ED558CCD)
    k ^= k >> np.uint64(33)
    k *= np.uint64(0xC4CEB9FE1A85EC53)
    k ^= k >> np.uint64(33)
    return k


@kernel
def hash_int64(block, seed, h1_out, h2_out):  # type: ignore[no-untyped-def]
    """Hash a slice of int64 (pass a slice, not a whole array and an offset: slices vectorise)."""
    for i in range(len(block)):
        k1 = np.uint64(block[i]) * _C1
        h1 = seed ^ (rotl(k1, 31) * _C2)
        h1 ^= np.uint64(8)
        h2 = seed ^ np.uint64(8)
        h1 += h2
        h2 += h1
        h1 = fmix(h1)
        h2 = fmix(h2)
        h1 += h2
        h2 += h1
        h1_out[i] = h1
        h2_out[i] = h2


@kernel
def canonical_bits(block, out):  # type: ignore[no-untyped-def]
    """Doubles as the int64 that is hashed: −0.0 as 0.0, every NaN as one."""
    bits = block.view(np.int64)
    for i in range(len(block)):
        x = block[i]
        if x != x:
            out[i] = _CANONICAL_NAN
        elif x == 0.0:
            out[i] = np.int64(0)
        else:
            out[i] = bits[i]


@inlined
def _tail(data, end, n):  # type: ignore[no-untyped-def]
    """The last `n` (1 to 8) bytes before `end` as a little-endian word, reading nothing outside `data`."""
    if end >= 8:
        return load64(data, end - 8) >> np.uint64(64 - 8 * n)
    k = np.uint64(0)
    for b in range(n):
        k |= np.uint64(data[end - n + b]) << np.uint64(8 * b)
    return k


@kernel
def murmur3(data, start, end, seed):  # type: ignore[no-untyped-def]
    """Hash of the bytes ``data[start:end]`` as (h1, h2)."""
    h1 = seed
    h2 = seed
    length = end - start
    at = start
    for _ in range(length // 16):
        h1 ^= rotl(load64(data, at) * _C1, 31) * _C2
        h1 = rotl(h1, 27) + h2
        h1 = h1 * np.uint64(5) + np.uint64(0x52DCE729)
        h2 ^= rotl(load64(data, at + 8) * _C2, 33) * _C1
        h2 = rotl(h2, 31) + h1
        h2 = h2 * np.uint64(5) + np.uint64(0x38495AB5)
        at += 16
    left = end - at
    if left > 8:
        h2 ^= rotl(_tail(data, end, left - 8) * _C2, 33) * _C1
        h1 ^= rotl(load64(data, at) * _C1, 31) * _C2
    elif left > 0:
        h1 ^= rotl(_tail(data, end, left) * _C1, 31) * _C2
    h1 ^= np.uint64(length)
    h2 ^= np.uint64(length)
    h1 += h2
    h2 += h1
    h1 = fmix(h1)
    h2 = fmix(h2)
    h1 += h2
    h2 += h1
    return h1, h2


@kernel
def hash_bytes(offsets, data, seed, h1_out, h2_out):  # type: ignore[no-untyped-def]
    """Hash strings from Arrow's buffers: value ``i`` is ``data[offsets[i]:offsets[i + 1]]``."""
    for i in range(len(offsets) - 1):
        h1_out[i], h2_out[i] = murmur3(data, np.int64(offsets[i]), np.int64(offsets[i + 1]), seed)


def hash_values(values: Values, seed: np.uint64 = SEED) -> tuple[np.ndarray, np.ndarray]:
    """Both 64-bit halves of every value's hash. For kernels that don't hash by blocks themselves."""
    h1 = np.empty(len(values), np.uint64)
    h2 = np.empty(len(values), np.uint64)
    if values.kind == "int64":
        hash_int64(values.numbers, seed, h1, h2)
    elif values.kind == "float64":
        bits = np.empty(len(values), np.int64)
        canonical_bits(values.numbers, bits)
        hash_int64(bits, seed, h1, h2)
    else:
        hash_bytes(values.offsets, values.data, seed, h1, h2)
    return h1, h2
