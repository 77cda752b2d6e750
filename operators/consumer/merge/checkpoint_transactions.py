"""The merger's checkpoint and the messages of its windows in one transaction.

Each partition of the table topic has its own transactional id. A merger that takes over the partition ends
its predecessor's open transaction before it reads the checkpoint, so a window is either both sent and covered
by the checkpoint, or neither.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import NamedTuple

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer
from confluent_kafka import TopicPartition as KafkaPartition

from ...kafka.client_config import producer_config
from ...kafka.faults import passing, refused
from ...kafka.outgoing_message import Outgoing
from ...kafka.produce import Unanswered, flush, produce, send_offsets, transactional_producer
from ...sinks.sink import SinkError
from ..log.messages import LARGEST
from ..run_plan import Plan
from .outbox import Outbox

_ANSWER_SECONDS = 10.0
_TRANSACTION_MS = 60_000
"""Sending a window of a million groups takes seconds; a dead merger's transaction is ended by its
successor at once. "transaction.timeout.ms" overrides this."""


class _Attempt(NamedTuple):
    """The content of a transaction of unknown outcome: the snapshot's offset and the number of windows."""

    snapshot: int
    windows: int


class CheckpointTransactions:
    """A transactional producer for each partition of the table topic that this process merges."""

    def __init__(self, plan: Plan, outbox: Outbox) -> None:
        self._plan = plan
        self._outbox = outbox
        self._config = {
            # The partitioner of Java's clients, so that others can join the topic by its keys.
            "partitioner": "murmur2_random",
            **producer_config(plan.config, LARGEST),
            "transaction.timeout.ms": plan.config.get("transaction.timeout.ms", _TRANSACTION_MS),
            "metadata.recovery.strategy": "none",  # as in `worker.delivery.ExactlyOnce`
        }
        self._seconds = int(self._config["transaction.timeout.ms"]) / 1000
        self._on_error = plan.config.get("error_cb")
        self._producers: dict[int, Producer] = {}
        # For a producer that lost all brokers; they may return at other addresses.
        self._cut_off: set[int] = set()
        self._unsure: dict[int, _Attempt] = {}

    def end_open_transaction(self, partition: int) -> None:
        """End a transaction that a predecessor left open in this partition. Raises `KafkaException`."""
        if partition in self._producers:
            self._producers[partition].poll(0)  # delivers the library's errors to callbacks
        if partition in self._cut_off:
            self._discard(partition)
        if partition not in self._producers:
            transactional_id = f"{self._plan.merger_group}-{partition}"
            faults = {"error_cb": partial(self._note_fault, partition)}
            config = {**self._config, "transactional.id": transactional_id, **faults}
            self._producers[partition] = transactional_producer(config, _ANSWER_SECONDS)

    def send(self, consumer: Consumer, partition: int, resume: int, snapshot: Iterable[Outgoing]) -> int:
        """Send a partition's waiting windows, its snapshot and its position; returns the snapshot's offset.

        Raises `KafkaException` if it must be retried, and `SinkError` for windows that can't be sent.
        """
        self.end_open_transaction(partition)
        self._resolve_unsure(consumer, partition)
        producer, windows = self._producers[partition], self._outbox.waiting(partition)
        noted: list[int] = []
        try:
            producer.begin_transaction()
            faults = _Faults()
            for message, of_what in self._outbox.messages(windows):
                faults.produce(producer, message, of_what)
            for message in snapshot:
                produce(producer, message, _snapshot_callback(noted, faults))
            if not flush(producer, self._seconds, lambda: faults.any() or partition in self._cut_off):
                self._discard(partition)
                faults.raise_first()
                raise KafkaException(KafkaError(KafkaError._MSG_TIMED_OUT))
            at = min(noted)
            place = KafkaPartition(self._plan.table_topic, partition, resume, str(at))
            group = consumer.consumer_group_metadata()
            send_offsets(producer, [place], group, _ANSWER_SECONDS)
            self._unsure[partition] = _Attempt(at, len(windows))
            producer.commit_transaction(self._seconds)
        except BaseException as error:
            self._clear(partition, error)
            raise
        del self._unsure[partition]
        self._outbox.mark_sent(partition, len(windows))
        return at

    def forget(self, partitions: Iterable[int]) -> None:
        """Close the producers of partitions that other members have now."""
        for partition in partitions:
            self._discard(partition)
            self._unsure.pop(partition, None)

    def close(self) -> None:
        """Close the connections."""
        self.forget(list(self._producers))

    def _resolve_unsure(self, consumer: Consumer, partition: int) -> None:
        """Find out whether the last transaction was committed; a new producer has ended it by now."""
        if (attempt := self._unsure.get(partition)) is None:
            return
        partitions = [KafkaPartition(self._plan.table_topic, partition)]
        (committed,) = consumer.committed(partitions, timeout=_ANSWER_SECONDS)
        if committed.metadata == str(attempt.snapshot):
            self._outbox.mark_sent(partition, attempt.windows)
        del self._unsure[partition]

    def _clear(self, partition: int, error: BaseException) -> None:
        """Abort the transaction, or drop the producer."""
        kafka_error = error.args[0] if isinstance(error, KafkaException) else None
        unsure = partition in self._unsure and (kafka_error is None or not kafka_error.txn_requires_abort())
        if unsure or isinstance(error, Unanswered):
            self._discard(partition)
            return
        self._unsure.pop(partition, None)
        if partition not in self._producers:
            return
        try:
            self._producers[partition].abort_transaction(_ANSWER_SECONDS)
        except KafkaException:
            self._discard(partition)

    def _note_fault(self, partition: int, error: KafkaError) -> None:
        if error.code() == KafkaError._ALL_BROKERS_DOWN:
            self._cut_off.add(partition)
        if self._on_error is not None:
            self._on_error(error)

    def _discard(self, partition: int) -> None:
        self._cut_off.discard(partition)
        if (producer := self._producers.pop(partition, None)) is not None:
            producer.purge()


