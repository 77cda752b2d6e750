"""Kafka's record batches, version 2: from the bytes a broker sends to columns, no Python object a message.

A batch is a header of 61 bytes, big-endian, and its records, compressed as a whole::

    byte  0  int64   base offset            23  int32   last offset delta
          8  int32   length from byte 12    27  int64   base timestamp (ms)
         12  int32   leader epoch           35  int64   largest timestamp (ms)
         16  int8    magic: 2               43  int64   producer id
         17  uint32  CRC-32C from byte 21   51  int16   producer epoch
         21  int16   attributes             53  int32   base sequence
                                            57  int32   number of records

A record is a chain of zigzag varints: length, (attributes, a byte), timestamp delta, offset delta, key length
and key, value length and value, number of headers, and of each header name length and name, value length and
value. A length of −1 is null.

Source: Kafka's protocol guide, "Record Batch" (KIP-98, KIP-101).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import cramjam
import numpy as np
from crc32c import crc32c

from ...sketches.core.jit import inlined, kernel

HEADER = struct.Struct(">qiibIhiqqqhii")
_LENGTH_AT, _CRC_FROM = 12, 21
_CODEC, _APPEND_TIME, _TRANSACTIONAL, _CONTROL = 0x07, 0x08, 0x10, 0x20
_CONTROL_KEY = struct.Struct(">hh")
_ABORT = 0
_LEAST_RECORD = 7
_LENGTHS = "its records are not as long as they say"
_XERIAL = b"\x82SNAPPY\x00"


class CorruptBatch(ValueError):
    """Bytes that are not a record batch.

    `offset` is the first offset that can't be read, `at` the batch's number among those that were asked for.
    """

    def __init__(self, offset: int, why: str, at: int = 0) -> None:
        super().__init__(why)
        self.offset = offset
        self.at = at


@dataclass(frozen=True, slots=True)
class RecordBatch:
    """A batch as it came: what its header says, and its records, still compressed."""

    base_offset: int
    next_offset: int
    leader_epoch: int
    attributes: int
    base_timestamp: int
    largest_timestamp: int
    producer_id: int
    count: int
    body: memoryview

    @property
    def transactional(self) -> bool:
        """Whether it belongs to a transaction."""
        return bool(self.attributes & _TRANSACTIONAL)

    @property
    def control(self) -> bool:
        """Whether it is a marker of a transaction's end and holds no messages."""
        return bool(self.attributes & _CONTROL)

    @property
    def broker_time(self) -> int:
        """The broker's time (ms) where that counts for all records, else −1."""
        return self.largest_timestamp if self.attributes & _APPEND_TIME else -1

    def aborts(self) -> bool:
        """Of a control batch: whether the transaction was aborted."""
        key = _first_key(bytes(self.body))
        return len(key) >= 4 and _CONTROL_KEY.unpack_from(key)[1] == _ABORT

    def records(self) -> bytes | memoryview:
        """The records, decompressed. Raises `ValueError` where they can't be."""
        codec = self.attributes & _CODEC
        try:
            if codec == 0:
                return self.body
            if codec == 1:
                return memoryview(cramjam.gzip.decompress(self.body))
            if codec == 2:
                return _snappy(self.body)
            if codec == 3:
                return memoryview(cramjam.lz4.decompress(self.body))
            if codec == 4:
                return memoryview(cramjam.zstd.decompress(self.body))
        except (cramjam.DecompressionError, struct.error) as error:
            raise ValueError(f"its records can't be decompressed: {error}") from None
        raise ValueError(f"its compression {codec} is not one that Kafka has")


def batches(data: bytes | memoryview, offset: int) -> Iterator[RecordBatch]:
    """The whole batches of a partition's answer, in order; a last one that was cut off is left.

    `offset` is where reading stands, named in errors. Raises `CorruptBatch` for a batch whose checksum is
    wrong, or whose version is not 2.
    """
    view, at = memoryview(data), 0
    while at + HEADER.size <= len(view):
        base, length, epoch, magic, crc, attributes, delta, first, largest, producer, _, _, count = (
            HEADER.unpack_from(view, at)
        )
        if magic != 2:
            raise CorruptBatch(
                max(base, offset),
                f"its message format is {magic}, older than Kafka 0.11 writes; read it by other means",
            )
        end = at + _LENGTH_AT + length
        if end > len(view):
            return
        if length < HEADER.size - _LENGTH_AT or crc32c(view[at + _CRC_FROM : end]) != crc:
            raise CorruptBatch(max(base, offset), "its checksum is wrong (CRC-32C)")
        if count < 0 or delta < 0:
            raise CorruptBatch(max(base, offset), f"it says that it holds {count} records")
        body = view[at + HEADER.size : end]
        yield RecordBatch(base, base + delta + 1, epoch, attributes, first, largest, producer, count, body)
        at = end


class Columns(NamedTuple):
    """The records of some batches: a row a record, all int64.

    `key`, `value` and `headers` are places in the batches' joined bytes; a length of −1 is null.
    """

    offset: np.ndarray
    timestamp: np.ndarray
    key: np.ndarray
    key_length: np.ndarray
    value: np.ndarray
    value_length: np.ndarray
    headers: np.ndarray
    header_count: np.ndarray


