"""Closed windows that are gone from a group's table topic, from the topic of its closed windows.

A run with the sink `ToTable` writes it; others have none. What the table topic still tells comes from there.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka import TopicPartition as KafkaPartition

from ...sketches.core.protocol import SketchError
from ..consumer.log.faults import DeltaError
from ..consumer.log.parts import Gather
from ..kafka.faults import passing, refused
from ..kafka.topics import Admin
from ..sinks.to_table import windows_topic
from ..table.schema import from_ipc
from .beginning import LogStart, reader

_SECONDS = 10.0


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
    known = client.list_topics(timeout=_SECONDS).topics
    wanted = [p for p in spans if topic in known and p in known[topic].partitions]
    if not wanted:
        return
    consumer = reader(config, group_id)
    try:
        edges = {
            p: consumer.get_watermark_offsets(KafkaPartition(topic, p), timeout=_SECONDS) for p in wanted
        }
        ends = {p: edge[1] for p, edge in edges.items() if edge is not None and edge[0] < edge[1]}
        consumer.assign([KafkaPartition(topic, p, edges[p][0]) for p in ends])
        gathers = {p: Gather() for p in ends}
        deadline = time.monotonic() + _SECONDS
        while ends:
            messages = consumer.consume(500, 0.1)
            if messages:
                deadline = time.monotonic() + _SECONDS
            elif time.monotonic() > deadline:
                raise KafkaException(KafkaError(KafkaError._TIMED_OUT, f"no answer from the topic {topic}"))
            for message in messages:
                partition, offset, error = message.partition(), message.offset(), message.error()
                if partition is None or offset is None:
                    continue
                if error is not None:
                    if error.code() in (KafkaError._PARTITION_EOF, KafkaError._AUTO_OFFSET_RESET):
                        ends.pop(partition, None)
                    elif not passing(error):
                        raise refused(error, "read the topic of closed windows", topic=topic)
                    continue
                if partition not in ends:
                    continue
                _, record = gathers[partition].take(message.value(), message.headers(), offset)
                if record is not None:
                    after, until = spans[partition]
                    try:
                        if after < int(record.headers["end"]) <= until:
                            yield partition, from_ipc(record.value)
                    except (KeyError, ValueError, SketchError) as fault:
                        raise DeltaError(f"{topic}[{partition}] at offset {offset}: {fault}") from None
                if offset + 1 >= ends[partition]:
                    del ends[partition]
    finally:
        consumer.close()
