"""Which of two snapshots is the newer one, and that a damaged one is never taken for another."""

from __future__ import annotations

from dataclasses import replace
from json import dumps
from zlib import compress

import polars as pl

from streamgauge.operators.consumer.log.faults import DeltaError
from streamgauge.operators.consumer.log.parts import Record
from streamgauge.operators.consumer.log.snapshots import Snapshot
from streamgauge.operators.consumer.merge.merger import Merger
from streamgauge.operators.definition.aggregates import count
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.formats.json import json
from streamgauge.operators.sketching.position import Input

from ..merge.deltas import STREAM, paused, posts


def test_a_snapshot_of_an_earlier_version_is_that_of_its_only_topic() -> None:
    stream = Stream.from_kafka("posts", value=json({"n": pl.Int64})).tumbling("1m").agg(posts=count())
    state = '{"chains":{"3":[7,0,5,-9,1,0,0,0]},"account":{"read":7},"closed":0,"told":0,"extra":[0,0]}'
    value = compress(dumps({"definition": stream.definition(), "state": state}).encode())
    headers = {"kind": b"state", "fingerprint": b"f", "source": b"id", "resume": b"9"}
    found = Snapshot.of(Record(value, headers, 0, ""))
    assert (found.sources, found.resume) == ({"posts": "id"}, 9)
    assert [*found.marks] == [Input("posts", 3)]
    (again,) = found.outgoing("table", 0)
    assert Snapshot.of(Record(again.value, dict(again.headers), 0, "")) == found


def test_of_two_snapshots_at_one_place_the_one_with_more_tellings_is_the_newer() -> None:
    deltas, merger, found = paused(range(18), 60, range(18, 40), 31), Merger(STREAM, posts(1)), []
    for offset, delta in enumerate(deltas):
        merger.offer(delta, offset)
        merger.close()
        found.append(
            Snapshot(STREAM.fingerprint(), {"posts": "id"}, *merger.resume_point(), STREAM.definition())
        )
    assert [snapshot.resume for snapshot in found] == [0] * 4
    assert found[0].progress < found[1].progress == found[2].progress < found[3].progress


def test_a_snapshot_that_is_cut_off_or_has_a_flipped_bit_is_refused() -> None:
    merger = Merger(STREAM, posts(1))
    for offset, delta in enumerate(paused(range(18), 60)):
        merger.offer(delta, offset)
    whole = Snapshot(STREAM.fingerprint(), {"posts": "id"}, *merger.resume_point(), STREAM.definition())
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
