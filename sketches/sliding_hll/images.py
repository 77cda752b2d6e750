"""Sliding HyperLogLogs in bytes, little-endian:

    0 … 3    4        5     6, 7  8 … 15                      16 … 23      24 … 27  28 … 31  32 …
    "SHLL"   version  lg_k  0     MurmurHash3 of the rest     window, µs   entries  0        times, then keys

An entry is a time (int64, microseconds since 1970) and a key, ``register << 6 | value`` (uint32), the keys in
ascending order. Only entries that may still be a register's greatest value in some span are written.
"""

from __future__ import annotations

import struct
from typing import Any, NamedTuple

import numpy as np

from ..core.hash import SEED, hash_bytes
from ..core.protocol import SketchError

_HEAD = struct.Struct("<4sBBHQqII")
_MAGIC = b"SHLL"
_CHECKED_FROM = 16
_LONGEST = 10**18


class Image(NamedTuple):
    """What an image holds."""

    lg_k: int
    window: int
    keys: np.ndarray
    times: np.ndarray


def write_image(lg_k: int, window: int, keys: np.ndarray, times: np.ndarray) -> bytes:
    """The bytes of a sketch of those entries."""
    rest = times.astype("<i8").tobytes() + keys.astype("<u4").tobytes()
    unchecked = _HEAD.pack(_MAGIC, 1, lg_k, 0, 0, window, len(keys), 0)
    check = _check(lg_k, unchecked[_CHECKED_FROM:] + rest)
    return _HEAD.pack(_MAGIC, 1, lg_k, 0, check, window, len(keys), 0) + rest


def read_image(data: Any) -> Image:
    """What those bytes hold. Raises `SketchError` for anything else."""
    data = bytes(data)
    if len(data) < _HEAD.size:
        raise SketchError(f"SlidingHLL: {len(data)} bytes are too few for a sketch")
    magic, version, lg_k, zero, check, window, count, other_zero = _HEAD.unpack_from(data)
    if magic != _MAGIC or version != 1 or zero or other_zero:
        raise SketchError(f"SlidingHLL: not a sketch of version 1 ({len(data)} bytes)")
    if not 4 <= lg_k <= 21 or not 1 <= window <= _LONGEST:
        raise SketchError(f"SlidingHLL: lg_k {lg_k} or a window of {window} µs is impossible")
    if len(data) != _HEAD.size + 12 * count:
        raise SketchError(f"SlidingHLL: {len(data)} bytes can't hold {count} entries")
    if check != _check(lg_k, data[_CHECKED_FROM:]):
        raise SketchError(f"SlidingHLL: the bytes ({len(data)}) don't fit their check value")
    times = np.frombuffer(data, "<i8", count, _HEAD.size)
    keys = np.frombuffer(data, "<u4", count, _HEAD.size + 8 * count)
    values = keys & np.uint32(63)
    if count and (
        np.diff(keys.astype(np.int64)).min(initial=1) < 1 or keys[-1] >= 64 << lg_k or not values.all()
    ):
        raise SketchError("SlidingHLL: the registers are impossible or not in order")
    if count and (abs(times) > 1 << 62).any():
        raise SketchError("SlidingHLL: a time is impossible")
    return Image(lg_k, window, keys, times)


def _check(lg_k: int, rest: bytes) -> int:
    """The check value; the lg_k goes in as part of the seed."""
    check = np.empty(2, np.uint64)
    ends, data = np.array([0, len(rest)]), np.frombuffer(rest, np.uint8)
    hash_bytes(ends, data, SEED + np.uint64(lg_k), check[:1], check[1:])
    return int(check[0])
