"""Record batches in a broker's answer, whole and broken in every way."""

from __future__ import annotations

import struct
import zlib

import numpy as np
import pytest

from streamgauge.operators.kafka.record_batches import HEADER, BrokenBatch, RecordBatch, batches

from .made_batches import RECORDS, Record, batch_of

TEN: list[Record] = [(i, 0, None, b"v%d" % i, []) for i in range(10)]
"""Ten messages side by side, as no compaction has thinned them."""


def log_of(count: int) -> tuple[bytes, list[int]]:
    """A log of batches of ten messages from offset 0 on, and where each of them lies."""
    parts = [batch_of(TEN, 10 * i, "lz4" if i % 2 else "none") for i in range(count)]
    return b"".join(parts), [0, *np.cumsum([len(part) for part in parts]).tolist()]


def only(data: bytes, offset: int = 0, end: int | None = None) -> BrokenBatch:
    (result,) = batches(data, offset, end)
    assert isinstance(result, BrokenBatch)
    return result


def test_the_header_has_the_length_that_the_protocol_gives_it() -> None:
    assert HEADER.size == 61


def test_a_batch_that_was_cut_off_is_left_for_the_next_fetch() -> None:
    whole = batch_of(RECORDS[:2])
    for cut in range(1, len(whole)):
        assert len(list(batches(whole + batch_of(RECORDS[:2], 110)[:-cut], 0))) == 1


def test_an_empty_batch_as_compaction_leaves_it_moves_reading_on() -> None:
    (result,) = batches(batch_of([(4, 0, None, None, [])], 20, body=b"", count=0), 20, 25)
    assert isinstance(result, RecordBatch)
    assert (result.count, result.next_offset) == (0, 25)


def test_any_flipped_bit_is_found() -> None:
    whole = batch_of(RECORDS[:2], codec="lz4")
    for place in range(17 * 8, len(whole) * 8):
        flipped = bytearray(whole)
        flipped[place // 8] ^= 1 << place % 8
        result = only(bytes(flipped), 100, 102)
        assert "checksum" in result.why
        assert result.offset == 100 < result.next_offset <= 102
        assert bytes(result.raw) == bytes(flipped)


@pytest.mark.parametrize("magic", [0, 1])
def test_formats_from_before_kafka_0_11_are_refused_by_name(magic: int) -> None:
    inside = bytes([magic, 0]) + bytes(8 * magic) + struct.pack(">i2si3s", 2, b"k1", 3, b"v11")
    message = struct.pack(">qiI", 7, len(inside) + 4, zlib.crc32(inside)) + inside
    assert f"format {magic} of Kafka before 0.11" in only(message, 7).why
    # Bytes that only look so are not mistaken for such messages.
    assert f"its format is {magic}, which doesn't exist" in only(message[:-1] + b"?", 7).why


@pytest.mark.parametrize("base", [1 << 40, 31, 15, 0, -1, -(1 << 63)])
def test_an_offset_that_has_no_place_there_is_broken_though_no_checksum_covers_it(base: int) -> None:
    parts = [bytearray(batch_of(TEN, first)) for first in (10, 20, 30)]
    parts[1][:8] = struct.pack(">q", base)
    whole, broken, last = batches(b"".join(parts), 10, 40)
    assert isinstance(whole, RecordBatch) and isinstance(last, RecordBatch)
    assert isinstance(broken, BrokenBatch) and "which have no place there" in broken.why
    assert (broken.offset, broken.next_offset, last.base_offset) == (20, 30, 30)


def test_only_a_fetch_from_inside_a_batch_is_answered_with_one_that_begins_before() -> None:
    (result,) = batches(batch_of(TEN, 20), 25, 30)
    assert isinstance(result, RecordBatch)
    (broken,) = batches(batch_of(TEN, 15), 20, 30, inside=False)
    assert isinstance(broken, BrokenBatch)


@pytest.mark.parametrize("length", [-5, 0, 1, 48, 1 << 30])
def test_after_a_length_that_is_wrong_the_next_batch_is_found_all_the_same(length: int) -> None:
    parts = [bytearray(batch_of(TEN, first)) for first in (10, 20, 30)]
    parts[0][8:12] = struct.pack(">i", length)
    broken, *others = batches(b"".join(parts), 10, 40)
    assert isinstance(broken, BrokenBatch)
    assert (broken.offset, broken.next_offset, len(broken.raw)) == (10, 20, len(parts[0]))
    assert [result.next_offset for result in others] == [30, 40]


def test_a_batch_within_a_value_is_not_taken_for_the_next_one() -> None:
    inner = batch_of(TEN, 15)
    outer = bytearray(batch_of([(i, 0, None, inner, []) for i in range(3)], 10))
    outer[30] ^= 1
    broken, following = batches(bytes(outer) + batch_of(TEN, 13), 10, 23)
    assert (broken.next_offset, following.next_offset) == (13, 23)


def test_where_nothing_says_how_far_the_damage_goes_it_goes_to_the_end() -> None:
    assert only(b"\x00" * 500, 20, 60).next_offset == 60
    assert only(b"\x00" * 500, 20).next_offset == 21


def test_whatever_is_damaged_every_offset_is_read_as_it_was_written_or_reported_as_broken() -> None:
    """Fetch after fetch, as a broker answers: from the batch with the offset, some batches and a half."""
    log, places = log_of(8)
    random = np.random.default_rng(7)
    broken = 0
    for _ in range(400):
        damaged = bytearray(log)
        for _ in range(random.integers(1, 5)):
            batch = random.integers(len(places) - 1)
            # Not the low bytes of a base offset: no checksum covers them.
            at = int(random.integers(places[batch] + 8, places[batch + 1]))
            size = min(int(random.choice([1, 4, 60])), places[batch + 1] - at)
            damaged[at : at + size] = random.bytes(size)
        offset, edge = 0, 0
        while offset < 80:
            first = places[offset // 10]
            answer = bytes(damaged[first : first + int(random.choice([500, 2000]))])
            for result in batches(answer, offset, 80, inside=edge != offset):
                if isinstance(result, BrokenBatch):
                    broken += 1
                    assert result.offset == offset < result.next_offset <= 80
                else:
                    assert result.base_offset // 10 * 10 == result.base_offset <= offset
                    place = result.base_offset // 10
                    assert result.raw[16:] == log[places[place] + 16 : places[place + 1]]
                    edge = result.next_offset
                offset = result.next_offset
    assert broken > 400
