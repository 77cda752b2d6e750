"""Sending to a real broker, and what a reader gives of it as plain rows."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from typing import Any

from confluent_kafka import Producer

from streamgauge.apps.dev.kafka.broker import EmbeddedKafka
from streamgauge.operators.formats.messages import Messages
from streamgauge.operators.kafka.reader import EARLIEST, Reader

NewTopic = Callable[..., str]
SOURCES = ["raw", "plain"]


def send(kafka: EmbeddedKafka, topic: str, values: list[bytes | None], **more: Any) -> None:
    producer = Producer(
        {"bootstrap.servers": kafka.bootstrap_servers, "enable.idempotence": True, "log_level": 0}
    )
    for value in values:
        producer.produce(topic, value, **{"partition": 0, **more})
    assert producer.flush(120) == 0


def transaction(kafka: EmbeddedKafka, topic: str, values: list[bytes], commit: bool) -> None:
    """Send in a transaction, and wait for its marker, which Kafka writes after the transaction's end."""
    config = {"bootstrap.servers": kafka.bootstrap_servers}
    with Reader(config, {(topic, 0): EARLIEST}) as reader:
        after = reader.end_offsets()[(topic, 0)] + len(values) + 1
        producer = Producer({**config, "transactional.id": uuid.uuid4().hex})
        producer.init_transactions(120)
        producer.begin_transaction()
        for value in values:
            producer.produce(topic, value, partition=0)
        assert producer.flush(120) == 0
        (producer.commit_transaction if commit else producer.abort_transaction)(120)
        deadline = time.monotonic() + 300
        while (end := reader.end_offsets()[(topic, 0)]) != after and time.monotonic() < deadline:
            time.sleep(0.01)
        assert end == after


def read_all(reader: Reader, count: int, **how: Any) -> list[Messages]:
    """Batches until `count` messages are there."""
    batches: list[Messages] = []
    while sum(map(len, batches)) < count:
        messages = reader.read(timeout=120, **how)
        assert messages is not None, f"only {sum(map(len, batches))} of {count} messages came"
        batches.append(messages)
    assert sum(map(len, batches)) == count
    return batches


def rows(batches: list[Messages]) -> list[dict[str, Any]]:
    """All columns as rows, by partition and offset."""
    result = [row for batch in batches for row in batch.to_arrow().to_pylist()]
    return sorted(result, key=lambda row: (row["topic"], row["partition"], row["offset"]))


def values(batches: list[Messages]) -> list[bytes | None]:
    return [row["value"] for row in rows(batches)]