class _Faults:
    """Records the first message that can't be delivered."""

    def __init__(self) -> None:
        self._first: tuple[KafkaError, str, Callable[[], str] | None] | None = None

    def produce(self, producer: Producer, message: Outgoing, of_what: Callable[[], str]) -> None:
        """Send a window's message; `of_what` describes the window. Raises the error of an earlier message."""
        try:
            produce(producer, message, self.delivery_callback(of_what))
        except KafkaException as error:
            self._record(error.args[0], message.topic, of_what)
        self.raise_first()

    def delivery_callback(
        self, of_what: Callable[[], str] | None = None
    ) -> Callable[[KafkaError | None, Message], None]:
        """The delivery callback for a message."""

        def delivered(error: KafkaError | None, message: Message) -> None:
            if error is not None:
                self._record(error, message.topic() or "", of_what)

        return delivered

    def any(self) -> bool:
        """Whether an error was recorded."""
        return self._first is not None

    def raise_first(self) -> None:
        """Raise the recorded error, if any."""
        if self._first is None:
            return
        error, topic, of_what = self._first
        refusal = refused(error, "take a message", topic=topic, right="WRITE")
        if passing(error) or of_what is None:
            raise refusal
        raise SinkError(f"{of_what()} can't be sent: {refusal}; the next run of the group delivers it again")

    def _record(self, error: KafkaError, topic: str, of_what: Callable[[], str] | None) -> None:
        if self._first is None or passing(self._first[0]):
            self._first = error, topic, of_what


def _snapshot_callback(offsets: list[int], faults: _Faults) -> Callable[[KafkaError | None, Message], None]:
    failed = faults.delivery_callback()

    def delivered(error: KafkaError | None, message: Message) -> None:
        failed(error, message)
        if error is None and (offset := message.offset()) is not None:
            offsets.append(offset)

    return delivered
