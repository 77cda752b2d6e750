"""Queries run to their end, and the windows that they wrote."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from confluent_kafka import Consumer, TopicPartition

from streamgauge.operators.table.schema import from_ipc


def read_topic(kafka: Any, topic: str) -> list[pa.Table]:
    """The tables in a topic."""
    reader = Consumer({"bootstrap.servers": kafka.bootstrap_servers, "group.id": "x", "log_level": 0})
    found = []
    for partition in range(2):
        _, end = reader.get_watermark_offsets(TopicPartition(topic, partition), 10)
        reader.assign([TopicPartition(topic, partition, 0)])
        while (message := reader.poll(10)) is not None:
            found.append(from_ipc(message.value()))
            # After the message comes its transaction's marker.
            if message.offset() + 2 >= end:
                break
    reader.close()
    return found
