"""MurmurHash3_x64_128, seed 9001: the hash of Apache DataSketches, a block at a time.

Integers hash as int64 in 8 little-endian bytes, floats as doubles with −0.0 as 0.0 and one NaN, strings as
their UTF-8 bytes. Kernels fill `h1` and `h2` arrays handed in (uint64, at least as long as the block).

Source: Austin Appleby, MurmurHash3 (public domain); datasketches-java `MurmurHash3` and `hll.BaseHllSketch`.
"""

from __future__ import annotations

import numpy as np

from .columns import Values
from .jit import inlined, kernel, lean
from .words import load64

SEED = np.uint64(9001)
"""DataSketches' default update seed; sketches hashed with another can't be merged with these."""

_C1 = np.uint64(0x87C37B91114253D5)
_C2 = np.uint64(0x4CF5AD432745937F)
_CANONICAL_NAN = np.int64(0x7FF8000000000000)


@inlined
def rotl(x, r):
    """Rotate 64 bits left."""
    return (x << np.uint64(r)) | (x >> np.uint64(64 - r))


@inlined
def fmix(k):
    """MurmurHash3's 64-bit finaliser."""
    k ^= k >> np.uint64(33)
    k *= np.uint64(0xFF51AFD7ED558CCD)
    k ^= k >> np.uint64(33)
    k *= np.uint64(0xC4CEB9FE1A85EC53)
    k ^= k >> np.uint64(33)
    return k


@inlined
def finish_hash(h1, h2, length):
    """The hash's last step, both halves mixed with the length and each other."""
    h1 ^= length
    h2 ^= length
    h1 += h2
    h2 += h1
    h1 = fmix(h1)
    h2 = fmix(h2)
    h1 += h2
    return h1, h2 + h1


@inlined
def first_word(h1, k1):
    """Mix a word into the first half."""
    return h1 ^ (rotl(k1 * _C1, 31) * _C2)


@inlined
def second_word(h2, k2):
    """Mix a word into the second half."""
    return h2 ^ (rotl(k2 * _C2, 33) * _C1)


@inlined
def _body(h1, h2, k1, k2):
    """Mix in 16 whole bytes."""
    h1 = first_word(h1, k1)
    h1 = (rotl(h1, 27) + h2) * np.uint64(5) + np.uint64(0x52DCE729)
    h2 = second_word(h2, k2)
    return h1, (rotl(h2, 31) + h1) * np.uint64(5) + np.uint64(0x38495AB5)


@kernel
def hash_int64(block, seed, h1_out, h2_out):
    """Hash a slice of int64 (pass a slice, not a whole array and an offset: slices vectorise)."""
    for i in range(len(block)):
        h1_out[i], h2_out[i] = finish_hash(first_word(seed, np.uint64(block[i])), seed, np.uint64(8))


@kernel
def canonical_bits(block, out):
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
def _tail(data, end, n):
    """The last `n` (1 to 8) bytes before `end` as a little-endian word, reading nothing outside `data`."""
    if end >= 8:
        return load64(data, end - 8) >> np.uint64(64 - 8 * n)
    k = np.uint64(0)
    for b in range(n):
        k |= np.uint64(data[end - n + b]) << np.uint64(8 * b)
    return k


@lean
def _mix_bodies(data, at, end, h1, h2):
    """Mix in 16 bytes from `at` on, as often as there are before `end`."""
    while end - at >= 16:
        h1, h2 = _body(h1, h2, load64(data, at), load64(data, at + 8))
        at += 16
    return h1, h2


@kernel
def murmur3(data, start, end, seed):
    """Hash of the bytes ``data[start:end]`` as (h1, h2). For many strings, see `hash_bytes`."""
    h1, h2 = _mix_bodies(data, start, end, seed, seed)
    left = (end - start) & 15
    if left > 8:
        h2 = second_word(h2, _tail(data, end, left - 8))
    if left > 0:
        h1 = first_word(h1, _tail(data, end - max(left - 8, 0), min(left, 8)))
    return finish_hash(h1, h2, np.uint64(end - start))


STEP = 256
"""Strings hashed in step."""
_BODIES_IN_STEP = 8

# The bytes of a 16-byte load, as two words, that belong to a tail of n bytes.
_FIRST_WORD = np.array([(1 << 8 * min(n, 8)) - 1 for n in range(16)], np.uint64)
_SECOND_WORD = np.array([(1 << 8 * max(n - 8, 0)) - 1 for n in range(16)], np.uint64)


