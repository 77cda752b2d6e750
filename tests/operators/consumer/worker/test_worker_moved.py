"""Brokers that come back at other addresses behind the same name: a run reads on."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from confluent_kafka import Consumer, TopicPartition

from streamgauge.apps.dev.kafka.broker import EmbeddedKafka
from streamgauge.apps.dev.kafka.node import free_port
from streamgauge.operators.consumer.options import RunOptions
from streamgauge.operators.consumer.runner import start
from streamgauge.operators.definition.aggregates import count
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.formats.json.decoder import json
from streamgauge.operators.kafka.reader import Reader
from streamgauge.operators.sinks.answers_to_kafka import AnswersToKafka

from ....faulty_proxy import FaultyProxy
from ....waiting import until
from ...kafka.lost_tail import send_numbers

pytestmark = pytest.mark.kafka


def windows(broker: EmbeddedKafka) -> int:
    """How many answers were sent."""
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "look"})
    try:
        consumer.assign([TopicPartition("answers", 0, 0)])
        count = 0
        while messages := consumer.consume(1_000, 2.0):
            count += sum(message.error() is None for message in messages)
        return count
    finally:
        consumer.close()


# On a slow machine the group may move on while a transaction commits: that one ends by its time-out.
@pytest.mark.slow
@pytest.mark.parametrize("timeout_ms", [60_000, pytest.param(600_000, marks=pytest.mark.soak)])
def test_brokers_that_move_are_found_by_their_names(timeout_ms: int, tmp_path: Path) -> None:
    broker = EmbeddedKafka(data=tmp_path / "data").start()
    proxy = FaultyProxy(broker.port)
    try:
        broker.create_topic("posts")
        source: Any = Stream.from_kafka(
            "posts",
            value=json({"n": pl.Int64}),
            time=pl.from_epoch("n"),
            bootstrap_servers=proxy.address,
            config={"transaction.timeout.ms": timeout_ms},
        )
        stream = source.tumbling("10s").agg(posts=count())
        options = RunOptions(group_id="by-day", checkpoint_seconds=0.1, sinks=(AnswersToKafka("answers"),))
        running = start(stream, options)
        reader = Reader({"bootstrap.servers": proxy.address}, {("posts", 0): 0})
        send_numbers(broker, "posts", range(500))
        until(lambda: running.summary().account.read == 500)
        assert sum(map(len, reader.read_to({("posts", 0): 500}))) == 500

        until(lambda: windows(broker) >= 49)

        broker.stop()
        broker = EmbeddedKafka(free_port(), tmp_path / "data").start()
        proxy.target = broker.port
        send_numbers(broker, "posts", range(500, 1_000))
        began = time.monotonic()
        assert sum(map(len, reader.read_to({("posts", 0): 1_000}))) == 500
        assert time.monotonic() - began < 120, "clients ask again where brokers are after five minutes"
        reader.close()
        until(lambda: running.summary().account.read == 1_000)
        until(lambda: windows(broker) >= 99)
        running.stop()
        assert running.wait(120).account.counted == 1_000
    finally:
        proxy.close()
        broker.stop()
