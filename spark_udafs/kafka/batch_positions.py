"""Store the number of the last batch that a query has sent, for as long as its checkpoint may exist.

A batch's number is committed with it as an offset of a consumer group, which is quick to fetch. But brokers
forget a group without members after `offsets.retention.minutes`, seven days by default. A query that is
killed between Kafka's commit and Spark's, and restarted after that time, would send its last batch again. So
the same transaction also writes the number to a compacted topic, which is read if the group is forgotten.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Message
from confluent_kafka import TopicPartition as Partition

from ...operators.consumer.log.log_scan import log_ends, read_through
from ...operators.kafka.client_config import client_config
from ...operators.kafka.outgoing_message import Outgoing
from ...operators.kafka.produce import send_offsets
from ...operators.kafka.topics import admin, ensure_topic
from .cluster import reporting_consumer

_SECONDS = 10.0
PREFIX = "streamgauge-sink"
"""The prefix of sinks' consumer groups, transactional ids and position topics."""


def positions_topic(prefix: str) -> str:
    """Return the compacted topic of all sinks with a prefix."""
    return f"{prefix}.batch-positions"


class BatchPositions:
    """A query's progress in writing to a topic, stored under a consumer group.

    `log` is the compacted topic, which is created if missing and which any number of queries may share; None
    stores the number in the group only. Raises `TopicError` if the topic can't be created.
    """

    def __init__(self, config: Mapping[str, Any], topic: str, group: str, log: str | None) -> None:
        self._config = config
        self._topic = topic
        self._log = log
        self._key = f"{group} {topic}".encode()
        self._group = reporting_consumer(client_config(config), group)
        if log is not None:
            ensure_topic(admin(config), log, 1, {"cleanup.policy": "compact"})

    def next_batch(self) -> int:
        """Return the number after the last batch's, or 0. Raises `KafkaException` if no broker answers."""
        (sent,) = self._group.committed([Partition(self._topic, 0)], timeout=_SECONDS)
        if sent.offset >= 0 or self._log is None:
            return max(sent.offset, 0)
        numbers = [0]

        def read(message: Message) -> None:
            if message.key() == self._key:
                numbers.append(int(message.value() or 0))

        ends = log_ends(admin(self._config), self._log, [0])
        read_through(client_config(self._config), self._log, {0: OFFSET_BEGINNING}, ends, read)
        return numbers[-1]

    def messages(self, number: int) -> list[Outgoing]:
        """Return the messages to send in the transaction of the batch with this number."""
        return [] if self._log is None else [Outgoing(self._log, 0, str(number + 1).encode(), (), self._key)]

    def commit(self, producer: Any, number: int) -> None:
        """Add the number to the group's offsets within the producer's transaction."""
        offsets = [Partition(self._topic, 0, number + 1)]
        send_offsets(producer, offsets, self._group.consumer_group_metadata(), _SECONDS)
