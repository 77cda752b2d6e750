"""What the table topic shows a successor: where chains of deltas end."""

from __future__ import annotations

import threading
import uuid
from dataclasses import replace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka import TopicPartition as KafkaPartition

from streamgauge.operators.consumer.log import log_scan
from streamgauge.operators.consumer.log.log_scan import Tail, _edges, follow, read_tail
from streamgauge.operators.consumer.log.messages import encode
from streamgauge.operators.consumer.merge.merger import Merger
from streamgauge.operators.kafka.topics import admin
from streamgauge.operators.watermarks.position import Input, Position, inputs_of

from .records import STREAM, delta, snapshot

POSTS = Input("posts", 0)


def test_a_successor_goes_on_behind_deltas_that_were_trimmed() -> None:
    merger = Merger(STREAM, inputs_of({"posts": 2}))
    merger.offer(delta(0, 0, 100), 0)
    merger.offer(delta(0, 100, 200), 1)
    tail = Tail(2, 4, [delta(0, 200, 300)], snapshot(merger))
    assert follow(Position(100), POSTS, {0: tail}).position.offset == 300
    assert follow(Position(100), Input("posts", 1), {0: tail}).position.offset == 100
    behind = follow(Position(100), POSTS, {0: tail, 1: Tail(0, 1, [delta(0, 100, 200)])})
    assert (behind.position.offset, behind.cuts) == (200, [300])
    trimmed = follow(Position(100), POSTS, {0: replace(tail, deltas=[])})
    assert (trimmed.position.offset, trimmed.position.time.watermark(3)) == (200, 7)


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
        assert some.wait(120)
        tail = read_tail(config, name, {0: 0})[0]
        assert writing.is_alive()
    finally:
        enough.set()
        writing.join()
    assert tail.end >= 20 and [result.first_offset for result in tail.deltas] == list(range(tail.end))


@pytest.mark.kafka
def test_a_damaged_snapshot_is_left_out(kafka: Any, caplog: Any) -> None:
    name, config = f"log-{uuid.uuid4().hex[:8]}", {"bootstrap.servers": kafka.bootstrap_servers}
    kafka.create_topic(name, partitions=1)
    producer, merger = Producer(config), Merger(STREAM, inputs_of({"posts": 1}))
    for at in range(2):
        merger.offer(delta(0, at, at + 1), at)
        (sent,) = snapshot(merger).outgoing(name, 0)
        value = sent.value if at == 0 else sent.value[:-1]
        producer.produce(name, value, partition=0, headers=list(sent.headers))
    assert producer.flush(120) == 0
    tail = read_tail(config, name, {0: 0})[0]
    assert tail.snapshot is not None and (tail.snapshot.next_offset, tail.damaged) == (1, 1)
    assert "damaged snapshot of a merger's state: error('Error -5" in caplog.text and name in caplog.text


@pytest.mark.kafka
def test_a_topic_that_is_trimmed_meanwhile_is_read_again(kafka: Any, monkeypatch: Any) -> None:
    """A merger that still lives writes down where it is, and trims, while its successor looks."""
    name, config = f"log-{uuid.uuid4().hex[:8]}", {"bootstrap.servers": kafka.bootstrap_servers}
    kafka.create_topic(name, partitions=1)
    producer, merger, read = Producer(config), Merger(STREAM, inputs_of({"posts": 1})), log_scan._read

    def write(at: int) -> None:
        merger.offer(delta(0, at, at + 1), at)
        for message in [*encode(delta(0, at, at + 1), name, 1), *snapshot(merger).outgoing(name, 0)]:
            producer.produce(name, message.value, partition=0, headers=list(message.headers))
        assert producer.flush(120) == 0

    def trimmed_meanwhile(*args: Any) -> Any:
        monkeypatch.setattr(log_scan, "_read", read)
        result = read(*args)
        write(1)
        place = KafkaPartition(name, 0, 2)
        admin(config).delete_records([place])[place].result(120)
        return result

    write(0)
    monkeypatch.setattr(log_scan, "_read", trimmed_meanwhile)
    results = read_tail(config, name, {0: 0})[0]
    assert results.begin == 2 and results.snapshot is not None and results.snapshot.next_offset == 2


def test_a_leader_that_was_killed_leaves_time_to_ask_the_next_one() -> None:
    class Killed:
        asks = 0

        def get_watermark_offsets(self, place: object, timeout: float) -> tuple[int, int]:
            self.asks += 1
            if self.asks == 1:
                assert timeout < 5, "another broker leads by then"
                raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
            return 3, 7

    killed: Any = Killed()
    assert _edges(killed, "log", 0) == (3, 7)


def test_a_topic_that_a_broker_does_not_know_yet_is_asked_for_again() -> None:
    answers: list[Any] = [KafkaException(KafkaError(KafkaError._UNKNOWN_PARTITION)), (3, 7)]

    class Young:
        def get_watermark_offsets(self, place: object, timeout: float) -> tuple[int, int]:
            result = answers.pop(0)
            if isinstance(result, Exception):
                raise result
            return result

    young: Any = Young()
    assert _edges(young, "log", 0) == (3, 7)
