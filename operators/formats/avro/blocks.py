"""Checks the uncompressed size of the blocks of an Avro container file before they are decompressed.

A few kilobytes of compressed zeros can become gigabytes: one such message must not exhaust a worker's memory.
"""

from __future__ import annotations

import bz2
import lzma
import zlib
from collections.abc import Callable
from io import BytesIO
from typing import Any, cast

from ..per_message import Misread
from ..reasons import Reason

LARGEST = 1 << 28
"""The largest total uncompressed size of a message's blocks, 256 MB."""

_HEADER = {
    "type": "record",
    "name": "Header",
    "fields": [
        {"name": "magic", "type": {"type": "fixed", "name": "Magic", "size": 4}},
        {"name": "meta", "type": {"type": "map", "values": "bytes"}},
        {"name": "sync", "type": {"type": "fixed", "name": "Sync", "size": 16}},
    ],
}

_UNPACKING: dict[bytes, Callable[[], Any]] = {
    b"deflate": lambda: zlib.decompressobj(-15),
    b"bzip2": bz2.BZ2Decompressor,
    b"xz": lzma.LZMADecompressor,
}


def check_blocks(data: memoryview, largest: int = LARGEST) -> None:
    """Raise `Misread` for a container file whose blocks would be too large; ignores its other faults."""
    try:
        left = _left(data, largest)
    except Exception:  # fastavro reports what is wrong, and where
        return
    if left < 0:
        kind = "not an Avro container file to be read"
        raise Misread(Reason(kind, f"{kind}: unpacked, it has more than {largest:,} bytes"))


def _left(data: memoryview, left: int) -> int:
    """The bytes that remain of `left` after the blocks; negative if they have more."""
    import fastavro

    file, read = BytesIO(data), cast(Any, fastavro.schemaless_reader)
    codec = read(file, fastavro.parse_schema(_HEADER))["meta"].get("avro.codec", b"null")
    while file.tell() < len(data) and left >= 0:
        read(file, "long")
        block = file.read(max(0, read(file, "long")))
        file.seek(16, 1)
        left -= _unpacked(codec, block, left + 1)
    return left


def _unpacked(codec: bytes, block: bytes, most: int) -> int:
    """The uncompressed size of a block, up to `most`."""
    if codec == b"snappy":
        return _varint(block)
    if codec not in _UNPACKING:
        return len(block)
    return len(_UNPACKING[codec]().decompress(block, most))


def _varint(block: bytes) -> int:
    """The size that a Snappy block declares."""
    size = 0
    for at, byte in enumerate(block[:5]):
        size |= (byte & 127) << 7 * at
        if byte < 128:
            break
    return size
