"""What can't be counted is kept, whatever its size and whatever its topic takes."""

from __future__ import annotations

import uuid
from typing import Any

import polars as pl
import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition

from streamgauge.operators.consumer.options import RunOptions
from streamgauge.operators.consumer.runner import run
from streamgauge.operators.definition.aggregates import count
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.formats.json.decoder import json
from streamgauge.operators.kafka.outgoing_message import shorter
from streamgauge.operators.sketching.account import Account
from streamgauge.operators.sketching.dead_letters import DeadLetter

from ...waiting import readable

LARGE = b'{"a": ' + b"1" * 2_500_000


def test_the_largest_letters_are_cut_first_and_say_how_long_they_were() -> None:
    sizes = [10, 900, 5_000, 80_000]
    letters = [DeadLetter("t", 1, n, 0, "bad", b"v" * n, b"k" * 30).outgoing("dead") for n in sizes]
    result = shorter(letters)
    assert result is not None and [m.size for m in result] == [40, 930, 5_030, 20_007]
    assert result[3].headers[-1] == ("cut", b"80000") and result[:3] == letters[:3]
    rounds = 1
    while (again := shorter(result)) is not None:
        result, rounds = again, rounds + 1
    assert max(m.size for m in result) == 1_000 and rounds < 10
    assert [dict(m.headers).get("cut") for m in result] == [None, None, b"5000", b"80000"]
    assert all(dict(m.headers)["offset"] == b"%d" % n for m, n in zip(result, sizes))


def test_of_a_long_key_half_may_stay() -> None:
    [collected] = shorter([DeadLetter("t", 0, 0, 0, "bad", b"", b"k" * 9_000).outgoing("dead")]) or []
    assert (collected.size, collected.value, dict(collected.headers)["cut"]) == (1_125, b"", b"0")


def letters_of(kafka: Any, topic: str) -> list[Any]:
    settings = {
        "bootstrap.servers": kafka.bootstrap_servers,
        "group.id": "look",
        "enable.partition.eof": True,
    }
    readable(kafka.bootstrap_servers, topic)
    consumer, messages = Consumer(settings), []
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        while (message := consumer.poll(120)) is not None:
            if message.error() is not None:
                assert message.error().code() == KafkaError._PARTITION_EOF
                return messages
            messages.append(message)
        raise AssertionError(f"{topic} did not answer")
    finally:
        consumer.close()


@pytest.mark.slow
@pytest.mark.kafka
@pytest.mark.parametrize("delivery", ["exactly_once", pytest.param("at_least_once", marks=pytest.mark.soak)])
def test_a_message_as_large_as_its_topic_takes(kafka: Any, delivery: str) -> None:
    topic = f"large-{uuid.uuid4().hex[:8]}"
    kafka.create_topic(topic, config={"max.message.bytes": "4000000"})
    kafka.create_topic(f"{topic}.narrow", config={"max.message.bytes": "20000"})
    producer = Producer(
        {
            "bootstrap.servers": kafka.bootstrap_servers,
            "enable.idempotence": True,
            "message.max.bytes": 4_000_000,
        }
    )
    for value in (b'{"a": 1}', LARGE, b"oops"):
        producer.produce(topic, value)
    assert producer.flush(120) == 0
    source = Stream.from_kafka(topic, value=json({"a": pl.Int64}), bootstrap_servers=kafka.bootstrap_servers)
    stream = source.tumbling("1m").agg(posts=count())
    for dead in ("", f"{topic}.narrow"):
        summary = run(stream, RunOptions(until="latest", delivery=delivery, dead_letters=dead))
        assert summary.account == Account(3, counted=1, dead_lettered=2)
        result = letters_of(kafka, dead or f"{topic}.dead-letters")
        large, small = sorted(result, key=lambda letter: dict(letter.headers())["offset"])
        headers = dict(large.headers())
        assert (headers["topic"], headers["partition"], headers["offset"]) == (topic.encode(), b"0", b"1")
        assert LARGE.startswith(large.value()) and small.value() == b"oops"
        if dead:
            assert headers["cut"] == b"2500006" and 4_000 < len(large.value()) < 20_000
        else:
            assert large.value() == LARGE and "cut" not in headers
