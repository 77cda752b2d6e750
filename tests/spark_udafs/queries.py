"""Queries run to their end, and the windows that they wrote."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from confluent_kafka import Consumer, KafkaError, TopicPartition

from streamgauge.operators.table.schema import from_ipc

from ..waiting import readable


def read_topic(kafka: Any, topic: str) -> list[pa.Table]:
    """The tables in a topic."""
    readable(kafka.bootstrap_servers, topic)
    settings = {"group.id": "x", "enable.partition.eof": True, "log_level": 0}
    reader = Consumer({**settings, "bootstrap.servers": kafka.bootstrap_servers})
    collected = []
    for partition in range(2):
        reader.assign([TopicPartition(topic, partition, 0)])
        while (message := reader.poll(120)) is not None and message.error() is None:
            collected.append(from_ipc(message.value()))
        assert message is not None and message.error().code() == KafkaError._PARTITION_EOF
    reader.close()
    return collected
