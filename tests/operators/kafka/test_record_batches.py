"""Record batches as the protocol guide lays them out, whole and broken in every way."""

from __future__ import annotations

import struct
from collections import deque
from types import SimpleNamespace
from typing import Any

import cramjam
import numpy as np
import pytest
from crc32c import crc32c
from kafka import TopicPartition
from kafka.protocol.consumer import IsolationLevel

from streamgauge.operators.kafka.raw import RawSource
from streamgauge.operators.kafka.raw_fetcher import RawRecords
from streamgauge.operators.kafka.record_batches import (
    HEADER,
    Columns,
    CorruptBatch,
    batches,
    columns,
    split_headers,
)

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
    found = b""
    for offset, time, key, value, headers in records:
        inside = b"\x00" + varint(time) + varint(offset) + sized(key) + sized(value) + varint(len(headers))
        inside += b"".join(varint(len(name)) + name + sized(data) for name, data in headers)
        found += varint(len(inside)) + inside
    return found


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


def read(data: bytes, offset: int = 0) -> tuple[np.ndarray, Columns]:
    return columns(list(batches(data, offset)))


def text(data: np.ndarray, at: int, length: int) -> bytes | None:
    return None if length < 0 else data[at : at + length].tobytes()


@pytest.mark.parametrize("codec", CODECS)
def test_every_field_of_every_record(codec: str) -> None:
    data, rows = read(batch_of(RECORDS, codec=codec) + batch_of(RECORDS[:1], base=500, attributes=0x08))
    assert rows.offset.tolist() == [100, 101, 102, 109, 500]
    assert rows.timestamp.tolist() == [1000, 1005, 993, 1000 + (1 << 40), 2000]
    sent = [*RECORDS, RECORDS[0]]
    assert [text(data, *span) for span in zip(rows.key, rows.key_length)] == [r[2] for r in sent]
    assert [text(data, *span) for span in zip(rows.value, rows.value_length)] == [r[3] for r in sent]
    assert (data[rows.value + np.maximum(rows.value_length, 0)] == ord("\n")).all()
    spans = np.empty((4, int(rows.header_count.sum())), np.int64)
    assert split_headers(data, rows.headers, rows.header_count, *spans) == -1
    found = [(text(data, *span[:2]), text(data, *span[2:])) for span in spans.T]
    assert found == [header for record in sent for header in record[4]]


def test_a_batch_that_was_cut_off_is_left_for_the_next_fetch() -> None:
    whole = batch_of(RECORDS[:2])
    for cut in range(1, len(whole)):
        assert len(list(batches(whole + whole[:-cut], 0))) == 1


