"""Messages in, sketches by partition out."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from streamgauge.operators.definition.aggregates import count
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.formats.json.decoder import json
from streamgauge.operators.formats.messages import Broken, Messages, from_objects
from streamgauge.operators.kafka.source import ReadError
from streamgauge.operators.sketching.account import Account
from streamgauge.operators.sketching.message_warnings import Remarks
from streamgauge.operators.sketching.partition_buffer import PartitionBuffer
from streamgauge.operators.sketching.partition_state import PartitionState
from streamgauge.operators.watermarks.position import Input

STREAM = Stream.from_kafka("posts", value=json({"n": pl.Int64})).tumbling("1m").agg(posts=count())


def test_messages_of_a_partition_that_come_out_of_order_are_not_judged_by_it() -> None:
    intake = PartitionBuffer(Remarks("posts", {}))
    for partition in (0, 1):
        intake.add_partition(PartitionState(STREAM, "posts", partition, 0), [])
    stamps = [1_700_000_000_000 + n for n in range(6)]
    messages = Messages.of([b'{"n": 1}'] * 6, topic="posts", partition=[0, 0, 1, 1, 0, 1], timestamps=stamps)
    intake.sketch(STREAM.reading.kafka_source, messages)
    assert [own.account.counted for own in intake.progress.values()] == [3, 3]
    with pytest.raises(ReadError, match=r"posts\[1\] was read out of order: offset 0 came after 1"):
        intake.sketch(STREAM.reading.kafka_source, messages.select(np.array([0, 3, 2])))


@pytest.mark.parametrize("once", [False, True], ids=["plain", "deduplicated"])
def test_messages_without_a_timestamp_are_refused_where_it_is_the_event_time(once: bool) -> None:
    rows = Stream.from_kafka("posts", value=json({"x": pl.Int64, "at": pl.Int64}))
    timed = Stream.from_kafka("posts", value=json({"x": pl.Int64, "at": pl.Int64}), time=pl.from_epoch("at"))
    values = [b'{"x": %d, "at": 1767225600}' % x for x in range(4)]
    messages = Messages.of(values, topic="posts", timestamps=[-1, 1_767_225_600_000, -1, 1_767_225_601_000])
    for stream in (rows, timed):
        stream = stream.filter(pl.col("x") != 2)
        stream = stream.deduplicate("x", within="1m") if once else stream
        stream = stream.tumbling("1h").agg(rows=count())
        intake = PartitionBuffer(Remarks("posts", {}))
        intake.add_partition(progress := PartitionState(stream, "posts", 0, 0), [])
        intake.sketch(stream.reading.kafka_source, messages)
        result = [(letter.offset, letter.reason) for letter in intake.dead_letters]
        reason = 'no event time: the message has no timestamp; take one from the rows, as in time="at"'
        assert result == ([(0, reason)] if stream.time is None else [])
        assert progress.account == Account(4, 3 - len(result), 1, 0, len(result))
        assert progress.delta().table.num_rows == 1


def test_partitions_of_one_number_in_two_topics_are_two() -> None:
    intake = PartitionBuffer(Remarks("posts", {}))
    for topic, first in (("posts", 0), ("likes", 2)):
        intake.add_partition(PartitionState(STREAM, topic, 0, first), [])
    values, stamps = [b'{"n": 1}', b"oops"] * 100, np.full(200, 1_700_000_000_000)
    topic = np.repeat([0, 1], 2)[np.arange(200) % 4].astype(np.int32)
    offsets = np.arange(200) // 4 * 2 + np.arange(200) % 2
    zeros = np.zeros(200, np.int32)
    intake.sketch(
        STREAM.reading.kafka_source,
        from_objects(("likes", "posts"), topic, zeros, offsets, stamps, values, [None] * 200, None),
    )
    assert {where: (own.next_offset, own.account.read) for where, own in intake.progress.items()} == {
        Input("posts", 0): (100, 100),
        Input("likes", 0): (100, 98),
    }
    letters = Counter((letter.topic, letter.offset) for letter in intake.dead_letters)
    wanted = [("likes", offset) for offset in range(3, 100, 2)] + [("posts", n) for n in range(1, 100, 2)]
    assert letters == Counter(wanted)


def test_offsets_that_can_not_be_read_count_one_each_in_the_deltas_that_they_belong_to() -> None:
    intake = PartitionBuffer(Remarks("posts", {}), {Input("posts", 0): 40})
    intake.add_partition(PartitionState(STREAM, "posts", 0, 10), [12, 20, 25])
    broken = Broken("posts", 0, 15, 50, "its checksum is wrong", b"bytes")
    intake.sketch(
        STREAM.reading.kafka_source, Messages.skipped(replace(broken, partition=1))
    )  # another worker's
    intake.sketch(
        STREAM.reading.kafka_source, Messages.skipped(replace(broken, first=0, next=10))
    )  # counted before
    assert not intake.ready and not intake.dead_letters
    intake.sketch(STREAM.reading.kafka_source, Messages.skipped(broken))
    deltas = [*intake.ready, intake.progress["posts", 0].delta()]
    assert [(d.first_offset, d.next_offset, d.account.read, d.account.dead_lettered) for d in deltas] == [
        (10, 12, 0, 0),
        (12, 20, 5, 5),
        (20, 25, 5, 5),
        (25, 40, 15, 15),
    ]
    assert [(letter.offset, letter.last_offset) for letter in intake.dead_letters] == [
        (15, 19),
        (20, 24),
        (25, 39),
    ]
    assert all(letter.value == b"bytes" and "checksum" in letter.reason for letter in intake.dead_letters)
    assert intake.dead_bytes > 0
