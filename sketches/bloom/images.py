"""The bytes of Bloom filters: Spark's two versions, and our own for blocked filters.

Spark's, big-endian: int32 version (1 or 2), int32 bits a value, in version 2 int32 seed, int32 words, int64
words. Own, little-endian::

    byte  0  b"SGBLOOM"
          7  the kind of the items (`core.values.item_kinds`), b"1" where it isn't known
          8  uint64 capacity
         16  float64 false positives at capacity
         24  int32 seed
         28  uint32 words of 32 bits, eight a block
         32  uint32 CRC-32 of the bytes before and the words
         36  the words

Spark's have no checksum: a damaged word gives a different filter.

Source: Spark `BloomFilterImpl.writeTo`, `BloomFilterImplV2.writeTo`, `BitArray.writeTo`.
"""

from __future__ import annotations

import struct
import zlib
from typing import NamedTuple

import numpy as np

from ..core.protocol import SketchError
from ..core.values.item_kinds import code_of, kind_of_code
from .shape import MAX_WORDS

MAGIC = b"SGBLOOM"
KIND_AT, UNKNOWN = 7, b"1"
_OWN = struct.Struct("<8sQdiI")
CAPACITY_AT, SEED_AT, CHECK_AT, START = 8, 24, 32, 36
_MAX_K = 4096


class Image(NamedTuple):
    """The content of an image; capacity and fpp are 0 if it doesn't record them."""

    layout: str
    words: np.ndarray  # uint32
    k: int
    seed: int
    capacity: int
    fpp: float
    item_kind: str | None = None


def write(image: Image) -> bytes:
    """Return the bytes of a filter."""
    head = header(image)
    if image.layout == "blocked":
        body = image.words.tobytes()
        check = zlib.crc32(body, zlib.crc32(head[:CHECK_AT]))
        return head[:CHECK_AT] + struct.pack("<I", check) + body
    return head + image.words.view(np.uint64).astype(">u8").tobytes()


def header(image: Image) -> bytes:
    """Return the bytes before the words, with checksum 0."""
    if image.layout == "blocked":
        start = MAGIC + code_of(image.item_kind, UNKNOWN)
        own = _OWN.pack(start, image.capacity, image.fpp, image.seed, len(image.words))
        return own + bytes(START - CHECK_AT)
    fields = (1, image.k) if image.layout == "spark_v1" else (2, image.k, image.seed)
    return struct.pack(f">{len(fields) + 1}i", *fields, len(image.words) // 2)


def parse(data: bytes | memoryview) -> Image:
    """Parse a filter in any layout. Raises `SketchError` for anything else."""
    if bytes(data[:KIND_AT]) == MAGIC:
        return _parse_own(data)
    version = int.from_bytes(data[:4], "big") if len(data) >= 4 else 0
    if version not in (1, 2):
        raise SketchError("bloom: the bytes begin like no filter, neither ours nor Spark's versions 1 and 2")
    numbers = 3 if version == 1 else 4
    if len(data) < 4 * numbers:
        raise SketchError(f"bloom: {len(data)} bytes are too few for Spark's header of {4 * numbers}")
    _, k, *seed, size = struct.unpack_from(f">{numbers}i", data)
    if not 1 <= k <= _MAX_K or not 1 <= size <= MAX_WORDS // 2 or len(data) != 4 * numbers + 8 * size:
        raise SketchError(f"bloom: {k} bits a value in {size} words are not what {len(data)} bytes hold")
    words = np.frombuffer(data, ">u8", size, 4 * numbers).astype(np.uint64).view(np.uint32)
    return Image(f"spark_v{version}", words, k, seed[0] if seed else 0, 0, 0.0)


def _parse_own(data: bytes | memoryview) -> Image:
    if len(data) < START:
        raise SketchError(f"bloom: {len(data)} bytes are too few for a header of {START}")
    _, capacity, fpp, seed, size = _OWN.unpack_from(data)
    (check,) = struct.unpack_from("<I", data, _OWN.size)
    if not size or size % 8 or len(data) != START + 4 * size:
        raise SketchError(f"bloom: {size} words are not what {len(data)} bytes hold")
    if check != zlib.crc32(data[START:], zlib.crc32(data[: _OWN.size])):
        raise SketchError("bloom: the check sum is wrong; the bytes are damaged")
    if capacity < 1 or not 0 < fpp < 1:
        raise SketchError(f"bloom: capacity {capacity} and fpp {fpp} don't make a filter")
    words = np.frombuffer(data, "<u4", size, START).astype(np.uint32)
    kind = kind_of_code(data[KIND_AT], UNKNOWN, "bloom")
    return Image("blocked", words, 8, seed, capacity, fpp, kind)
