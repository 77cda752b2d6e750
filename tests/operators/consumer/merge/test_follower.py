"""The merging worker on a real table topic whose deltas are written by hand."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from confluent_kafka import KafkaError, Message, Producer, TopicPartition

from streamgauge.operators.consumer.log.faults import DeltaError
from streamgauge.operators.consumer.log.messages import TOPIC_CONFIG, encode
from streamgauge.operators.consumer.merge.closed_windows import ClosedWindows
from streamgauge.operators.consumer.merge.follower import LogMerger
from streamgauge.operators.consumer.plan import Plan
from streamgauge.operators.definition.aggregates import count, distinct
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.formats.json import json
from streamgauge.operators.kafka.topics import admin, begin_offsets, ensure_topic
from streamgauge.operators.sketching.accounting import Account
from streamgauge.operators.sketching.delta import Delta
from streamgauge.operators.sketching.progress import Progress
from streamgauge.operators.sketching.silence import Rest
from streamgauge.operators.table.schema import schema_of

pytestmark = pytest.mark.kafka

START = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass
class Log:
    """A table topic, the deltas of `partitions` input partitions on it, and the windows that were told."""

    kafka: Any
    partitions: int

    def __post_init__(self) -> None:
        source = Stream.from_kafka(
            "posts",
            value=json({"user": pl.Int64, "at": pl.Int64}),
            time=pl.from_epoch("at", time_unit="us"),
            bootstrap_servers=self.kafka.bootstrap_servers,
        )
        stream = source.tumbling("1m", delay="0s").agg(posts=count(), users=distinct("user"))
        name = f"log-{uuid.uuid4().hex[:8]}"
        self.plan = Plan(stream, name, f"{name}.table", self.partitions, source_id="one")
        self.client = admin(self.plan.config)
        ensure_topic(self.client, self.plan.table_topic, 1, TOPIC_CONFIG)
        self.inputs = [Progress(stream, "posts", p, 0, clock=lambda: 2e9) for p in range(self.partitions)]
        self.told: list[tuple[int, int]] = []

    def delta(self, partition: int, minute: int, users: Iterable[int] = (1,)) -> Delta:
        """One message of each user in a minute."""
        progress = self.inputs[partition]
        rows = list(users)
        at = int(START.timestamp() * 1e6) + minute * 60_000_000
        frame = pl.DataFrame({"user": rows, "at": [at] * len(rows)})
        offsets = np.arange(progress.next, progress.next + len(rows))
        progress.add(frame, None, offsets, progress.next + len(rows), lambda numbers, reason: None)
        return replace(progress.delta(), source="one")

    def silence(self, partition: int, seconds: int) -> Delta:
        """Word that a partition is silent."""
        self.inputs[partition].rest = Rest(seconds * 1_000_000, 5_000_000, int(2e15))
        return replace(self.inputs[partition].delta(), source="one")

    def write(self, deltas: Iterable[Delta], **options: Any) -> None:
        """Append deltas to the topic."""
        self.send([m for delta in deltas for m in encode(delta, self.plan.table_topic, 1, **options)])

    def send(self, messages: Iterable[Any]) -> None:
        """Append messages to the topic."""
        producer = Producer({"bootstrap.servers": self.kafka.bootstrap_servers, "linger.ms": 5})

        def sent(error: KafkaError | None, message: Message) -> None:
            assert error is None

        for message in messages:
            producer.produce(
                message.topic, message.value, headers=list(message.headers), partition=0, on_delivery=sent
            )
        assert producer.flush(30) == 0

    def merge(self, until: int, hand_over: Callable[[pa.Table], None] | None = None) -> LogMerger:
        """Run a merger of the group until so many windows were told in all."""

        def told(table: pa.Table) -> None:
            if hand_over is not None:
                hand_over(table)
            minute = (table.column("window_start")[0].as_py() - START).total_seconds() // 60
            self.told.append((int(minute), table.column("posts")[0].as_py()))

        closed = ClosedWindows(schema_of(self.plan.stream), 100)
        merger = LogMerger(self.plan, told, closed, lambda: len(self.told) >= until)
        merger.run()
        return merger

    @property
    def begin(self) -> int:
        """The first offset that is still there."""
        return begin_offsets(self.client, self.plan.table_topic, [0], 30.0)[0]


def test_a_window_whose_callback_fails_comes_again_and_the_log_is_trimmed_behind_it(kafka) -> None:
    log = Log(kafka, 1)
    log.write(log.delta(0, minute) for minute in range(5))

    def fail(table: pa.Table) -> None:
        if len(log.told) == 2:
            raise LookupError("no room on the wall")

    with pytest.raises(LookupError, match="no room"):
        log.merge(4, fail)
    assert log.told == [(0, 1), (1, 1)]
    assert log.begin == 2
    log.merge(4)
    assert log.told == [(0, 1), (1, 1), (2, 1), (3, 1)]
    assert log.begin >= 4
    log.write([log.delta(0, minute) for minute in (5, 6)])
    later = log.merge(6)
    assert log.told[4:] == [(4, 1), (5, 1)]
    assert later.states()[0].account.read == 7 and later.states()[0].duplicates == 0

    place = TopicPartition(log.plan.table_topic, 0, log.begin + 1)
    log.client.delete_records([place])[place].result(30)
    with pytest.raises(DeltaError, match=r"begins at offset \d+, but the oldest open window .*new group_id"):
        log.merge(7)
    assert len(log.told) == 6


def test_a_window_that_silence_closed_is_kept_in_the_log_and_comes_again_whole(kafka) -> None:
    log = Log(kafka, 1)
    log.write([log.delta(0, 0, (1, 2)), log.silence(0, 60)])
    log.merge(1)
    log.write([log.silence(0, 61)])
    log.merge(1)  # nothing was added: a restart tells it no second time
    assert log.told == [(0, 2)]
    assert log.begin == 0
    log.write([log.delta(0, 0, (3,)), log.delta(0, 1), log.delta(0, 2)])
    again = log.merge(3)
    assert log.told == [(0, 2), (0, 3), (1, 1)]
    assert again.states()[0].account == Account(read=5, counted=5)
    assert again._closed.table().select(["posts"]).to_pydict() == {"posts": [3, 1]}
    assert log.begin >= 4


def test_the_state_of_many_input_partitions_is_kept_and_needs_no_group(kafka) -> None:
    log = Log(kafka, 300)
    log.write(log.delta(p, minute) for minute in (0, 1) for p in range(300))
    log.merge(1)
    assert log.told == [(0, 300)]
    assert log.begin == 300
    # As after offsets.retention.minutes, the group is forgotten.
    log.client.delete_consumer_groups([log.plan.merger_group])[log.plan.merger_group].result(30)
    log.write(log.delta(p, 2) for p in range(300))
    again = log.merge(2)
    assert log.told == [(0, 300), (1, 300)]
    assert again.states()[0].account.read == 900 and again.states()[0].duplicates == 0


def test_deltas_in_parts_count_whole_or_not_at_all(kafka) -> None:
    log = Log(kafka, 2)
    topic = log.plan.table_topic
    one, two = (encode(log.delta(p, 0, range(300)), topic, 1, largest=400) for p in (0, 1))
    assert len(one) > 3 and len(two) > 3
    log.send(one[:-1])  # its sender dies, and a successor sends all of it
    log.inputs[0] = Progress(log.plan.stream, "posts", 0, 0, clock=lambda: 2e9)
    one = encode(log.delta(0, 0, range(300)), topic, 1, largest=400)
    log.send([message for pair in zip(one, two, strict=True) for message in pair])
    log.write([log.delta(p, 1) for p in (0, 1)])
    merger = log.merge(1)
    assert log.told == [(0, 600)]
    assert merger.states()[0].account.read == 602


def test_a_log_of_which_the_head_is_gone_is_refused(kafka) -> None:
    log = Log(kafka, 1)
    log.write(log.delta(0, minute) for minute in range(3))
    place = TopicPartition(log.plan.table_topic, 0, 1)
    log.client.delete_records([place])[place].result(30)
    with pytest.raises(DeltaError, match=r"begins at offset 1, but no merger's state is left"):
        log.merge(1)
    assert log.told == []
