"""Our own format for a count-min sketch with few counters in use; Spark's contains all counters.

::

    4 bytes  "SGcm"
    int8     the kind of the items (`core.values.item_kinds`), 1 where it isn't known
    int32    seed
    int64    sum of all weights
    int32    depth, the rows
    int32    width, the counters a row
             each row: how many counters are not 0, then for each how many zeros lie before it, and its count
    uint32   CRC-32 of all before

Big-endian; the numbers in the rows are unsigned LEB128 (seven bits per byte, lowest first). 48 values take a
kilobyte where Spark's bytes take 112. A sketch is written in this format exactly if that takes at most a
quarter of Spark's bytes, so equal sketches have equal bytes; Spark refuses them by their first four bytes.
"""

from __future__ import annotations

import struct
import zlib

import numpy as np

from ..core.compilation.jit import inner, lean
from ..core.hashing.bits import ctz64, ones64
from ..core.protocol import SketchError
from ..core.values.item_kinds import code_of, kind_of_code
from .images import MAX_CELLS, MAX_DEPTH, UNKNOWN, Image, image_size

MAGIC = b"SGcm"
KIND_AT, SEED_AT = 4, 5
_HEAD = struct.Struct(">4sbiqii")
CHECK = 4
_LONGEST = 9
"""The number of bytes of the largest int64 as LEB128."""
NO_BITS = np.zeros((0, 0), np.uint64)
"""For callers of `add_rows` that don't need to know which counters changed."""


def sparse_header(seed: int, total: int, depth: int, width: int, item_kind: str | None = None) -> bytes:
    """Return the bytes before the rows."""
    return _HEAD.pack(MAGIC, code_of(item_kind, UNKNOWN)[0], seed, total, depth, width)


def most_room(depth: int, width: int) -> int:
    """Return the most bytes that the rows of a sketch may take in this format."""
    return image_size(depth, width) // 4 - _HEAD.size - CHECK - 2 * _LONGEST


def bits_of(depth: int, width: int) -> np.ndarray:
    """Return a cleared bit for each counter; `mark` sets them, and `put_rows` reads them."""
    return np.zeros((depth, -(-width // 64)), np.uint64)


def sparse_image(seed: int, total: int, table: np.ndarray, item_kind: str | None = None) -> bytes | None:
    """Encode a sketch in this format; None if that takes more than a quarter of Spark's bytes."""
    room = most_room(*table.shape)
    out = np.empty(max(room, 0) + 2 * _LONGEST, np.uint8)
    end = _write_rows(table, bits_of(*table.shape), room, out)
    if end < 0:
        return None
    depth, width = table.shape
    image = sparse_header(seed, total, depth, width, item_kind) + out[:end].tobytes()
    return image + zlib.crc32(image).to_bytes(CHECK, "big")


def parse_sparse(data: bytes | memoryview) -> Image:
    """Parse a sketch in this format. Raises `SketchError` for anything else."""
    size = len(data)
    if size < _HEAD.size + CHECK:
        raise SketchError(f"count-min: {size} bytes are too few for a sketch")
    if zlib.crc32(data[:-CHECK]) != int.from_bytes(data[-CHECK:], "big"):
        raise SketchError("count-min: the checksum is another; the bytes are damaged")
    _, code, seed, total, depth, width = _HEAD.unpack_from(data)
    item_kind = kind_of_code(code, UNKNOWN, "count-min")
    if not 1 <= depth <= MAX_DEPTH or not 1 <= width <= MAX_CELLS // depth or total < 0:
        raise SketchError(f"count-min: depth {depth}, width {width} and total {total} are not a sketch's")
    body = np.frombuffer(data, np.uint8)[_HEAD.size : size - CHECK]
    if not _are_rows(body, depth, width, total):
        raise SketchError(f"count-min: the rows are not {depth} of {width} counters that add up to {total}")
    table = np.zeros((depth, width), np.int64)
    _read_rows(table, NO_BITS, body)
    return Image(seed, total, table, item_kind)


@inner
def _put(out, at, value):
    while value >= 128:
        out[at] = np.uint8((value & 127) | 128)
        value >>= np.int64(7)
        at += 1
    out[at] = np.uint8(value)
    return at + 1


@inner
def mark(table, touched):
    """Set the bits of nonzero counters."""
    depth, width = table.shape
    for r in range(depth):
        row = table[r]
        for first in range(0, width, 64):
            block = row[first : min(first + 64, width)]
            bits = np.uint64(0)
            for i in range(len(block)):
                bits |= np.uint64(block[i] != 0) << np.uint64(i)
            touched[r, first >> 6] = bits


@inner
def put_rows(table, touched, out, at, last):
    """Write the rows to `out`, from `at` on, by their counters' bits; return the end, −1 if beyond `last`.

    Up to two numbers may be written beyond `last`.
    """
    for r in range(table.shape[0]):
        used = np.uint64(0)
        for w in range(touched.shape[1]):
            used += ones64(touched[r, w])
        if at > last:
            return np.int64(-1)
        at = _put(out, at, np.int64(used))
        next_column = np.int64(0)
        for w in range(touched.shape[1]):
            bits = touched[r, w]
            while bits:
                c = 64 * w + np.int64(ctz64(bits))
                bits &= bits - np.uint64(1)
                if at > last:
                    return np.int64(-1)
                at = _put(out, at, c - next_column)
                at = _put(out, at, table[r, c])
                next_column = c + 1
    return at if at <= last else np.int64(-1)


@lean
def _write_rows(table, touched, room, out):
    mark(table, touched)
    return put_rows(table, touched, out, np.int64(0), room)


@inner
def _read_varint(data, at):
    """Return a number and where it ends; −1 if it exceeds the data, or is not an int64."""
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


@inner
def are_rows(data, depth, width, total):
    """Whether these are the rows of a sketch of this shape with weight `total`."""
    at = np.int64(0)
    for _ in range(depth):
        used, at = _read_varint(data, at)
        if at < 0 or used > width:
            return False
        left = total
        column = np.int64(-1)
        for _ in range(used):
            gap, at = _read_varint(data, at)
            if at < 0 or gap >= width - column - 1:
                return False
            column += gap + 1
            count, at = _read_varint(data, at)
            if at < 0 or count < 1 or count > left:
                return False
            left -= count
        if left > 0:
            return False
    return at == len(data)


@inner
def add_rows(table, touched, data):
    """Add valid rows, and set their counters' bits in `touched`, unless that is empty."""
    at = np.int64(0)
    for r in range(table.shape[0]):
        used, at = _read_varint(data, at)
        column = np.int64(-1)
        for _ in range(used):
            gap, at = _read_varint(data, at)
            count, at = _read_varint(data, at)
            column += gap + 1
            count_in(table, touched, r, column, count)


@inner
def count_in(table, touched, r, c, each):
    """Add to a counter of row r, and set its bit in `touched`, unless that is empty."""
    table[r, c] += each
    if len(touched) and each:
        touched[r, c >> 6] |= np.uint64(1) << np.uint64(c & 63)


@lean
def _are_rows(data, depth, width, total):
    return are_rows(data, depth, width, total)


@lean
def _read_rows(table, touched, data):
    add_rows(table, touched, data)
