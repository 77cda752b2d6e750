"""What lies in a topic, partition by partition."""

from __future__ import annotations

from typing import Any

from confluent_kafka import Consumer, TopicPartition


def read(servers: str, topic: str, partitions: int) -> list[list[Any]]:
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "reader", "enable.auto.commit": False})
    collected = []
    for partition in range(partitions):
        _, high = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=120)
        consumer.assign([TopicPartition(topic, partition, 0)])
        messages: list[Any] = []
        while len(messages) < high:
            messages += consumer.consume(10_000, timeout=1)
        collected.append(messages)
    consumer.close()
    return collected
