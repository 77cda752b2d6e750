"""kafka-python's fetcher, returning record batches as they arrive instead of an object per message.

It provides what would take years to write: leader epochs, fetch sessions, followers, throttling, TLS and
SASL. We use its internal `Fetcher.PartitionRecords`, which it creates for each partition's response and asks
for records, and override the four methods below. The package's minor version is pinned, and a test names
everything that is used.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

from kafka import TopicPartition as KafkaPartition
from kafka.consumer.fetcher import Fetcher
from kafka.errors import KafkaError
from kafka.protocol.consumer import IsolationLevel
from kafka.record import MemoryRecords

from .record_batches import BrokenBatch, RecordBatch, batches
from .record_kernel import aborts
from .source import CORRUPT, TRUNCATED, Fault, LogPosition, TopicPartition

TRANSPORT = -195
"""librdkafka's code for a connection that was lost or could not be established."""
_UNKNOWN_TOPIC = 3
_SAID = "the broker itself says so"
_CUT = "it says that it is longer than the whole that the broker sent"


class Fetched(NamedTuple):
    """One step of a partition: a batch, whole or broken, or only a new offset to continue from. `epoch` is
    the epoch of the leader that wrote it, if known.
    """

    where: TopicPartition
    next: int
    batch: RecordBatch | BrokenBatch | None
    epoch: int = -1


def ended_at(answer: Any) -> LogPosition | None:
    """The end of an epoch, from a response to OffsetForLeaderEpoch; None if the leader doesn't know it."""
    if answer.end_offset < 0 or answer.leader_epoch is None or answer.leader_epoch < 0:
        return None
    return LogPosition(answer.end_offset, answer.leader_epoch)


class RawRecords:
    """A partition's response to one fetch, as `Fetcher` requires it: truthy until `take` has returned all.

    `end` is the offset before which all of it lies, if known; `inside` says whether its first batch may begin
    before the requested offset; `edge` is the offset after its last complete batch.
    """

    def __init__(
        self,
        fetch_offset: int,
        tp: KafkaPartition,
        records: MemoryRecords,
        isolation_level: Any = IsolationLevel.READ_UNCOMMITTED,
        aborted_transactions: Any = None,
        on_drain: Callable[[Any], None] = lambda _: None,
        **_: Any,
    ) -> None:
        self.topic_partition = tp
        self.next_fetch_offset = fetch_offset
        self.leader_epoch = -1
        self.end: int | None = None
        self.inside = True
        self.edge: int | None = None
        self._data = records._buffer
        self.bytes_read = len(self._data)
        self._on_drain = on_drain
        committed = isolation_level == IsolationLevel.READ_COMMITTED
        listed = [(a.first_offset, a.producer_id) for a in aborted_transactions or ()] if committed else []
        self._to_come = deque(sorted(listed))
        self._aborted: set[int] = set()
        self._left = True

    def __bool__(self) -> bool:
        return self._left

    def drain(self) -> None:
        """Release what was not used."""
        if self._left:
            self._left = False
            self._data = b""
            self._on_drain(self)

    def take(self, n: int | None = None) -> list[Fetched]:
        """All of it: batches with visible messages, broken ones, and only the next offsets for all others."""
        where = (self.topic_partition.topic, self.topic_partition.partition)
        # ``auto.offset.reset`` may have moved the position.
        fetched = [Fetched(where, self.next_fetch_offset, None)]
        for batch in batches(self._data, self.next_fetch_offset, self.end, self.inside):
            self.next_fetch_offset = batch.next_offset
            if isinstance(batch, BrokenBatch):
                fetched.append(Fetched(where, batch.next_offset, batch))
                continue
            epoch = batch.leader_epoch
            fetched.append(Fetched(where, batch.next_offset, batch if self._visible(batch) else None, epoch))
            self.leader_epoch, self.edge = epoch, batch.next_offset
        self.drain()
        return fetched

    def _visible(self, batch: RecordBatch) -> bool:
        while self._to_come and self._to_come[0][0] < batch.next_offset:
            self._aborted.add(self._to_come.popleft()[1])
        if batch.control:
            if aborts(batch):
                self._aborted.discard(batch.producer_id)
            return False
        return batch.count > 0 and not (batch.transactional and batch.producer_id in self._aborted)


