"""What the table topic tells a successor, in memory: parts, snapshots, and where chains end."""

from __future__ import annotations

import threading
import uuid
from dataclasses import replace
from typing import Any

import polars as pl
import pytest
from confluent_kafka import Producer

from streamgauge.operators.consumer.group.membership import Committed
from streamgauge.operators.consumer.log.messages import decode, encode
from streamgauge.operators.consumer.log.parts import Gather
from streamgauge.operators.consumer.log.snapshots import Snapshot, is_snapshot
from streamgauge.operators.consumer.log.tail import Tail, follow, read_tail
from streamgauge.operators.consumer.merge.merger import Merger
from streamgauge.operators.definition.aggregates import count
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.sketching.accounting import Account
from streamgauge.operators.sketching.delta import Delta
from streamgauge.operators.sketching.lateness import PartitionTime

STREAM = Stream.from_batches({"at": pl.Datetime("us")}, time="at").tumbling("1m").agg(posts=count())


def delta(partition: int, first: int, following: int) -> Delta:
    account = Account(read=following - first, counted=following - first)
    return Delta(
        STREAM.fingerprint(), "posts", partition, first, following, None, PartitionTime(10), account=account
    )


def snapshot(merger: Merger) -> Snapshot:
    return Snapshot(STREAM.fingerprint(), "id", *merger.resume_point(), STREAM.definition())


def test_the_state_of_a_thousand_partitions_comes_back_whole_from_messages_of_any_size() -> None:
    merger = Merger(STREAM, range(1_000))
    for partition in range(1_000):
        merger.offer(delta(partition, 0, 10**12 + partition), partition)
    kept = snapshot(merger)
    messages = kept.outgoing("table", 0, largest=500)
    assert len(messages) > 4 and all(len(m.value or b"") <= 500 for m in messages)
    assert len(kept.outgoing("table", 0)) == 1
    gather, found = Gather(), []
    for offset, message in enumerate(messages):
        _, record = gather.take(message.value, message.headers, offset)
        if record is not None:
            assert is_snapshot(record.headers)
            found.append(Snapshot.of(record))
    assert found == [kept]
    again = Merger(STREAM, range(1_000))
    again.resume(found[0].resume, found[0].state)
    assert again.state == merger.state


def test_parts_may_come_twice_and_in_any_order_with_others_between() -> None:
    one, two = (replace(delta(p, 0, 9), messages={n: n for n in range(100)}, source="id") for p in (0, 1))
    first, second = (encode(whole, "table", 1, largest=200) for whole in (one, two))
    gather, found = Gather(), []
    for message in [*first[1:], *second[:2], first[1], *second[2:], first[0]]:
        _, record = gather.take(message.value, message.headers, 0)
        if record is not None:
            found.append(decode(record))
    assert found == [two, one] and not gather.waiting


def test_parts_that_will_never_be_whole_are_given_up_when_another_delta_takes_their_place() -> None:
    gather = Gather()
    whole = replace(delta(0, 5, 9), messages={n: n for n in range(100)})
    for message in encode(whole, "table", 1, largest=200)[:-1]:
        gather.take(message.value, message.headers, 0)
    assert gather.overtaken(1, 100) == [] == gather.overtaken(0, 5)
    assert len(gather.overtaken(0, 6)) == 1 and not gather.waiting


def test_a_successor_goes_on_behind_deltas_that_were_trimmed() -> None:
    merger = Merger(STREAM, [0, 1])
    merger.offer(delta(0, 0, 100), 0)
    merger.offer(delta(0, 100, 200), 1)
    tail = Tail(2, 4, [delta(0, 200, 300)], snapshot(merger))
    assert follow(Committed(100), 0, {0: tail}).place.offset == 300
    assert follow(Committed(100), 1, {0: tail}).place.offset == 100
    behind = follow(Committed(100), 0, {0: tail, 1: Tail(0, 1, [delta(0, 100, 200)])})
    assert (behind.place.offset, behind.cuts) == (200, [300])
    trimmed = follow(Committed(100), 0, {0: replace(tail, deltas=[])})
    assert (trimmed.place.offset, trimmed.place.time.watermark(3)) == (200, 7)


@pytest.mark.kafka
def test_a_topic_that_is_written_to_all_the_time_has_an_end(kafka: Any) -> None:
    name, config = f"log-{uuid.uuid4().hex[:8]}", {"bootstrap.servers": kafka.bootstrap_servers}
    kafka.create_topic(name, partitions=1)
    producer, enough, some = Producer(config), threading.Event(), threading.Event()

    def write() -> None:
        at = 0
        while at < 3_000 and not enough.wait(0.02):
            for message in encode(delta(0, at, at + 1), name, 1):
                producer.produce(name, message.value, partition=0, headers=list(message.headers))
            producer.flush(10)
            at += 1
            if at > 20:
                some.set()

    writing = threading.Thread(target=write, daemon=True)
    writing.start()
    try:
        assert some.wait(60)
        tail = read_tail(config, name, {0: 0})[0]
        assert writing.is_alive()
    finally:
        enough.set()
        writing.join()
    assert tail.end >= 20 and [found.first for found in tail.deltas] == list(range(tail.end))
