"""What a process knows of its run while other processes merge, from reading the log.

It reads only headers and counts, so it costs little; windows are emitted by the process that merges them.
"""

from __future__ import annotations

import time
from concurrent.futures import Future
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException
from confluent_kafka import TopicPartition as KafkaPartition

from ...kafka.chunked_records import ChunkAssembler
from ...kafka.client_config import LIBRARY_LOG, member_config
from ...kafka.faults import passing
from ...kafka.topics import admin, described_group
from ..log.messages import decode
from ..log.snapshots import Snapshot, is_snapshot
from ..run_plan import Plan
from .merger import Merger

_SECONDS = 2.0


class OtherMergers:
    """Whether other processes have all partitions of the table topic, according to the brokers.

    A member without partitions can't tell by itself: it may not have been assigned its share yet.
    """

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._admin = admin(plan.config)
        self._request: Future[Any] | None = None
        self._due = 0.0

    def have_all(self, own: str | None) -> bool:
        """The latest answer; a new one is requested every two seconds, without waiting.

        `own` is this process's member id.
        """
        if self._request is not None and self._request.done():
            request, self._request = self._request, None
            return request.exception() is None and self._all_assigned(request.result(), own)
        if self._request is None and own and time.monotonic() >= self._due:
            self._due = time.monotonic() + _SECONDS
            self._request = described_group(self._admin, self._plan.merger_group)
        return False

    def _all_assigned(self, group: Any, own: str | None) -> bool:
        assigned = {
            place.partition
            for member in group.members
            if member.member_id != own
            for place in member.assignment.topic_partitions
            if place.topic == self._plan.table_topic
        }
        return assigned == set(range(self._plan.table_partitions))


class LogObserver:
    """Follows the first partition of the table topic; each partition shows the state of the whole run."""

    def __init__(self, plan: Plan, place: Snapshot | None) -> None:
        self.merger = Merger(plan.stream, plan.inputs, plan.options.delivery)
        if place is not None:
            self.merger.restore(place.next_offset, place.state)
        self._gather = ChunkAssembler()
        self.caught_up = False
        """Whether it has read everything that was in the log when it began."""
        own = {"auto.offset.reset": "error", "enable.partition.eof": True}
        settings = {**member_config(plan.config, plan.merger_group), **own}
        self._consumer = Consumer(settings, logger=LIBRARY_LOG)
        start = 0 if place is None else place.next_offset
        self._consumer.assign([KafkaPartition(plan.table_topic, 0, start)])

    def follow(self) -> bool:
        """Fold in new messages; False if the log was trimmed meanwhile and the position must be found again.

        Raises `DeltaError` and `KafkaException` as a merger does.
        """
        for message in self._consumer.consume(500, 0.05):
            error = message.error()
            if error is not None:
                if error.code() == KafkaError._AUTO_OFFSET_RESET:
                    return False
                self.caught_up |= error.code() == KafkaError._PARTITION_EOF
                if not passing(error):
                    raise KafkaException(error)
                continue
            offset = message.offset() or 0
            _, record = self._gather.add(message.value(), message.headers(), offset)
            if record is not None and not is_snapshot(record.headers):
                self.merger.offer(decode(record, rows=False), offset)
        return True

    def close(self) -> None:
        """Close the connection."""
        self._consumer.close()
