"""Integers of variable length, as Protobuf and Avro write them: seven bits per byte, the lowest first."""

from __future__ import annotations

import numpy as np

from ...sketches.core.compilation.jit import inner
from .address_intrinsics import load8


@inner
def varint(at, end):
    """An integer (uint64) and the address after it; 0 for one that is too long for 64 bits or ends early."""
    word = np.uint64(0)
    shift = np.uint64(0)
    while at < end:
        byte = np.uint64(load8(at))
        at += 1
        if shift == np.uint64(63) and byte > np.uint64(1):
            break
        word |= (byte & np.uint64(127)) << shift
        if byte < np.uint64(128):
            return word, at
        shift += np.uint64(7)
    return np.uint64(0), np.int64(0)


@inner
def zigzag(word):
    """The signed integer that was written as this word: 0, −1, 1, −2 as 0, 1, 2, 3."""
    half = np.int64(word >> np.uint64(1))
    return ~half if word & np.uint64(1) else half
