"""Images of t-digests of doubles, checked to the last byte before the package reads them."""

from __future__ import annotations

import struct

import numpy as np

_FAMILY = 20
SINGLE = 2


def clusters(data: bytes) -> tuple[np.ndarray, np.ndarray]:
    """The means with their weights, and the buffered values, of an image of more than one value."""
    centroids, buffered = struct.unpack_from("<II", data, 8)
    pairs = np.frombuffer(data, np.dtype([("mean", "<f8"), ("weight", "<u8")]), centroids, 32)
    return pairs, np.frombuffer(data, "<f8", buffered, 32 + 16 * centroids)


def image_fault(data: bytes) -> str:
    """What is wrong with a t-digest image of doubles, if anything.

    8 bytes: preamble longs, serial version, family, k (uint16), flags, unused. Then the only value, or the
    numbers of centroids and of buffered values (uint32), the lowest and highest value, means with weights
    (uint64), and the buffered values. The package writes room for centroids it has just merged: zeros after
    the end are not a fault.
    """
    if len(data) < 8:
        return "fewer bytes than its header needs"
    longs, version, family, k, flags, unused = struct.unpack_from("<BBBHBH", data)
    if version != 1 or family != _FAMILY or k < 10 or flags > 7 or unused:
        return "another version, family or k"
    if flags & 1 or flags & 2:
        size = 8 if flags & 1 else 16
        if longs != 1 or flags & 3 == 3 or len(data) != size:
            return "a length that isn't an empty or a single sketch's"
        return "" if np.isfinite(np.frombuffer(data, "<f8", -1, 8)).all() else "its value isn't finite"
    if longs != 2 or len(data) < 32:
        return "it ends within its header"
    centroids, buffered, low, high = struct.unpack_from("<IIdd", data, 8)
    end = 32 + 16 * centroids + 8 * buffered
    if len(data) < end or any(data[end:]) or centroids + buffered == 0:
        return "a length that isn't its centroids'"
    most = 2 * k + (30 if k < 30 else 10)
    if centroids > most or buffered > 4 * most:
        return "more centroids or buffered values than its k allows"
    pairs, single = clusters(data)
    values = np.concatenate([pairs["mean"], single])
    if not (np.isfinite([low, high]).all() and ((values >= low) & (values <= high)).all()):
        return "a value is NaN, or beyond the lowest and highest"
    if (pairs["mean"][1:] < pairs["mean"][:-1]).any() or (pairs["weight"] < 1).any():
        return "its centroids are out of order or have no weight"
    return "" if pairs["weight"].sum(dtype=float) < 2.0**53 else "its weights are beyond any count"
