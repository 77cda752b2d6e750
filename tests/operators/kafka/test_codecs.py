"""Decompressing the records of many batches into one buffer."""

from __future__ import annotations

import pytest

from streamgauge.operators.kafka.codecs import CorruptRecords, unpacked
from streamgauge.operators.kafka.record_batches import RecordBatch, batches

from .made_batches import CODECS, batch_of


def packed(codec: str, body: bytes, attributes: int = 0) -> RecordBatch:
    (result,) = batches(batch_of([], body=body, codec=codec, count=3, attributes=attributes), 0)
    assert isinstance(result, RecordBatch)
    return result


@pytest.mark.parametrize("codec", CODECS)
def test_records_lie_one_behind_the_other(codec: str) -> None:
    bodies = [b"first" * 100, b"", b"third" * 5000]
    data, lengths = unpacked([packed(codec, body) for body in bodies])
    assert data.tobytes() == b"".join(bodies)
    assert lengths == [len(body) for body in bodies]
    assert data.flags.writeable


@pytest.mark.parametrize("codec", CODECS)
def test_records_that_shrink_to_nothing_get_the_room_that_they_need(codec: str) -> None:
    bodies = [b"a" * 3_000_000, b"b" * 10, b"c" * 5_000_000, b"d"]
    data, lengths = unpacked([packed(codec, body) for body in bodies])
    assert lengths == [len(body) for body in bodies]
    assert data.tobytes() == b"".join(bodies)


@pytest.mark.parametrize("codec", [name for name in CODECS if name != "none"])
def test_what_can_not_be_decompressed_is_named(codec: str) -> None:
    good = packed(codec, b"good" * 10)
    broken = packed("none", b"\x82SNAPPY\x00 no such stream", CODECS[codec][0])
    with pytest.raises(CorruptRecords, match="can't be decompressed") as raised:
        unpacked([good, broken, good])
    assert raised.value.at == 1


def test_a_compression_that_kafka_does_not_have_is_named() -> None:
    with pytest.raises(CorruptRecords, match="Kafka has no compression 5"):
        unpacked([packed("none", b"x", 5)])


@pytest.mark.parametrize("length", [-1, 0, 1 << 30])
def test_blocks_of_snappy_that_lie_about_their_lengths_are_refused(length: int) -> None:
    body = b"\x82SNAPPY\x00" + bytes(8) + length.to_bytes(4, "big", signed=True) + b"xyz"
    with pytest.raises(CorruptRecords, match=f"a block says that it is {length} bytes long"):
        unpacked([packed("none", body, 2)])
