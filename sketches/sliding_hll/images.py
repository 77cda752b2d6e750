"""Sliding HyperLogLogs in bytes, little-endian:

    0 … 3   4        5     6, 7  8 … 15                   16 … 23     24 … 27  28 … 31  32 … 39     40 …
    "SHLL"  version  lg_k  0     MurmurHash3 of the rest  window, µs  entries  0        cutoff, µs  entries

First come the times of all entries (int64, microseconds since 1970), then their keys (uint32) in ascending
order. For times after the cutoff, a key is a coupon, ``address << 6 | value`` with the 26 bits of an HLL
coupon's address; there are fewer than `most_coupons`. For times up to the cutoff, it is
``register << 6 | value``, and only entries that may still be a register's maximum in some span are written. A
sketch that saw few values in its window has the cutoff −2^63 and only coupons.

In version 1, which is read as well, the header ends before the cutoff: all its entries are registers.
"""

from __future__ import annotations

import struct
from typing import Any, NamedTuple

import numpy as np

from ..core.hashing.hash import SEED, hash_bytes
from ..core.protocol import SketchError
from .store import NEVER, most_coupons

_HEAD = struct.Struct("<4sBBHQqII")
_CUTOFF = struct.Struct("<q")
_VERSION = 2
_MAGIC = b"SHLL"
_CHECKED_FROM = 16
_LONGEST = 10**18


class Image(NamedTuple):
    """The content of an image."""

    lg_k: int
    window: int
    keys: np.ndarray
    times: np.ndarray
    cutoff: int


def write_image(lg_k: int, window: int, keys: np.ndarray, times: np.ndarray, cutoff: int) -> bytes:
    """Return the bytes of a sketch with these entries."""
    rest = _CUTOFF.pack(cutoff) + times.astype("<i8").tobytes() + keys.astype("<u4").tobytes()
    unchecked = _HEAD.pack(_MAGIC, _VERSION, lg_k, 0, 0, window, len(keys), 0)
    check = _check(lg_k, unchecked[_CHECKED_FROM:] + rest)
    return _HEAD.pack(_MAGIC, _VERSION, lg_k, 0, check, window, len(keys), 0) + rest


def read_image(data: Any) -> Image:
    """Parse an image. Raises `SketchError` for anything else."""
    data = bytes(data)
    if len(data) < _HEAD.size:
        raise SketchError(f"SlidingHLL: {len(data)} bytes are too few for a sketch")
    magic, version, lg_k, zero, check, window, count, other_zero = _HEAD.unpack_from(data)
    if magic != _MAGIC or version not in (1, _VERSION) or zero or other_zero:
        raise SketchError(f"SlidingHLL: not a sketch of version 1 or {_VERSION} ({len(data)} bytes)")
    if not 4 <= lg_k <= 21 or not 1 <= window <= _LONGEST:
        raise SketchError(f"SlidingHLL: lg_k {lg_k} or a window of {window} µs is impossible")
    first = _HEAD.size + (_CUTOFF.size if version > 1 else 0)
    if len(data) != first + 12 * count:
        raise SketchError(f"SlidingHLL: {len(data)} bytes can't hold {count} entries")
    if check != _check(lg_k, data[_CHECKED_FROM:], version):
        raise SketchError(f"SlidingHLL: the bytes ({len(data)}) don't fit their check value")
    times = np.frombuffer(data, "<i8", count, first)
    keys = np.frombuffer(data, "<u4", count, first + 8 * count)
    if version > 1:
        (cutoff,) = _CUTOFF.unpack_from(data, _HEAD.size)
    else:
        cutoff = int(times.max(initial=NEVER))
    if (count and (abs(times) > 1 << 62).any()) or (cutoff != NEVER and abs(cutoff) > 1 << 62):
        raise SketchError("SlidingHLL: a time is impossible")
    coupons = times > cutoff
    if count and (
        np.diff(keys.astype(np.int64)).min(initial=1) < 1
        or keys[~coupons].max(initial=0) >= 64 << lg_k
        or not (keys & np.uint32(63)).all()
    ):
        raise SketchError("SlidingHLL: the registers are impossible or not in order")
    if coupons.sum() >= most_coupons(lg_k):
        raise SketchError(f"SlidingHLL: {coupons.sum()} coupons are too many for lg_k {lg_k}")
    return Image(lg_k, window, keys, times, cutoff)


def _check(lg_k: int, rest: bytes, version: int = _VERSION) -> int:
    """Return the checksum; the lg_k and, from version 2 on, the version are part of the seed."""
    check = np.empty(2, np.uint64)
    ends, data = np.array([0, len(rest)]), np.frombuffer(rest, np.uint8)
    hash_bytes(ends, data, SEED + np.uint64(lg_k + (version - 1 << 8)), check[:1], check[1:])
    return int(check[0])
