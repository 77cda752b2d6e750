"""The records of batches as columns, without a Python object per message.

A record is a sequence of zigzag varints: length, (attributes, a byte), timestamp delta, offset delta, key
length and key, value length and value, number of headers, and for each header name length and name, value
length and value. A length of −1 is null. Source: Kafka's protocol guide, "Record" (KIP-98).
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ...sketches.core.compilation.jit import inlined, kernel
from .array_pool import ARRAYS
from .codecs import CorruptRecords, unpacked
from .record_batches import RecordBatch

_CONTROL_KEY = struct.Struct(">hh")
_ABORT = 0
_LEAST_RECORD = 7
_LENGTHS = "its records are not as long as they say"


class Columns(NamedTuple):
    """The records of some batches: one row per record, all int64.

    `key`, `value` and `headers` are positions in the batches' joined bytes; a length of −1 is null.
    """

    offset: np.ndarray
    timestamp: np.ndarray
    key: np.ndarray
    key_length: np.ndarray
    value: np.ndarray
    value_length: np.ndarray
    headers: np.ndarray
    header_count: np.ndarray


def columns(batches: Sequence[RecordBatch]) -> tuple[np.ndarray, Columns]:
    """The bytes (uint8, writable) of these batches' records, and the positions of everything in them.

    A newline follows each value. Raises `CorruptRecords` for records that can't be decompressed, or that
    don't fill their batch.
    """
    data, lengths = unpacked(batches)
    shape = np.array(
        [
            (batch.count, length, batch.base_offset, batch.base_timestamp, batch.broker_time)
            for batch, length in zip(batches, lengths)
        ],
        np.int64,
    ).reshape(-1, 5)
    few = np.flatnonzero(shape[:, 0] * _LEAST_RECORD > shape[:, 1])
    if len(few):
        raise CorruptRecords(_LENGTHS, int(few[0]))
    rows = int(shape[:, 0].sum())
    room = ARRAYS.acquire(size := len(Columns._fields) * rows * np.int64().itemsize)
    ARRAYS.release(room, size)
    out = room[:size].view(np.int64).reshape(len(Columns._fields), rows)
    broken = split(data, shape, *out)
    if broken >= 0:
        raise CorruptRecords(_LENGTHS, broken)
    return data, Columns(*out)


@kernel
def _long_varint(data, at, end):
    """(value, position after it) of a zigzag varint; a position beyond `end` means that it isn't complete."""
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
    """Like `_long_varint`, optimised for a single byte, the usual case."""
    value = np.int64(data[at]) if at < end else np.int64(128)
    if value < 128:
        value, at = (value >> 1) ^ -(value & 1), at + 1
    else:
        value, at = _long_varint(data, at, end)
    return value, at


@kernel
def split(data, shape, offset, timestamp, key, key_length, value, value_length, headers, header_count):
    """Find all records of some batches; returns −1, or the number of the first broken batch.

    `shape` has a batch's record count, its length in bytes, base offset, base timestamp, and the broker's
    timestamp if that applies (else −1).
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
    """Find the headers of some records; returns −1, or the number of the first record with broken headers."""
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


def aborts(marker: RecordBatch) -> bool:
    """For a control batch: whether the transaction was aborted."""
    data = np.frombuffer(bytearray(marker.body), np.uint8)
    out = np.empty((len(Columns._fields), 1), np.int64)
    if split(data, np.array([[1, len(data), 0, 0, -1]]), *out) >= 0:
        return False
    rows = Columns(*out)
    at, length = int(rows.key[0]), int(rows.key_length[0])
    return length >= _CONTROL_KEY.size and _CONTROL_KEY.unpack_from(bytes(data[at:]))[1] == _ABORT
