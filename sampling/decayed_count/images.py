"""Decayed counts in bytes, 48 each."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from ...sketches.core.parameters import seconds
from ...sketches.core.protocol import SketchError
from ..core.decay import HalfLife

IMAGE = struct.Struct("<4sBxxxdqdqq")
MAGIC, VERSION = b"SGDC", 1
MOST_ROWS = (1 << 62) - 1
"""The most rows of a decayed count and its images."""
NOBODY = np.iinfo(np.int64).min
STATE = np.dtype([("weight", "f8"), ("epoch", "i8"), ("n", "i8"), ("latest", "i8")])


def read_image(data: bytes) -> tuple[float, Any]:
    """Parse the half-life and state of an image. Raises `SketchError` for anything else."""
    if len(data) != IMAGE.size:
        raise SketchError(f"DecayedCount: expected {IMAGE.size} bytes, got {len(data)}")
    magic, version, half_life, epoch, weight, n, latest = IMAGE.unpack(data)
    if magic != MAGIC or version != VERSION or data[5:8] != b"\0\0\0":
        raise SketchError("DecayedCount: these bytes are not a decayed count, or of a later version")
    decay = HalfLife(seconds("DecayedCount", "half_life", half_life))
    if n == 0 and (weight, epoch, latest) == (0.0, NOBODY, NOBODY):
        return half_life, np.array((weight, epoch, n, latest), STATE)
    # The latest row is in the epoch, with a weight from 1 to 2, and no row weighs more, except for rounding.
    fits = 1 - 1e-9 <= weight <= 2.0 * n * (1 + 1e-9)
    if not 0 < n <= MOST_ROWS or latest // decay.span != epoch or not fits:
        raise SketchError("DecayedCount: a weight that so many rows can't have")
    return half_life, np.array((weight, epoch, n, latest), STATE)
