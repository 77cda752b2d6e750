"""The records of batches, decompressed one after the other into one buffer."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence

import cramjam
import numpy as np

from ...sketches.core.errors import StreamgaugeError
from .array_pool import ARRAYS
from .record_batches import RecordBatch

_NONE, _SNAPPY = 0, 2
_FORMATS = {1: cramjam.gzip, 3: cramjam.lz4, 4: cramjam.zstd}
_XERIAL = b"\x82SNAPPY\x00"
_XERIAL_HEADER = 16
_ROOM = 16
"""The bytes of records allotted to one compressed byte. Unused space costs nothing."""
_LEAST_ROOM = 32 << 20
"""The least space allotted: very compressible records take far more than `_ROOM` times their size."""

_FAILURES = (cramjam.DecompressionError, struct.error, ValueError)


class CorruptRecords(StreamgaugeError, ValueError):
    """Records that can't be read; `at` is the number of their batch among those requested."""

    def __init__(self, why: str, at: int) -> None:
        super().__init__(why)
        self.at = at


def unpacked(batches: Sequence[RecordBatch]) -> tuple[np.ndarray, list[int]]:
    """The records of these batches (uint8, writable), and the length of each batch's records.

    Raises `CorruptRecords` for a batch that can't be decompressed.
    """
    room = max(_LEAST_ROOM, sum(len(batch.body) * (_ROOM if batch.codec else 1) for batch in batches))
    data, at = ARRAYS.acquire(room), 0
    lengths = []
    for number, batch in enumerate(batches):
        try:
            length = _into(batch.body, batch.codec, data[at:])
        except _FAILURES:
            # There may only have been too little space: the formats don't say how much they need.
            records = _alone(batch, number)
            length = len(records)
            data = np.concatenate([data[:at], records, np.empty(max(room, at), np.uint8)])
        lengths.append(length)
        at += length
    ARRAYS.release(data, at)
    return data[:at], lengths


def _into(body: memoryview, codec: int, into: np.ndarray) -> int:
    """Decompress into the available space; returns the length."""
    if codec == _NONE:
        into[: len(body)] = np.frombuffer(body, np.uint8)
        return len(body)
    if codec == _SNAPPY:
        at = 0
        for block in _blocks(body):
            at += int(cramjam.snappy.decompress_raw_into(block, into[at:].data))
        return at
    return int(_format(codec).decompress_into(body, into))


def _alone(batch: RecordBatch, number: int) -> np.ndarray:
    """The records of one batch, in as much space as they need."""
    try:
        if batch.codec == _SNAPPY:
            records = b"".join(bytes(cramjam.snappy.decompress_raw(block)) for block in _blocks(batch.body))
        else:
            records = _format(batch.codec).decompress(batch.body)
    except _FAILURES as error:
        raise CorruptRecords(f"its records can't be decompressed: {error}", number) from None
    return np.frombuffer(records, np.uint8)


def _format(codec: int):
    if codec not in _FORMATS:
        raise ValueError(f"Kafka has no compression {codec}")
    return _FORMATS[codec]


def _blocks(body: memoryview) -> Iterator[memoryview]:
    """The Snappy blocks: framed with their lengths, as Java's clients do, or a bare block, as others do."""
    if body[: len(_XERIAL)] != _XERIAL:
        yield body
        return
    at = _XERIAL_HEADER
    while at < len(body):
        (length,) = struct.unpack_from(">i", body, at)
        at += 4
        if not 0 < length <= len(body) - at:
            raise ValueError(f"a block says that it is {length} bytes long")
        yield body[at : at + length]
        at += length