class Damaged(RawRecords):
    """A response without a batch, although there should be one: nothing shows where the next one begins."""

    def __init__(self, fetch_offset: int, tp: KafkaPartition, data: bytes, why: str) -> None:
        super().__init__(fetch_offset, tp, MemoryRecords(data))
        self._broken = BrokenBatch(fetch_offset, fetch_offset, why, data)

    def take(self, n: int | None = None) -> list[Fetched]:
        """The broken part, without a position to continue from."""
        self.drain()
        where = (self.topic_partition.topic, self.topic_partition.partition)
        return [Fetched(where, self.next_fetch_offset, self._broken)]


class RawFetcher(Fetcher):
    """A `Fetcher` of `RawRecords` that also records the ends of partitions and errors."""

    PartitionRecords = RawRecords

    def __init__(self, *args: Any, **config: Any) -> None:
        super().__init__(*args, **config)
        self.ends: dict[TopicPartition, int] = {}
        self.faults: deque[Fault] = deque()
        self._before: dict[TopicPartition, RawRecords] = {}
        self.answers = 0

    def _parse_fetched_data(self, completed_fetch: Any) -> Any:
        place = completed_fetch.topic_partition
        where = (place.topic, place.partition)
        data = completed_fetch.partition_data
        if data.error_code == 0:
            committed = self._isolation_level == IsolationLevel.READ_COMMITTED
            stable = data.last_stable_offset if committed else -1
            self.ends[where] = stable if stable >= 0 else data.high_watermark
        elif data.error_code == _UNKNOWN_TOPIC:
            self.faults.append(Fault(_UNKNOWN_TOPIC, "the broker does not know this partition", where))
        try:
            records = super()._parse_fetched_data(completed_fetch)
        except KafkaError:
            if data.error_code not in (0, CORRUPT):
                raise
            why = _SAID if data.error_code else _CUT
            records = Damaged(completed_fetch.fetched_offset, place, data.records or b"", why)
        if records is not None:
            before = self._before.get(where)
            records.end = self.ends.get(where)
            records.inside = before is None or before.edge != completed_fetch.fetched_offset
            # A response without a complete batch doesn't change which epoch the position belongs to.
            records.leader_epoch = self._subscriptions.assignment[place].position.leader_epoch
            self._before[where] = records
        return records

    def _handle_offset_for_leader_epoch_response(self, response: Any, positions: Any) -> Any:
        """Record truncated logs; their partitions are not fetched until a seek.

        By default it would continue from another offset, or from there, and only log it.
        """
        for topic in response.topics:
            for partition in list(topic.partitions):
                place = KafkaPartition(topic.topic, partition.partition)
                known = positions.get(place)
                if partition.error_code or known is None or not self._is_at(place, known):
                    continue
                end = ended_at(partition)
                if end is None or end.offset < known.offset:
                    topic.partitions.remove(partition)
                    where = (place.topic, place.partition)
                    self.faults.append(Fault(TRUNCATED, "its log was truncated", where, end=end))
        return super()._handle_offset_for_leader_epoch_response(response, positions)

    def _is_at(self, place: KafkaPartition, position: Any) -> bool:
        assigned = self._subscriptions
        return assigned.is_assigned(place) and assigned.assignment[place].position == position

    def _handle_fetch_response(self, *args: Any) -> None:
        self.answers += 1
        super()._handle_fetch_response(*args)

    def _handle_fetch_error(self, node_id: Any, exception: BaseException) -> None:
        self.faults.append(Fault(getattr(exception, "errno", None) or TRANSPORT, str(exception)))
        super()._handle_fetch_error(node_id, exception)
