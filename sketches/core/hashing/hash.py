"""MurmurHash3_x64_128, seed 9001: the hash of Apache DataSketches, computed in blocks.

Integers hash as int64 in 8 little-endian bytes, floats as doubles with −0.0 as 0.0 and one NaN, strings as
their UTF-8 bytes. A hash is two words of 64 bits, `h1` and `h2`. The arithmetic is in `simd_murmur`.

Source: Austin Appleby, MurmurHash3 (public domain); datasketches-java `MurmurHash3` and `hll.BaseHllSketch`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from ..columns.columns import Values
from ..compilation.jit import inner, lean
from ..groups.group_numbers import frozen
from .simd_murmur import LANES, hash_numbers, mix_bodies, mix_tails
from .words import load64

SEED = np.uint64(9001)
"""DataSketches' default update seed; sketches hashed with another seed can't be merged with these."""

STEP = 256
"""Values hashed in step: a multiple of `LANES`, with all arrays small enough for the first-level cache."""

_C1 = np.uint64(0x87C37B91114253D5)
_C2 = np.uint64(0x4CF5AD432745937F)
CANONICAL_NAN = np.int64(0x7FF8000000000000)
"""The bits by which every NaN is hashed."""


@inner
def fmix(k):
    """MurmurHash3's 64-bit finaliser."""
    k ^= k >> np.uint64(33)
    k *= np.uint64(0xFF51AFD7ED558CCD)
    k ^= k >> np.uint64(33)
    k *= np.uint64(0xC4CEB9FE1A85EC53)
    k ^= k >> np.uint64(33)
    return k


@inner
def hash_block(block, seed, h1, h2):
    """Hash int64 values; `h1` and `h2` must have room for a multiple of `LANES`."""
    whole = len(block) & -LANES
    for at in range(0, whole, LANES):
        hash_numbers(block, h1, h2, at, seed)
    if whole < len(block):
        for i in range(whole, len(block)):
            h1[i] = np.uint64(block[i])
        hash_numbers(h1, h1, h2, whole, seed)


@lean
def canonical_bits(block, out):
    """Convert doubles to the int64 that is hashed: −0.0 as 0.0, every NaN as one."""
    bits = block.view(np.int64)
    for i in range(len(block)):
        x = block[i]
        if x != x:
            out[i] = CANONICAL_NAN
        elif x == 0.0:
            out[i] = np.int64(0)
        else:
            out[i] = bits[i]


class StringScratch(NamedTuple):
    """Scratch for hashing up to `STEP` strings: their starts and lengths, and two words of each."""

    starts: np.ndarray
    lengths: np.ndarray
    k1: np.ndarray
    k2: np.ndarray


def new_string_scratch() -> StringScratch:
    """Return scratch for one call of a kernel."""
    numbers, words = np.empty((2, STEP), np.int64), np.zeros((2, STEP), np.uint64)
    return StringScratch(numbers[0], numbers[1], words[0], words[1])


_BODIES_IN_STEP = 8

# Masks, as two words, of the bytes of a 16-byte load that belong to a tail of n bytes.
_FIRST_WORD = np.array([(1 << 8 * min(n, 8)) - 1 for n in range(16)], np.uint64)
_SECOND_WORD = np.array([(1 << 8 * max(n - 8, 0)) - 1 for n in range(16)], np.uint64)


@inner
def _rotated(x, by):
    return (x << np.uint64(by)) | (x >> np.uint64(64 - by))


@inner
def _mix_rest(data, at, end, h1, h2):
    """Mix in blocks of 16 bytes from `at` on, for as many as fit before `end`."""
    while end - at >= 16:
        h1 ^= _rotated(load64(data, at) * _C1, 31) * _C2
        h1 = (_rotated(h1, 27) + h2) * np.uint64(5) + np.uint64(0x52DCE729)
        h2 ^= _rotated(load64(data, at + 8) * _C2, 33) * _C1
        h2 = (_rotated(h2, 31) + h1) * np.uint64(5) + np.uint64(0x38495AB5)
        at += 16
    return h1, h2


@inner
def _load_bodies(scratch, n, data, body):
    """Load the two words of block number `body` of each string that has it."""
    for i in range(n):
        if scratch.lengths[i] >= 16 * (body + 1):
            at = scratch.starts[i] + 16 * body
            scratch.k1[i] = load64(data, at)
            scratch.k2[i] = load64(data, at + 8)


@inner
def _word_before(data, end, n):
    """Load the last `n` (1 to 8) bytes before `end` as a little-endian word, reading only within `data`."""
    if end >= 8:
        return load64(data, end - 8) >> np.uint64(64 - 8 * n)
    k = np.uint64(0)
    for b in range(n):
        k |= np.uint64(data[end - n + b]) << np.uint64(8 * b)
    return k


@inner
def _load_tails(scratch, n, data):
    """Load the 0 to 15 bytes after each string's last whole block of 16, as two words."""
    last = len(data) - 16
    for i in range(n):
        left = scratch.lengths[i] & 15
        at = scratch.starts[i] + scratch.lengths[i] - left
        if at <= last:
            scratch.k1[i] = load64(data, at) & _FIRST_WORD[left]
            scratch.k2[i] = load64(data, at + 8) & _SECOND_WORD[left]
        else:
            some = min(left, 8)
            scratch.k1[i] = _word_before(data, at + some, some) if left else np.uint64(0)
            scratch.k2[i] = _word_before(data, at + left, left - 8) if left > 8 else np.uint64(0)


