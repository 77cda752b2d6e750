"""A real table topic whose deltas are written by hand."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
from confluent_kafka import KafkaError, Message, Producer

from streamgauge.operators.consumer.log.messages import TOPIC_CONFIG, encode, table_topic
from streamgauge.operators.consumer.merge.closed_windows import ClosedWindows
from streamgauge.operators.consumer.merge.merge_worker import MergeWorker
from streamgauge.operators.consumer.options import RunOptions
from streamgauge.operators.consumer.run_plan import Plan
from streamgauge.operators.definition.aggregates import count, distinct
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.formats.json.decoder import json
from streamgauge.operators.kafka.topics import admin, begin_offsets, ensure_topic
from streamgauge.operators.sketching.delta import Delta
from streamgauge.operators.sketching.partition_state import PartitionState
from streamgauge.operators.table.schema import schema_of
from streamgauge.operators.watermarks.idle_timer import Rest

START = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass
class Log:
    """A table topic, the deltas of `partitions` input partitions on it, and the windows that were emitted."""

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
        topic = table_topic(name, stream.fingerprint())
        self.plan = Plan(stream, name, topic, {"posts": self.partitions}, topic_ids={"posts": "one"})
        self.client = admin(self.plan.config)
        ensure_topic(self.client, self.plan.table_topic, 1, TOPIC_CONFIG)
        self.inputs = [
            PartitionState(stream, "posts", p, 0, clock=lambda: 2e9) for p in range(self.partitions)
        ]
        self.emitted: list[tuple[int, int]] = []

    def delta(self, partition: int, minute: int, users: Iterable[int] = (1,)) -> Delta:
        """One message of each user in a minute."""
        progress = self.inputs[partition]
        rows = list(users)
        at = int(START.timestamp() * 1e6) + minute * 60_000_000
        frame = pl.DataFrame({"user": rows, "at": [at] * len(rows)})
        offsets = np.arange(progress.next_offset, progress.next_offset + len(rows))
        progress.add(frame, None, offsets, progress.next_offset + len(rows), lambda numbers, reason: None)
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
        producer = Producer(
            {"bootstrap.servers": self.kafka.bootstrap_servers, "enable.idempotence": True, "linger.ms": 5}
        )

        def sent(error: KafkaError | None, message: Message) -> None:
            assert error is None

        for message in messages:
            producer.produce(
                message.topic, message.value, headers=list(message.headers), partition=0, on_delivery=sent
            )
        assert producer.flush(120) == 0

    def stand_still(self) -> Producer:
        """A worker with an open transaction: what comes after its message can't be read until that ends."""
        topic = self.plan.table_topic
        still = Producer({"bootstrap.servers": self.kafka.bootstrap_servers, "transactional.id": topic})
        still.init_transactions(120)
        still.begin_transaction()
        still.produce(topic, b"never read", partition=0)
        assert still.flush(120) == 0
        return still

    def merge(
        self, until: int, hand_over: Callable[[pa.Table], None] | None = None, drains: bool = True
    ) -> MergeWorker:
        """Run a merger of the group until so many windows were emitted in all.

        It waits until its place is kept, however slow the broker is, unless there is a reason not to drain
        the log: what lies behind an open transaction never comes.
        """

        def on_window(table: pa.Table) -> None:
            if hand_over is not None:
                hand_over(table)
            minute = (table.column("window_start")[0].as_py() - START).total_seconds() // 60
            self.emitted.append((int(minute), table.column("posts")[0].as_py()))

        closed = ClosedWindows(schema_of(self.plan.stream), 100)
        plan = replace(self.plan, options=RunOptions(on_window=on_window))
        merger = MergeWorker(plan, closed, lambda: len(self.emitted) >= until, lambda: drains)
        merger.run()
        return merger

    @property
    def begin(self) -> int:
        """The first offset that is still there."""
        return begin_offsets(self.client, [(self.plan.table_topic, 0)])[self.plan.table_topic, 0]