@lean
def _starts_and_lengths(offsets, starts, lengths):
    """Both as int64, and the greatest length."""
    longest = np.int64(0)
    for i in range(len(starts)):
        starts[i] = offsets[i]
        lengths[i] = np.int64(offsets[i + 1]) - np.int64(offsets[i])
        longest = max(longest, lengths[i])
    return longest


@lean
def _load_bodies(starts, lengths, data, body, k1, k2):
    """The two words of each string's 16 bytes number `body`, where it has them."""
    for i in range(len(k1)):
        if lengths[i] >= 16 * (body + 1):
            at = starts[i] + 16 * body
            k1[i] = load64(data, at)
            k2[i] = load64(data, at + 8)


@lean
def _mix_in_step(lengths, body, k1, k2, h1_out, h2_out):
    """Mix 16 bytes into each string's hash, where it has them."""
    for i in range(len(k1)):
        h1, h2 = _body(h1_out[i], h2_out[i], k1[i], k2[i])
        has_body = lengths[i] >= 16 * (body + 1)
        h1_out[i] = h1 if has_body else h1_out[i]
        h2_out[i] = h2 if has_body else h2_out[i]


@lean
def _load_tails(starts, lengths, data, k1, k2):
    """The 0 to 15 bytes after the last whole 16 of each string, as two words."""
    last = len(data) - 16
    for i in range(len(k1)):
        left = lengths[i] & 15
        at = starts[i] + lengths[i] - left
        if at <= last:
            k1[i] = load64(data, at) & _FIRST_WORD[left]
            k2[i] = load64(data, at + 8) & _SECOND_WORD[left]
        else:
            k1[i] = _tail(data, at + min(left, 8), min(left, 8)) if left else np.uint64(0)
            k2[i] = _tail(data, at + left, left - 8) if left > 8 else np.uint64(0)


@lean
def _mix_tails(lengths, k1, k2, h1_out, h2_out):
    """Mix in the tails and finish."""
    for i in range(len(k1)):
        h1 = first_word(h1_out[i], k1[i])
        h2 = second_word(h2_out[i], k2[i])
        h1_out[i], h2_out[i] = finish_hash(h1, h2, np.uint64(lengths[i]))


@lean
def hash_in_step(offsets, data, seed, starts, lengths, k1, k2, h1, h2):
    """`hash_bytes` of up to `STEP` strings: `starts` and `lengths` (int64), `k1` and `k2` are scratch.

    Arrays of that length all stay in the first-level cache.
    """
    n = len(offsets) - 1
    starts, lengths, k1, k2, h1, h2 = starts[:n], lengths[:n], k1[:n], k2[:n], h1[:n], h2[:n]
    for i in range(n):
        h1[i] = h2[i] = seed
    bodies = _starts_and_lengths(offsets, starts, lengths) // 16
    for body in range(min(bodies, _BODIES_IN_STEP)):
        _load_bodies(starts, lengths, data, body, k1, k2)
        _mix_in_step(lengths, body, k1, k2, h1, h2)
    if bodies > _BODIES_IN_STEP:
        for i in range(n):
            rest = starts[i] + 16 * _BODIES_IN_STEP
            h1[i], h2[i] = _mix_bodies(data, rest, starts[i] + lengths[i], h1[i], h2[i])
    _load_tails(starts, lengths, data, k1, k2)
    _mix_tails(lengths, k1, k2, h1, h2)


@kernel
def hash_bytes(offsets, data, seed, h1_out, h2_out):
    """Hash strings from Arrow's buffers: value ``i`` is ``data[offsets[i]:offsets[i + 1]]``.

    Many strings in step, 16 bytes of each at a time, so that the mixing vectorises (10-byte strings: 2.4 ns
    each against 9 one by one); what long ones have beyond that, one by one.
    """
    n = len(offsets) - 1
    starts, lengths = np.empty(STEP, np.int64), np.empty(STEP, np.int64)
    k1, k2 = np.zeros(STEP, np.uint64), np.zeros(STEP, np.uint64)
    for first in range(0, n, STEP):
        ends = offsets[first : first + STEP + 1]
        hash_in_step(ends, data, seed, starts, lengths, k1, k2, h1_out[first:], h2_out[first:])


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
