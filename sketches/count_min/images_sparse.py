"""Our own bytes of a count-min sketch of which few counters are in use; Spark's own hold all of them.

::

    4 bytes  "SGcm"
    int8     version, 1
    int32    seed
    int64    sum of all weights
    int32    depth, the rows
    int32    width, the counters a row
             each row: how many counters are not 0, then for each how many zeros lie before it, and its count
    uint32   CRC-32 of all before

Big-endian; the numbers of the rows are unsigned LEB128 (seven bits a byte, the lowest first). 48 values take
a kilobyte where Spark's bytes take 112. A sketch is written so where that takes at most a quarter of Spark's
bytes, so equal sketches have equal bytes; Spark refuses them by their first four.
"""

from __future__ import annotations

import struct
import zlib
from typing import NamedTuple

import numpy as np

from ..core.jit import inner, lean
from ..core.protocol import SketchError
from .images import MAX_CELLS, MAX_DEPTH, image_size

MAGIC = b"SGcm"
_HEAD = struct.Struct(">4sbiqii")
_CHECK = 4
_LONGEST = 9
"""Bytes of the largest int64 as LEB128."""


class Sparse(NamedTuple):
    """What the bytes hold: the counters that are not 0 by their places (int64), row after row."""

    seed: int
    total: int
    depth: int
    width: int
    places: np.ndarray
    counts: np.ndarray

    def table(self) -> np.ndarray:
        """All counters, depth × width."""
        table = np.zeros(self.depth * self.width, np.int64)
        table[self.places] = self.counts
        return table.reshape(self.depth, self.width)


def sparse_image(seed: int, total: int, table: np.ndarray) -> bytes | None:
    """The sketch in these bytes, None where they take more than a quarter of Spark's."""
    depth, width = table.shape
    room = image_size(depth, width) // 4 - _HEAD.size - _CHECK - 2 * _LONGEST
    out = np.empty(max(room, 0) + 2 * _LONGEST, np.uint8)
    end = _write_rows(table, room, out)
    if end < 0:
        return None
    image = _HEAD.pack(MAGIC, 1, seed, total, depth, width) + out[:end].tobytes()
    return image + zlib.crc32(image).to_bytes(_CHECK, "big")


def parse_sparse(data: bytes | memoryview) -> Sparse:
    """The sketch in these bytes. Raises `SketchError` for anything else."""
    size = len(data)
    if size < _HEAD.size + _CHECK:
        raise SketchError(f"count-min: {size} bytes are too few for a sketch")
    if zlib.crc32(data[:-_CHECK]) != int.from_bytes(data[-_CHECK:], "big"):
        raise SketchError("count-min: the checksum is another; the bytes are damaged")
    _, version, seed, total, depth, width = _HEAD.unpack_from(data)
    if version != 1:
        raise SketchError(f"count-min: expected version 1, got {version}")
    if not 1 <= depth <= MAX_DEPTH or not 1 <= width <= MAX_CELLS // depth or total < 0:
        raise SketchError(f"count-min: depth {depth}, width {width} and total {total} are not a sketch's")
    body = np.frombuffer(data, np.uint8)[_HEAD.size : size - _CHECK]
    places, counts = np.empty((2, len(body) // 2), np.int64)
    found = _read_rows(body, depth, width, total, places, counts)
    if found < 0:
        raise SketchError(f"count-min: the rows are not {depth} of {width} counters that add up to {total}")
    return Sparse(seed, total, depth, width, places[:found], counts[:found])


@inner
def _put(out, at, value):
    while value >= 128:
        out[at] = np.uint8((value & 127) | 128)
        value >>= np.int64(7)
        at += 1
    out[at] = np.uint8(value)
    return at + 1


@lean
def _write_rows(table, room, out):
    """The rows into `out`; returns where they end, −1 if that is beyond `room`."""
    depth, width = table.shape
    at = np.int64(0)
    for r in range(depth):
        row = table[r]
        used = np.int64(0)
        for c in range(width):
            used += np.int64(row[c] != 0)
        if at > room:
            return np.int64(-1)
        at = _put(out, at, used)
        next_column = np.int64(0)
        for c in range(width):
            if row[c] != 0:
                if at > room:
                    return np.int64(-1)
                at = _put(out, at, np.int64(c) - next_column)
                at = _put(out, at, row[c])
                next_column = np.int64(c) + 1
    return at if at <= room else np.int64(-1)


@inner
def _take(data, at):
    """A number and where it ends; −1 where it doesn't within the data, or is not an int64."""
    value = np.int64(0)
    shift = np.int64(0)
    end = np.int64(-1)
    while at < len(data) and shift < 63:
        byte = np.int64(data[at])
        value |= (byte & 127) << shift
        at += 1
        shift += 7
        if byte < 128:
            end = at
            break
    return value, end


@lean
def _read_rows(data, depth, width, total, places, counts):
    """The counters' places and counts; returns how many, −1 for rows that no sketch writes."""
    at = np.int64(0)
    found = np.int64(0)
    for r in range(depth):
        used, at = _take(data, at)
        if at < 0 or used > width or found + used > len(places):
            return np.int64(-1)
        left = total
        column = np.int64(-1)
        for _ in range(used):
            gap, at = _take(data, at)
            if at < 0 or gap >= width - column - 1:
                return np.int64(-1)
            column += gap + 1
            count, at = _take(data, at)
            if at < 0 or count < 1 or count > left:
                return np.int64(-1)
            left -= count
            places[found] = r * width + column
            counts[found] = count
            found += 1
        if left > 0:
            return np.int64(-1)
    return found if at == len(data) else np.int64(-1)
