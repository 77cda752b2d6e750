"""Kafka's record batches, version 2: from the bytes a broker sends to batches, and what is not one.

A batch is a header of 61 bytes, big-endian, and its records, compressed as a whole::

    byte  0  int64   base offset            23  int32   last offset delta
          8  int32   length from byte 12    27  int64   base timestamp (ms)
         12  int32   leader epoch           35  int64   largest timestamp (ms)
         16  int8    magic: 2               43  int64   producer id
         17  uint32  CRC-32C from byte 21   51  int16   producer epoch
         21  int16   attributes             53  int32   base sequence
                                            57  int32   number of records

The checksum does not cover the first 17 bytes. A base offset, a length or a magic that was damaged is
detected by what stands around it; only an offset that was damaged so that it falls into a gap of the log is
not. Source: Kafka's protocol guide, "Record Batch" (KIP-98, KIP-101).
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

from crc32c import crc32c

HEADER = struct.Struct(">qiibIhiqqqhii")
LENGTH_AT = 12
"""The length that a batch gives counts from here."""
_LENGTH, _MAGIC_AT, _CRC_FROM = 8, 16, 21
_OLD = struct.Struct(">iI")
_APPEND_TIME, _TRANSACTIONAL, _CONTROL = 0x08, 0x10, 0x20
_CODEC = 0x07


@dataclass(frozen=True, slots=True)
class RecordBatch:
    """A batch as it came: what its header says, and in `raw` all its bytes, the records still compressed."""

    base_offset: int
    next_offset: int
    leader_epoch: int
    attributes: int
    base_timestamp: int
    largest_timestamp: int
    producer_id: int
    count: int
    raw: memoryview

    @property
    def body(self) -> memoryview:
        """The records, compressed by `codec`."""
        return self.raw[HEADER.size :]

    @property
    def codec(self) -> int:
        """How the records are compressed (`codecs`)."""
        return self.attributes & _CODEC

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


@dataclass(frozen=True, slots=True)
class BrokenBatch:
    """Offsets `offset` … `next_offset` − 1, which can't be read: why, and the bytes that came for them."""

    offset: int
    next_offset: int
    why: str
    raw: bytes | memoryview


def batches(
    data: bytes | memoryview, offset: int, end: int | None = None, inside: bool = True
) -> Iterator[RecordBatch | BrokenBatch]:
    """The batches of a partition's answer, in order, and in their places those that are broken.

    A last batch that was cut off is left for the next fetch. `offset` is where reading stands, and may lie
    `inside` the first batch; `end` is the offset before which all these batches lie, if it is known. After a
    broken batch it goes on with the next one that is whole; where there is none, with the offset after what
    the broken one says of itself, or with `end` if it says nothing that could be so.
    """
    view, at = memoryview(data), 0
    while at < len(view) and (end is None or offset < end):
        batch = _batch(view, at, offset, end, inside)
        if batch is None and at > 0:
            return
        if batch is None:
            # A broker sends the first batch whole, however large it is (KIP-74).
            batch = f"of it there are only {len(view)} bytes"
        if isinstance(batch, str):
            place, next_offset = _beyond(view, at, offset, end)
            yield BrokenBatch(offset, next_offset, batch, view[at:place])
            offset, at, inside = next_offset, place, False
            continue
        yield batch
        offset, at, inside = batch.next_offset, at + len(batch.raw), False


def _batch(view: memoryview, at: int, offset: int, end: int | None, inside: bool) -> RecordBatch | str | None:
    """The batch at a place; or why there is none; or None where the bytes end before it does."""
    if at + _CRC_FROM > len(view):
        return None
    if (magic := view[at + _MAGIC_AT]) != 2:
        return _of_another_format(view, at, magic)
    if at + HEADER.size > len(view):
        return None
    base, length, epoch, _, crc, attributes, delta, earliest, largest, producer, _, _, count = (
        HEADER.unpack_from(view, at)
    )
    close = at + LENGTH_AT + length
    if length < HEADER.size - LENGTH_AT:
        return f"it says that it is {length} bytes long"
    if close > len(view):
        return None
    if crc32c(view[at + _CRC_FROM : close]) != crc:
        return "its checksum is wrong (CRC-32C)"
    after = base + delta + 1
    if count < 0 or delta < 0:
        return f"it says that it holds {count} records"
    if after <= offset or (base < offset and not inside) or (end is not None and after > end):
        return f"it says that it holds the offsets {base} to {after - 1}, which have no place there"
    return RecordBatch(base, after, epoch, attributes, earliest, largest, producer, count, view[at:close])


def _of_another_format(view: memoryview, at: int, magic: int) -> str:
    length, crc = _OLD.unpack_from(view, at + _LENGTH)
    if magic in (0, 1) and zlib.crc32(view[at + _MAGIC_AT : at + LENGTH_AT + length]) == crc:
        return (
            f"its messages are in format {magic}, that of Kafka before 0.11, which is not read here; "
            "copy them to a new topic with a client that reads it"
        )
    return f"it says that its format is {magic}, and there is none such"


def _beyond(view: memoryview, at: int, offset: int, end: int | None) -> tuple[int, int]:
    """Where the next batch lies after a broken one, or the end of the bytes, and the offset to go on with."""
    base = delta = length = 0
    if at + HEADER.size <= len(view):
        base, length, _, _, _, _, delta, *_ = HEADER.unpack_from(view, at)
    close = at + LENGTH_AT + length
    framed = length >= HEADER.size - LENGTH_AT and close <= len(view)
    # Where the length is right the next batch is behind it. Only else is it looked for: values may hold some.
    if framed and isinstance(batch := _batch(view, close, offset + 1, end, False), RecordBatch):
        return close, batch.base_offset
    whole = bytes(view)
    place = whole.find(b"\x02", at + _MAGIC_AT + 1)
    while place >= 0:
        batch = _batch(view, place - _MAGIC_AT, offset + 1, end, False)
        if isinstance(batch, RecordBatch):
            return place - _MAGIC_AT, batch.base_offset
        place = whole.find(b"\x02", place + 1)
    after = base + delta + 1
    if framed and base <= offset < after and end is not None and after <= end:
        return close, after
    return len(view), max(end or 0, offset + 1)