def columns(found: list[RecordBatch]) -> tuple[np.ndarray, Columns]:
    """The joined bytes (uint8, writable) of these batches' records, and where everything lies in them.

    Behind each value there is a newline. Raises `CorruptBatch` for records that can't be decompressed, or
    that don't fill their batch.
    """
    bodies = []
    for at, batch in enumerate(found):
        try:
            bodies.append(np.frombuffer(batch.records(), np.uint8))
        except ValueError as error:
            raise CorruptBatch(batch.base_offset, str(error), at) from None
        if batch.count * _LEAST_RECORD > len(bodies[-1]):
            raise CorruptBatch(batch.base_offset, _LENGTHS, at)
    data = np.concatenate(bodies) if bodies else np.empty(0, np.uint8)
    shape = np.array(
        [
            (batch.count, len(body), batch.base_offset, batch.base_timestamp, batch.broker_time)
            for batch, body in zip(found, bodies)
        ],
        np.int64,
    ).reshape(-1, 5)
    n = int(shape[:, 0].sum())
    out = np.empty((len(Columns._fields), n), np.int64)
    broken = split(data, shape, *out)
    if broken >= 0:
        raise CorruptBatch(found[broken].base_offset, _LENGTHS, broken)
    return data, Columns(*out)


@kernel
def _long_varint(data, at, end):
    """(value, place after it) of a zigzag varint; a place beyond `end` says that it doesn't stop there."""
    value = np.uint64(0)
    shift = np.uint64(0)
    while at < end and shift < 64:
        byte = np.uint64(data[at])
        at += 1
        value |= (byte & np.uint64(0x7F)) << shift
        if byte < 128:
            return np.int64(value >> np.uint64(1)) ^ -np.int64(value & np.uint64(1)), at
        shift += np.uint64(7)
    return np.int64(0), end + 1


@inlined
def _varint(data, at, end):
    """As `_long_varint`; nearly all have one byte."""
    value = np.int64(data[at]) if at < end else np.int64(128)
    if value < 128:
        value, at = (value >> 1) ^ -(value & 1), at + 1
    else:
        value, at = _long_varint(data, at, end)
    return value, at


@kernel
def split(data, shape, offset, timestamp, key, key_length, value, value_length, headers, header_count):
    """Find all records of some batches; returns −1, or the number of the first batch that is broken.

    `shape` holds a batch's records, its bytes, base offset, base timestamp, and the broker's timestamp if
    that counts (else −1).
    """
    row = 0
    begin = 0
    for b in range(len(shape)):
        at = begin
        begin += shape[b, 1]
        for _ in range(shape[b, 0]):
            length, at = _varint(data, at, begin)
            end = at + length
            if length < 0 or end > begin:
                return b
            delta, at = _varint(data, at + 1, end)
            timestamp[row] = shape[b, 3] + delta if shape[b, 4] < 0 else shape[b, 4]
            delta, at = _varint(data, at, end)
            offset[row] = shape[b, 2] + delta
            length, at = _varint(data, at, end)
            key[row] = at
            key_length[row] = length
            at += max(length, 0)
            length, at = _varint(data, at, end)
            value[row] = at
            value_length[row] = length
            at += max(length, 0)
            count, after = _varint(data, at, end)
            if length < -1 or key_length[row] < -1 or count < 0 or after + 2 * count > end:
                return b
            data[at] = 10
            headers[row] = after
            header_count[row] = count
            at = end
            row += 1
        if at != begin:
            return b
    return -1


@kernel
def split_headers(data, headers, header_count, name, name_length, value, value_length):
    """Find the headers of some records; returns −1, or the number of the first record whose are broken."""
    to = 0
    for row in range(len(headers)):
        at = headers[row]
        for _ in range(header_count[row]):
            length, at = _varint(data, at, len(data))
            if length < 0 or at + length > len(data):
                return row
            name[to] = at
            name_length[to] = length
            length, at = _varint(data, at + length, len(data))
            if length < -1 or at + max(length, 0) > len(data):
                return row
            value[to] = at
            value_length[to] = length
            at += max(length, 0)
            to += 1
    return -1


def _first_key(body: bytes) -> bytes:
    """The key of an uncompressed batch's first record."""
    data = np.frombuffer(bytearray(body), np.uint8)
    out = np.empty((len(Columns._fields), 1), np.int64)
    if split(data, np.array([[1, len(data), 0, 0, -1]]), *out) >= 0 or out[3, 0] < 0:
        return b""
    return body[out[2, 0] : out[2, 0] + out[3, 0]]


def _snappy(body: memoryview) -> bytes | memoryview:
    """Snappy as Java's clients frame it, blocks with their lengths, or a bare block as others send it."""
    if bytes(body[: len(_XERIAL)]) != _XERIAL:
        return memoryview(cramjam.snappy.decompress_raw(body))
    parts, at = [], 16
    while at < len(body):
        (length,) = struct.unpack_from(">i", body, at)
        at += 4
        parts.append(bytes(cramjam.snappy.decompress_raw(body[at : at + length])))
        at += length
    return b"".join(parts)
