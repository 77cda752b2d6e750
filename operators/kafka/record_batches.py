"""Kafka's record batches, version 2: parsing a broker's bytes into batches, and detecting broken ones.

A batch is a header of 61 bytes, big-endian, and its records, compressed as a whole::

    byte  0  int64   base offset            23  int32   last offset delta
          8  int32   length from byte 12    27  int64   base timestamp (ms)
         12  int32   leader epoch           35  int64   largest timestamp (ms)
         16  int8    magic: 2               43  int64   producer id
         17  uint32  CRC-32C from byte 21   51  int16   producer epoch
         21  int16   attributes             53  int32   base sequence
                                            57  int32   number of records

The checksum does not cover the first 17 bytes. A damaged base offset, length or magic is detected from its
context, except for an offset that damage has moved into a gap of the log. Source: Kafka's protocol guide,
"Record Batch" (KIP-98, KIP-101).
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

from crc32c import crc32c

HEADER = struct.Struct(">qiibIhiqqqhii")
LENGTH_AT = 12
"""The length in a batch's header counts from here."""
_LENGTH, _MAGIC_AT, _CRC_FROM = 8, 16, 21
_OLD = struct.Struct(">iI")
_APPEND_TIME, _TRANSACTIONAL, _CONTROL = 0x08, 0x10, 0x20
_CODEC = 0x07


@dataclass(frozen=True, slots=True)
class RecordBatch:
    """A batch as received: the fields of its header, and in `raw` all its bytes, with compressed records."""

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
        """The compression of the records (`codecs`)."""
        return self.attributes & _CODEC

    @property
    def transactional(self) -> bool:
        """Whether it belongs to a transaction."""
        return bool(self.attributes & _TRANSACTIONAL)

    @property
    def control(self) -> bool:
        """Whether it marks the end of a transaction and contains no messages."""
        return bool(self.attributes & _CONTROL)

    @property
    def broker_time(self) -> int:
        """The broker's timestamp (ms) if it applies to all records, else −1."""
        return self.largest_timestamp if self.attributes & _APPEND_TIME else -1


@dataclass(frozen=True, slots=True)
class BrokenBatch:
    """Unreadable offsets `offset` … `next_offset` − 1: the reason, and the bytes received for them."""

    offset: int
    next_offset: int
    why: str
    raw: bytes | memoryview


def batches(
    data: bytes | memoryview, offset: int, end: int | None = None, inside: bool = True
) -> Iterator[RecordBatch | BrokenBatch]:
    """The batches of a partition's response, in order, with broken ones in their places.

    A truncated last batch is left for the next fetch. `offset` is the reading position, and may be `inside`
    the first batch; `end` is the offset before which all these batches lie, if known. After a broken batch it
    continues with the next complete one; if there is none, with the offset after the broken batch according
    to its header, or with `end` if the header is implausible.
    """
    view, at = memoryview(data), 0
    while at < len(view) and (end is None or offset < end):
        batch = _batch(view, at, offset, end, inside)
        if batch is None and at > 0:
            return
        if batch is None:
            # A broker sends the first batch completely, however large it is (KIP-74).
            batch = f"only {len(view)} bytes of it arrived"
        if isinstance(batch, str):
            place, next_offset = _beyond(view, at, offset, end)
            yield BrokenBatch(offset, next_offset, batch, view[at:place])
            offset, at, inside = next_offset, place, False
            continue
        yield batch
        offset, at, inside = batch.next_offset, at + len(batch.raw), False


def _batch(view: memoryview, at: int, offset: int, end: int | None, inside: bool) -> RecordBatch | str | None:
    """The batch at a position; or why there is none; or None if the bytes end before the batch does."""
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
            f"its messages are in format {magic} of Kafka before 0.11, which is not supported; "
            "copy them to a new topic with a client that reads it"
        )
    return f"it says that its format is {magic}, which doesn't exist"


def _beyond(view: memoryview, at: int, offset: int, end: int | None) -> tuple[int, int]:
    """The position of the next batch after a broken one, or the end, and the offset to continue from."""
    base = delta = length = 0
    if at + HEADER.size <= len(view):
        base, length, _, _, _, _, delta, *_ = HEADER.unpack_from(view, at)
    close = at + LENGTH_AT + length
    framed = length >= HEADER.size - LENGTH_AT and close <= len(view)
    # If the length is right, the next batch follows it. Only otherwise search: values may contain batches.
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