def test_any_flipped_bit_is_found() -> None:
    whole = batch_of(RECORDS[:2], codec="lz4")
    for place in range(21 * 8, len(whole) * 8):
        flipped = bytearray(whole)
        flipped[place // 8] ^= 1 << place % 8
        with pytest.raises(CorruptBatch, match="checksum") as told:
            list(batches(bytes(flipped), 7))
        assert told.value.offset == 100


def test_formats_from_before_kafka_0_11_are_refused_by_name() -> None:
    for magic in (0, 1):
        with pytest.raises(CorruptBatch, match=f"message format is {magic}, older than Kafka 0.11"):
            list(batches(batch_of(RECORDS, magic=magic), 0))


@pytest.mark.parametrize("codec", [name for name in CODECS if name != "none"])
def test_what_can_not_be_decompressed_is_named(codec: str) -> None:
    broken = batch_of([], body=b"\x82SNAPPY\x00 no such stream", attributes=CODECS[codec][0], count=3)
    with pytest.raises(CorruptBatch, match="can't be decompressed") as told:
        read(broken)
    assert told.value.offset == 100


def test_records_that_lie_about_their_lengths_are_refused_and_nothing_is_read_beyond_them() -> None:
    body = body_of(RECORDS[:3])
    random = np.random.default_rng(5)
    refused = 0
    for _ in range(4000):
        broken = bytearray(body)
        for _ in range(random.integers(1, 4)):
            broken[random.integers(len(broken))] = random.integers(256)
        try:
            data, rows = read(batch_of(RECORDS[:3], body=bytes(broken)))
        except CorruptBatch:
            refused += 1
            continue
        ends = rows.value + np.maximum(rows.value_length, 0)
        assert (rows.value >= 0).all() and (ends < len(data)).all()
        assert (rows.key >= 0).all() and (rows.key + np.maximum(rows.key_length, 0) <= len(data)).all()
    assert refused > 1000
    for count in (0, 2, 4, 1_000_000):
        with pytest.raises(CorruptBatch, match="not as long as they say"):
            read(batch_of(RECORDS[:3], count=count))


class Aborted:
    def __init__(self, first_offset: int, producer_id: int) -> None:
        self.first_offset, self.producer_id = first_offset, producer_id


class Raw:
    def __init__(self, data: bytes) -> None:
        self._buffer = data


def marker(base: int, producer: int, commit: bool) -> bytes:
    return batch_of([(0, 0, struct.pack(">hh", 0, int(commit)), b"\0" * 6, [])], base, "none", 0x30, producer)


def test_aborted_transactions_and_markers_are_left_out_where_only_committed_messages_are_wanted() -> None:
    one: list[Record] = [(0, 0, None, b"v", [])]
    data = (
        batch_of(one, 0, attributes=0x10, producer=7)  # aborted
        + batch_of(one, 1, attributes=0x10, producer=8)  # committed
        + batch_of(one, 2)  # of no transaction
        + marker(3, 7, commit=False)
        + batch_of(one, 4, attributes=0x10, producer=7)  # the same producer's next one, committed
        + marker(5, 8, commit=True)
        + marker(6, 7, commit=True)
    )

    def taken(level: Any) -> list[int]:
        records = RawRecords(0, TopicPartition("t", 0), Raw(data), level, [Aborted(0, 7)])
        assert records
        found = records.take()
        assert not records and found[-1].next == 7 == records.next_fetch_offset
        return [step.next - 1 for step in found if step.batch is not None]

    assert taken(IsolationLevel.READ_COMMITTED) == [1, 2, 4]
    assert taken(IsolationLevel.READ_UNCOMMITTED) == [0, 1, 2, 4]


def test_what_comes_before_a_broken_batch_is_given_out_first() -> None:
    data = (
        batch_of(RECORDS[:2], 0)
        + b"".join([batch_of(RECORDS[:2], 10)[:-1], b"?"])
        + batch_of(RECORDS[:2], 20)
    )
    steps = RawRecords(0, TopicPartition("t", 3), Raw(data)).take()
    assert [step.next for step in steps] == [0, 2, 2]
    assert isinstance(steps[-1].batch, CorruptBatch) and steps[-1].batch.offset == 10


def test_a_source_gives_out_all_before_a_broken_batch_and_then_names_it() -> None:
    where = ("t", 0)
    good, bad = batch_of(RECORDS[:2], 0), batch_of(RECORDS[:3], 10, count=2)
    steps = RawRecords(1, TopicPartition(*where), Raw(good + bad)).take()
    source = RawSource({"bootstrap.servers": "nowhere:1"})
    answers = [{where: steps}]
    source._consumer = SimpleNamespace(poll=lambda *_: answers.pop() if answers else {})
    source._fetcher = SimpleNamespace(faults=deque(), answers=0, ends={})
    source._begin({where: 1})
    messages, _, faults = source.poll(100, 5.0)
    assert messages is not None and messages.offset.tolist() == [1] and not faults
    assert source.positions([where]) == {where: 2}
    messages, _, faults = source.poll(100, 5.0)
    assert messages is None and faults[0].fatal and faults[0].where == where
    assert "the batch at offset 10 is broken: its records are not as long as they say" in faults[0].text
    assert source.positions([where]) == {where: 2}


def test_the_header_has_the_length_that_the_protocol_gives_it() -> None:
    assert HEADER.size == 61
