"""kafka-python's fetcher, handing over record batches as they came instead of an object a message.

It keeps what a client needs years for: leader epochs, fetch sessions, followers, throttling, TLS and SASL.
Of its inside we use `Fetcher.PartitionRecords`, which it makes of each partition's answer and asks for
records, and the three methods overridden below. The package's minor version is pinned, and the tests hold it
to them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

from kafka import TopicPartition as KafkaPartition
from kafka.consumer.fetcher import Fetcher
from kafka.protocol.consumer import IsolationLevel
from kafka.record import MemoryRecords

from .record_batches import CorruptBatch, RecordBatch, batches
from .source import Fault, TopicPartition

TRANSPORT = -195
"""librdkafka's number for a connection that was lost or could not be made."""
_UNKNOWN_TOPIC = 3


class Fetched(NamedTuple):
    """One step of a partition: a batch of messages, or nothing but a new place to go on from."""

    where: TopicPartition
    next: int
    batch: RecordBatch | CorruptBatch | None


class RawRecords:
    """A partition's answer to one fetch, as `Fetcher` wants it: truthy until `take` has given all."""

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
        """Let go of what was not taken."""
        if self._left:
            self._left = False
            self._data = b""
            self._on_drain(self)

    def take(self, n: int | None = None) -> list[Fetched]:
        """All of it: batches that hold messages one may see, and the places after all others."""
        where = (self.topic_partition.topic, self.topic_partition.partition)
        # Reading may have been sent elsewhere by ``auto.offset.reset``.
        found = [Fetched(where, self.next_fetch_offset, None)]
        try:
            for batch in batches(self._data, self.next_fetch_offset):
                found.append(Fetched(where, batch.next_offset, batch if self._visible(batch) else None))
                self.next_fetch_offset, self.leader_epoch = batch.next_offset, batch.leader_epoch
        except CorruptBatch as error:
            found.append(Fetched(where, self.next_fetch_offset, error))
        self.drain()
        return found

    def _visible(self, batch: RecordBatch) -> bool:
        while self._to_come and self._to_come[0][0] < batch.next_offset:
            self._aborted.add(self._to_come.popleft()[1])
        if batch.control:
            if batch.aborts():
                self._aborted.discard(batch.producer_id)
            return False
        return batch.count > 0 and not (batch.transactional and batch.producer_id in self._aborted)


class RawFetcher(Fetcher):
    """A `Fetcher` of `RawRecords` that also remembers where partitions end and what went wrong."""

    PartitionRecords = RawRecords

    def __init__(self, *args: Any, **config: Any) -> None:
        super().__init__(*args, **config)
        self.ends: dict[TopicPartition, int] = {}
        self.faults: deque[Fault] = deque()
        self.answers = 0

    def _parse_fetched_data(self, completed_fetch: Any) -> Any:
        where = (completed_fetch.topic_partition.topic, completed_fetch.topic_partition.partition)
        data = completed_fetch.partition_data
        if data.error_code == 0:
            committed = self._isolation_level == IsolationLevel.READ_COMMITTED
            stable = data.last_stable_offset if committed else -1
            self.ends[where] = stable if stable >= 0 else data.high_watermark
        elif data.error_code == _UNKNOWN_TOPIC:
            self.faults.append(Fault(_UNKNOWN_TOPIC, "the broker does not know this partition", where))
        return super()._parse_fetched_data(completed_fetch)

    def _handle_fetch_response(self, *args: Any) -> None:
        self.answers += 1
        super()._handle_fetch_response(*args)

    def _handle_fetch_error(self, node_id: Any, exception: BaseException) -> None:
        self.faults.append(Fault(getattr(exception, "errno", None) or TRANSPORT, str(exception)))
        super()._handle_fetch_error(node_id, exception)
