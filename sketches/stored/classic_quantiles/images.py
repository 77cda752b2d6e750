"""Validate images of classic quantiles completely before the package reads them."""

from __future__ import annotations

import struct

import numpy as np

_FAMILY = 8
_EMPTY, _COMPACT, _ORDERED = 4, 8, 16
_HEADER = struct.Struct("<BBBBHH")
MOST = 1 << 47


def compacted(data: bytes) -> tuple[bytes, str]:
    """Return the compact ordered form of an image of doubles; or what is wrong with it.

    8 bytes: preamble longs, serial version (3), family, flags (2 read-only, 4 empty, 8 compact, 16 ordered),
    k (uint16), 0. Unless empty: n (uint64), the lowest and highest value, the n mod 2k values of the base
    buffer, then a level of k sorted values for each bit of n / 2k. Compact images omit the levels of zero
    bits, and free room in the base buffer. Source: datasketches-java 6.2.0 `quantiles.DoublesUtil`,
    `DirectUpdateDoublesSketch`.
    """
    if len(data) < 8:
        return b"", "fewer bytes than its header needs"
    longs, version, family, flags, k, unused = _HEADER.unpack_from(data)
    if version != 3 or family != _FAMILY or flags & ~30 or unused:
        return b"", "another version, family or flags"
    if not 2 <= k <= 32_768 or k & (k - 1):
        return b"", f"k must be a power of 2 from 2 to 32768, got {k}"
    if flags & _EMPTY:
        if longs != 1 or len(data) != 8:
            return b"", "an empty sketch followed by more"
        return _HEADER.pack(1, 3, _FAMILY, _EMPTY | _COMPACT | _ORDERED, k, 0), ""
    n = int.from_bytes(data[8:16], "little")
    if longs != 2 or not 0 < n < MOST or len(data) < 32 or len(data) % 8:
        return b"", "it ends within its header, or counts too much"
    with np.errstate(invalid="ignore"):  # a signalling NaN, which is refused below
        numbers = np.frombuffer(data, "<f8", -1, 16) + 0.0
    low, high, held = numbers[0], numbers[1], numbers[2:]
    based, levels = n % (2 * k), n // (2 * k)
    if flags & _COMPACT:
        room, used = based, k * levels.bit_count()
    else:
        room, used = (2 * k if levels else min(len(held), 2 * k)), k * levels.bit_length()
    if len(held) != room + used or room < based:
        return b"", "a length that isn't its values'"
    parts = [np.sort(held[:based])]
    at = room
    while levels:
        if levels & 1:
            parts.append(held[at : at + k])
            if (parts[-1][1:] < parts[-1][:-1]).any():
                return b"", "a level is out of order"
        at += k if levels & 1 or not flags & _COMPACT else 0
        levels >>= 1
    values = np.concatenate(parts)
    if np.isnan([low, high]).any() or not ((values >= low) & (values <= high)).all():
        return b"", "a value is NaN, or beyond the lowest and highest"
    head = _HEADER.pack(2, 3, _FAMILY, _COMPACT | _ORDERED, k, 0) + data[8:16]
    return head + numbers[:2].tobytes() + values.tobytes(), ""