@inner
def hash_in_step(offsets, data, seed, scratch, h1, h2):
    """Hash up to `STEP` strings, 16 bytes of each at a time; `h1` and `h2` must have room for `STEP`.

    Beyond 128 bytes, strings are mixed one by one.
    """
    n = len(offsets) - 1
    longest = np.int64(0)
    for i in range(n):
        scratch.starts[i] = offsets[i]
        scratch.lengths[i] = np.int64(offsets[i + 1]) - np.int64(offsets[i])
        longest = max(longest, scratch.lengths[i])
        h1[i] = seed
        h2[i] = seed
    bodies: Any = longest // 16
    for body in range(min(bodies, _BODIES_IN_STEP)):
        _load_bodies(scratch, n, data, body)
        for at in range(0, n, LANES):
            mix_bodies(scratch.lengths, scratch.k1, scratch.k2, h1, h2, at, body)
    if bodies > _BODIES_IN_STEP:
        for i in range(n):
            rest = scratch.starts[i] + 16 * _BODIES_IN_STEP
            h1[i], h2[i] = _mix_rest(data, rest, scratch.starts[i] + scratch.lengths[i], h1[i], h2[i])
    _load_tails(scratch, n, data)
    for at in range(0, n, LANES):
        mix_tails(scratch.lengths, scratch.k1, scratch.k2, h1, h2, at)


@lean
def _hash_int64(numbers, seed, h1_out, h2_out, words):
    """Implement `hash_int64`; `words` has room for twice `LANES`."""
    whole = len(numbers) & -LANES
    hash_block(numbers[:whole], seed, h1_out, h2_out)
    h1, h2 = words[:LANES], words[LANES:]
    hash_block(numbers[whole:], seed, h1, h2)
    for i in range(whole, len(numbers)):
        h1_out[i], h2_out[i] = h1[i - whole], h2[i - whole]


@lean
def _hash_bytes(offsets, data, seed, scratch, h1_out, h2_out, words):
    """Implement `hash_bytes`; `words` has room for twice `STEP`."""
    h1, h2 = words[:STEP], words[STEP:]
    for first in range(0, len(offsets) - 1, STEP):
        ends = offsets[first : first + STEP + 1]
        if len(ends) > STEP:
            hash_in_step(ends, data, seed, scratch, h1_out[first:], h2_out[first:])
            continue
        hash_in_step(ends, data, seed, scratch, h1, h2)
        for i in range(len(ends) - 1):
            h1_out[first + i], h2_out[first + i] = h1[i], h2[i]


def hash_int64(numbers: np.ndarray, seed: np.uint64, h1_out: np.ndarray, h2_out: np.ndarray) -> None:
    """Hash int64 values into two uint64 arrays of the same length."""
    _hash_int64(frozen(numbers), seed, h1_out, h2_out, np.zeros(2 * LANES, np.uint64))


def hash_bytes(
    offsets: np.ndarray, data: np.ndarray, seed: np.uint64, h1_out: np.ndarray, h2_out: np.ndarray
) -> None:
    """Hash strings from Arrow's buffers into two arrays: value ``i`` is ``data[offsets[i]:offsets[i + 1]]``.

    Processes many strings in step, so that the mixing is vectorised.
    """
    words = np.empty(2 * STEP, np.uint64)
    _hash_bytes(frozen(offsets), frozen(data), seed, new_string_scratch(), h1_out, h2_out, words)


def hash_values(values: Values, seed: np.uint64 = SEED) -> tuple[np.ndarray, np.ndarray]:
    """Return both 64-bit halves of every value's hash, for kernels that don't hash blocks themselves."""
    h1 = np.empty(len(values), np.uint64)
    h2 = np.empty(len(values), np.uint64)
    if values.kind == "int64":
        hash_int64(values.numbers, seed, h1, h2)
    elif values.kind == "float64":
        bits = np.empty(len(values), np.int64)
        canonical_bits(frozen(values.numbers), bits)
        hash_int64(bits, seed, h1, h2)
    else:
        hash_bytes(values.offsets, values.data, seed, h1, h2)
    return h1, h2


CHUNK = 1 << 15
"""Values hashed at a time for other kernels: the hashes stay in the second-level cache."""
READ_AHEAD = 64
"""Readable words after a chunk's hashes; their content is arbitrary."""


class Hashes(NamedTuple):
    """The hashes of a chunk of a column, from value number `first` on; `empty` marks empty strings, if there
    are any. The arrays are reused for the next chunk."""

    first: int
    h1: np.ndarray
    h2: np.ndarray
    empty: np.ndarray | None


def hashed_chunks(values: Values, start: int = 0) -> Iterator[Hashes]:
    """Yield the hashes of a column from value number `start` on, `CHUNK` at a time."""
    room = min(len(values) - start, CHUNK)
    h1, h2 = np.zeros((2, room + READ_AHEAD), np.uint64)
    text = values.kind in ("string", "binary")
    bits = np.empty(room if values.kind == "float64" else 0, np.int64)
    for first in range(start, len(values), CHUNK):
        end = min(first + CHUNK, len(values))
        one, two, empty = h1[: end - first], h2[: end - first], None
        if text:
            offsets = values.offsets[first : end + 1]
            hash_bytes(offsets, values.data, SEED, one, two)
            same = offsets[1:] == offsets[:-1]
            empty = same if same.any() else None
        else:
            numbers = values.numbers[first:end]
            if values.kind == "float64":
                canonical_bits(frozen(numbers), bits)
                numbers = bits[: end - first]
            hash_int64(numbers, SEED, one, two)
        yield Hashes(first, one, two, empty)
