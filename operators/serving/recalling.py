"""Closed windows that are gone from a group's table topic, from the topic of its closed windows.

A run with the sink `ToTable` writes it; others have none. What the table topic still tells comes from there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
from confluent_kafka import TopicPartition as KafkaPartition

from ...sketches.core.protocol import SketchError
from ..consumer.log.faults import DeltaError
from ..consumer.log.parts import Gather
from ..kafka.topics import Admin
from ..sinks.to_table import windows_topic
from ..table.schema import from_ipc
from .beginning import LogStart
from .reading import ANSWER_SECONDS, reader, whole


def recalled(
    client: Admin,
    config: Mapping[str, Any],
    group_id: str,
    found: LogStart,
    spans: Mapping[int, tuple[int, int]],
) -> Iterator[tuple[int, pa.Table]]:
    """The tables of windows that end within a span (after, up to), by partition of the table topic.

    Those that come later replace earlier ones of the same window. Raises `KafkaException` if brokers don't
    answer or refuse, `DeltaError` for damaged messages.
    """
    topic = windows_topic(group_id, found.stream.fingerprint())
    known = client.list_topics(timeout=ANSWER_SECONDS).topics
    wanted = [p for p in spans if topic in known and p in known[topic].partitions]
    if not wanted:
        return
    consumer = reader(config, group_id)
    try:
        edges = {
            p: consumer.get_watermark_offsets(KafkaPartition(topic, p), timeout=ANSWER_SECONDS)
            for p in wanted
        }
        read = {p: edge for p, edge in edges.items() if edge is not None}
        gathers = {p: Gather() for p in read}
        for partition, offset, message in whole(consumer, topic, read, "read the topic of closed windows"):
            if offset >= read[partition][1]:
                continue
            _, record = gathers[partition].take(message.value(), message.headers(), offset)
            if record is not None:
                after, until = spans[partition]
                try:
                    if after < int(record.headers["end"]) <= until:
                        yield partition, from_ipc(record.value)
                except (KeyError, ValueError, SketchError) as fault:
                    raise DeltaError(f"{topic}[{partition}] at offset {offset}: {fault}") from None
    finally:
        consumer.close()
