"""What a dead predecessor had sent to the table topic and not yet committed.

At least once, deltas are acknowledged before the input's offsets are committed. Between the two a worker may
die: its successor finds these deltas here and goes on after them, so that nothing counts twice. With several
table partitions a delta may have reached only some of them; then the successor reads it again from where the
shortest chain ends, and cuts its own deltas exactly where the longer ones end, so that those who have a range
leave it out and the others take it.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from ..delta import Delta
from ..lateness import PartitionTime
from .clients import LIBRARY_LOG, member_config
from .delta_log import decode
from .faults import passing
from .membership import Committed

_SECONDS = 10.0


@dataclass(slots=True)
class Ends:
    """Where an input partition goes on, and the offsets at which its deltas must be cut."""

    place: Committed
    cuts: list[int] = field(default_factory=list)


def read_tail(
    config: Mapping[str, Any], topic: str, starts: Mapping[int, int]
) -> tuple[dict[int, list[Delta]], dict[int, int]]:
    """All deltas of the table topic from an offset of each partition on, and the offsets after the last.

    Raises `KafkaException` if the brokers don't answer, `DeltaError` for a damaged delta.
    """
    settings = {**member_config(config, "streamgauge.tail"), "enable.partition.eof": True}
    consumer = Consumer(settings, logger=LIBRARY_LOG)
    try:
        found: dict[int, list[Delta]] = {partition: [] for partition in starts}
        ends: dict[int, int] = {}
        consumer.assign([TopicPartition(topic, partition, start) for partition, start in starts.items()])
        deadline = time.monotonic() + _SECONDS
        while len(ends) < len(starts):
            messages = consumer.consume(500, 0.1)
            if messages:
                deadline = time.monotonic() + _SECONDS
            elif time.monotonic() > deadline:
                raise KafkaException(KafkaError(KafkaError._TIMED_OUT, f"no answer from the topic {topic}"))
            for message in messages:
                partition, error = message.partition(), message.error()
                if error is None and partition is not None:
                    found[partition].append(decode(message.value(), message.headers()))
                elif (
                    error is not None and error.code() == KafkaError._PARTITION_EOF and partition is not None
                ):
                    ends[partition] = message.offset() or 0
                elif error is not None and not passing(error):
                    raise KafkaException(error)
        return found, ends
    finally:
        consumer.close()


def follow(place: Committed, partition: int, logs: Mapping[int, list[Delta]]) -> Ends:
    """Where an input partition's chains in all table partitions end, from its committed place on.

    >>> follow(Committed(7), 0, {0: []})
    Ends(place=Committed(offset=7, time=PartitionTime(seen_us=-4611686018427387904, \
idle_us=-4611686018427387904), log=(), fingerprint=''), cuts=[])
    """
    times: dict[int, PartitionTime] = {place.offset: place.time}
    reached = []
    for deltas in logs.values():
        end = place.offset
        for delta in deltas:
            if delta.partition == partition and delta.first <= end < delta.next:
                end = delta.next
                times[end] = delta.time
            elif delta.partition == partition and delta.first == end == delta.next:
                times[end] = delta.time
        reached.append(end)
    start = min(reached)
    return Ends(
        replace(place, offset=start, time=times[start]), sorted({end for end in reached if end > start})
    )
