"""Records as columns, whole and broken in every way."""

from __future__ import annotations

import numpy as np
import pytest

from streamgauge.operators.kafka.codecs import CorruptRecords
from streamgauge.operators.kafka.record_batches import RecordBatch, batches
from streamgauge.operators.kafka.record_kernel import Columns, aborts, columns, split_headers

from .made_batches import CODECS, RECORDS, batch_of, body_of, marker


def whole(data: bytes) -> list[RecordBatch]:
    result = list(batches(data, 0))
    assert all(isinstance(batch, RecordBatch) for batch in result)
    return result  # type: ignore[return-value]


def read(data: bytes) -> tuple[np.ndarray, Columns]:
    return columns(whole(data))


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
    result = [(text(data, *span[:2]), text(data, *span[2:])) for span in spans.T]
    assert result == [header for record in sent for header in record[4]]


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
        except CorruptRecords:
            refused += 1
            continue
        ends = rows.value + np.maximum(rows.value_length, 0)
        assert (rows.value >= 0).all() and (ends < len(data)).all()
        assert (rows.key >= 0).all() and (rows.key + np.maximum(rows.key_length, 0) <= len(data)).all()
    assert refused > 1000
    good = batch_of(RECORDS[:3], 50)
    for count in (0, 2, 4, 1_000_000):
        with pytest.raises(CorruptRecords, match="not as long as they say") as raised:
            read(good + batch_of(RECORDS[:3], count=count))
        assert raised.value.at == 1


def test_a_marker_says_how_its_transaction_ended() -> None:
    assert aborts(whole(marker(3, 7, commit=False))[0])
    assert not aborts(whole(marker(3, 7, commit=True))[0])
    assert not aborts(whole(batch_of([(0, 0, b"k", b"", [])], attributes=0x30))[0])
