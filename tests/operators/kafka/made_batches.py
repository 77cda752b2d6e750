"""Record batches as the protocol guide lays them out, whole and in every wrong way."""

from __future__ import annotations

import struct
from typing import Any

import cramjam
from crc32c import crc32c

Record = tuple[int, int, bytes | None, bytes | None, list[tuple[bytes, bytes | None]]]
"""(offset delta, timestamp delta, key, value, headers)"""

RECORDS: list[Record] = [
    (0, 0, b"k", b'{"a": 1}', []),
    (1, 5, None, None, []),
    (2, -7, b"", b"", [(b"h", b"1"), (b"h", None)]),
    (9, 1 << 40, b"x" * 300, b"y" * 70_000, [(b"", b"")] * 70),
]


def varint(value: int) -> bytes:
    value, out = (value << 1) ^ (value >> 63), b""
    while True:
        low, value = value & 0x7F, value >> 7
        out += bytes([low | (0x80 if value else 0)])
        if not value:
            return out


def sized(data: bytes | None) -> bytes:
    return varint(-1) if data is None else varint(len(data)) + data


def body_of(records: list[Record]) -> bytes:
    result = b""
    for offset, time, key, value, headers in records:
        inside = b"\x00" + varint(time) + varint(offset) + sized(key) + sized(value) + varint(len(headers))
        inside += b"".join(varint(len(name)) + name + sized(data) for name, data in headers)
        result += varint(len(inside)) + inside
    return result


def xerial(data: bytes) -> bytes:
    """Blocks of a kilobyte, as Java's Snappy stream frames them."""
    blocks = [bytes(cramjam.snappy.compress_raw(data[i : i + 1024])) for i in range(0, len(data), 1024)]
    return (
        b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1) + b"".join(struct.pack(">i", len(b)) + b for b in blocks)
    )


CODECS: dict[str, tuple[int, Any]] = {
    "none": (0, bytes),
    "gzip": (1, cramjam.gzip.compress),
    "snappy": (2, xerial),
    "bare snappy": (2, cramjam.snappy.compress_raw),
    "lz4": (3, cramjam.lz4.compress),
    "zstd": (4, cramjam.zstd.compress),
}


def batch_of(
    records: list[Record],
    base: int = 100,
    codec: str = "none",
    attributes: int = 0,
    producer: int = -1,
    body: bytes | None = None,
    magic: int = 2,
    count: int | None = None,
) -> bytes:
    number, compress = CODECS[codec]
    packed = bytes(compress(body_of(records) if body is None else body))
    delta = max((record[0] for record in records), default=0)
    count = len(records) if count is None else count
    tail = struct.pack(">hiqqqhii", number | attributes, delta, 1000, 2000, producer, 0, 0, count) + packed
    return struct.pack(">qiibI", base, len(tail) + 9, 3, magic, crc32c(tail)) + tail


def marker(base: int, producer: int, commit: bool) -> bytes:
    return batch_of([(0, 0, struct.pack(">hh", 0, int(commit)), b"\0" * 6, [])], base, "none", 0x30, producer)


class Answer:
    """The bytes of a partition in a broker's answer, as kafka-python holds them."""

    def __init__(self, data: bytes) -> None:
        self._buffer = data


class Aborted:
    """An aborted transaction, as a broker lists it."""

    def __init__(self, first_offset: int, producer_id: int) -> None:
        self.first_offset, self.producer_id = first_offset, producer_id
