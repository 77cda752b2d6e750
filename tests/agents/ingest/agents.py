"""Agents on the shared broker, and what a topic holds afterwards."""

from __future__ import annotations

import time
import uuid
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, Message

from streamgauge.agents.ingest.agent import Agent
from streamgauge.agents.ingest.document import FieldLines, plan_of

SECONDS = 120.0


def fresh(prefix: str = "ingest") -> str:
    """A name that no other test has."""
    return f"{prefix}-{uuid.uuid4().hex[:8]}"


def agent(kafka: Any, folder: Path, source: dict[str, Any], topic: str, **options: Any) -> Agent:
    """An agent of one source and one topic; `name` is `topic` unless it is said."""
    once = options.pop("once", True)
    name = options.pop("name", topic)
    channel = options.pop("channel", None)
    sink = {"type": "kafka", "topic": topic, "bootstrap_servers": kafka.bootstrap_servers, **options}
    document: dict[str, Any] = {"sources": {"in": source}, "sinks": {"out": sink}}
    if channel is not None:
        document["channels"] = {"between": channel}
        source["channel"] = "between"
    return Agent(plan_of(document, FieldLines("test"), name, folder), once)


def messages(
    kafka: Any, topic: str, count: int | None = None, isolation: str = "read_committed"
) -> list[Message]:
    """What is committed to a topic, a partition after the other; waits until there are `count`."""
    config = {
        "bootstrap.servers": kafka.bootstrap_servers,
        "group.id": fresh("reader"),
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "isolation.level": isolation,
        "enable.partition.eof": True,
    }
    consumer = Consumer(config)
    partitions = len(consumer.list_topics(topic, 30).topics[topic].partitions)
    result: list[Message] = []
    ended: set[int] = set()
    consumer.subscribe([topic])
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        if len(ended) == partitions and (count is None or len(result) >= count):
            break
        for message in consumer.consume(10_000, 0.2):
            if message.error() is None:
                result.append(message)
            else:
                ended.add(message.partition())
    consumer.close()
    return sorted(result, key=lambda message: (message.partition(), message.offset()))


def values(kafka: Any, topic: str, count: int | None = None) -> list[bytes | None]:
    """The messages' values."""
    return [message.value() for message in messages(kafka, topic, count)]
