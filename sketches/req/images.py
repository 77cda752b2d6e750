"""REQ images of floats, checked to the last byte before the package reads them."""

from __future__ import annotations

import struct

import numpy as np

_FAMILY = 17
_EMPTY, _RAW = 4, 16
_COMPACTOR = struct.Struct("<QfBBHI")


def image_fault(data: bytes) -> str:
    """What is wrong with a REQ image of floats, if anything.

    8 bytes: preamble ints, serial version, family, flags, k (uint16), levels, raw items. Then up to four raw
    items, or, from two levels on, n and the lowest and highest item, and for each level its state, section
    size (float), lg weight, sections, items (uint32) and the items. Source: datasketches-cpp `req_sketch`.
    """
    if len(data) < 8:
        return "fewer bytes than its header needs"
    ints, version, family, flags, k, depth, raw = struct.unpack_from("<BBBBHBB", data)
    if version != 1 or family != _FAMILY or not 4 <= k <= 1024 or k % 2:
        return "another version, family or k"
    if ints != (4 if depth > 1 else 2) or flags & 3 or flags >> 6:
        return "an unknown header"
    if flags & _EMPTY:
        return "" if (len(data), depth, raw) == (8, 0, 0) else "an empty sketch followed by more"
    if flags & _RAW:
        if depth != 1 or not 1 <= raw <= 4 or len(data) < 8 + 4 * raw or any(data[8 + 4 * raw :]):
            return "raw items of another number than its length"
        stored = np.frombuffer(data, "<f4", raw, 8)
        if flags & 32 and (stored[1:] < stored[:-1]).any():
            return "raw items are out of order"
        return "an item is NaN" if np.isnan(stored).any() else ""
    if not 1 <= depth <= 58 or raw:
        return "the number of levels is out of range"
    at, n, low, high = 8, -1, -np.inf, np.inf
    if depth > 1:
        if len(data) < 24:
            return "it ends within its header"
        n, low, high = struct.unpack_from("<Qff", data, 8)
        at = 24
    count = 0
    for level in range(depth):
        if len(data) < at + _COMPACTOR.size:
            return "it ends within a level"
        state, section, weight, sections, unused, items = _COMPACTOR.unpack_from(data, at)
        at += _COMPACTOR.size
        if (state == 0) != (level == depth - 1):
            return f"level {level} was compacted, or not, against what lies above it"
        doublings = max(0, sections.bit_length() - 2)
        if weight != level or unused or sections != 3 << doublings or len(data) < at + 4 * items:
            return f"level {level} has another weight, number of sections or length"
        if not abs(section * 2 ** (doublings / 2) / k - 1) < 1e-4 or (
            level == 0 and depth == 1 and not items
        ):
            return f"level {level} has another section size than k makes"
        stored = np.frombuffer(data, "<f4", items, at)
        if not ((stored >= low) & (stored <= high)).all():
            return f"level {level} holds NaN or an item beyond the lowest and highest"
        if (level > 0 or flags & 32) and (stored[1:] < stored[:-1]).any():
            return f"level {level} is out of order"
        at += 4 * items
        count += items << level
    if at != len(data) or n not in (-1, count) or count >= 1 << 62:
        return "its levels don't add up to n, or more bytes follow"
    return ""
