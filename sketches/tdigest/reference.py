"""Read digests in the formats of Dunning's own library, `MergingDigest.asBytes` and `asSmallBytes`.

Both are big-endian and begin with three zeros, unlike all images of DataSketches:

    1 (int32), lowest, highest value, compression (doubles), clusters (int32), weight, mean of each (doubles)
    2 (int32), lowest, highest value (doubles), compression (float), 4 unused, clusters (int16), weight, mean
    of each (floats)

Source: github.com/tdunning/t-digest, `MergingDigest`; datasketches-cpp `tdigest::deserialize_compat`.
"""

from __future__ import annotations

import struct

import numpy as np

from ..core.protocol import SketchError

BEGINNING = bytes(3)
_DOUBLES, _FLOATS = struct.Struct(">idddi"), struct.Struct(">iddf4xh")


def as_image(data: bytes) -> bytes:
    """Convert to a DataSketches image, with the compression as k. Raises `SketchError` for other bytes.

    >>> data = _DOUBLES.pack(1, 1.0, 5.0, 100.0, 2) + struct.pack(">dddd", 1.0, 1.0, 3.0, 4.0)
    >>> as_image(data)[32:].hex() == struct.pack("<dQdQ", 1.0, 1, 4.0, 3).hex()
    True
    """
    form = {1: _DOUBLES, 2: _FLOATS}.get(data[3] if len(data) > 3 else 0)
    if form is None or len(data) < form.size:
        raise _broken(data, "it begins like one of Dunning's library, but is not one")
    _, low, high, compression, count = form.unpack_from(data)
    item = ">f8" if form is _DOUBLES else ">f4"
    if len(data) != form.size + 2 * int(item[2]) * count or not 0 <= compression < 65_536:
        raise _broken(data, "a length that isn't its clusters', or a compression beyond 65,535")
    if not count:
        return struct.pack("<BBBHBH", 1, 1, 20, int(compression), 1, 0)
    pairs = np.frombuffer(data, np.dtype([("weight", item), ("mean", item)]), count, form.size)
    weights = pairs["weight"].astype(np.float64)
    if not ((weights >= 1) & (weights <= 2.0**53) & (weights == np.floor(weights))).all():
        raise _broken(data, "a weight that isn't a whole number from 1 to 2^53")
    clusters = np.empty(count, np.dtype([("mean", "<f8"), ("weight", "<u8")]))
    clusters["mean"], clusters["weight"] = pairs["mean"], weights.astype(np.uint64)
    if form is _FLOATS:  # the extremes are doubles, and a mean may be rounded past them
        clusters["mean"] = np.clip(clusters["mean"], low, high)
    head = struct.pack("<BBBHBHIIdd", 2, 1, 20, int(compression), 0, 0, count, 0, low, high)
    return head + clusters.tobytes()


def _broken(data: bytes, fault: str) -> SketchError:
    return SketchError(f"TDigest: these {len(data)} bytes are not a sketch: {fault}")
