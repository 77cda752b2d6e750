"""Reading closed windows that were deleted from a group's table topic, from the topic of its closed windows.

A run with the sink `SketchesToKafka` writes that topic; other runs have none. Windows still in the table
topic are read from there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
from confluent_kafka import TopicPartition as KafkaPartition

from ...operators.kafka.chunked_records import ChunkAssembler
from ...operators.kafka.log_faults import DeltaError
from ...operators.kafka.topics import Admin
from ...operators.sinks.sketches_to_kafka import windows_topic
from ...operators.table.schema import from_ipc
from ...sketches.core.protocol import SketchError
from .log_start import LogStart
from .topic_reading import ANSWER_SECONDS, reader, whole


def closed_windows(
    client: Admin,
    config: Mapping[str, Any],
    group_id: str,
    start: LogStart,
    spans: Mapping[int, tuple[int, int]],
) -> Iterator[tuple[int, pa.Table]]:
    """The tables of windows that end within a span (after, up to), by partition of the table topic.

    Later ones replace earlier ones of the same window. Raises `KafkaException` if brokers don't answer or
    refuse, `DeltaError` for damaged messages.
    """
    topic = windows_topic(group_id, start.stream.fingerprint())
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
        gathers = {p: ChunkAssembler() for p in read}
        for partition, offset, message in whole(consumer, topic, read, "read the topic of closed windows"):
            if offset >= read[partition][1]:
                continue
            _, record = gathers[partition].add(message.value(), message.headers(), offset)
            if record is not None:
                after, until = spans[partition]
                try:
                    if after < int(record.headers["end"]) <= until:
                        yield partition, from_ipc(record.value)
                except (KeyError, ValueError, SketchError) as fault:
                    raise DeltaError(f"{topic}[{partition}] at offset {offset}: {fault}") from None
    finally:
        consumer.close()
