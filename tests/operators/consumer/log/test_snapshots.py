"""Which of two snapshots is the newer one, and that a damaged one is never mistaken for another."""

from __future__ import annotations

from dataclasses import replace

from streamgauge.operators.consumer.log.snapshots import Snapshot
from streamgauge.operators.consumer.merge.merger import Merger
from streamgauge.operators.kafka.chunked_records import Record
from streamgauge.operators.kafka.log_faults import DeltaError

from ..merge.deltas import STREAM, paused, posts


def test_of_two_snapshots_at_one_place_the_one_with_more_tellings_is_the_newer() -> None:
    deltas, merger, collected = paused(range(18), 60, range(18, 40), 31), Merger(STREAM, posts(1)), []
    for offset, delta in enumerate(deltas):
        merger.offer(delta, offset)
        merger.close()
        collected.append(
            Snapshot(STREAM.fingerprint(), {"posts": "id"}, *merger.restore_point(), STREAM.definition())
        )
    assert [snapshot.next_offset for snapshot in collected] == [0] * 4
    assert collected[0].progress < collected[1].progress == collected[2].progress < collected[3].progress


def test_a_snapshot_that_is_cut_off_or_has_a_flipped_bit_is_refused() -> None:
    merger = Merger(STREAM, posts(1))
    for offset, delta in enumerate(paused(range(18), 60)):
        merger.offer(delta, offset)
    whole = Snapshot(STREAM.fingerprint(), {"posts": "id"}, *merger.restore_point(), STREAM.definition())
    (sent,) = whole.outgoing("table", 0)
    record = Record(sent.value, dict(sent.headers), 0, "")
    assert Snapshot.of(record) == whole
    damaged = [sent.value[:size] for size in range(len(sent.value))]
    for bit in range(8 * len(sent.value)):
        flipped = bytearray(sent.value)
        flipped[bit // 8] ^= 1 << bit % 8
        damaged.append(bytes(flipped))
    refused = 0
    for value in damaged:
        try:
            assert Snapshot.of(replace(record, value=value)) == whole  # in bits that mean nothing
        except DeltaError:
            refused += 1
    assert refused >= len(damaged) - 8
