"""Delivering deltas and dead letters to Kafka with the input's offsets, in the ways that `RunOptions` names.

All deliveries retry while brokers are unreachable or coordinators load, and log that once. They give up only
when they are stopped; a later worker then rereads what was not delivered.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Protocol

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from ...kafka.client_config import LIBRARY_LOG, producer_config
from ...kafka.faults import LOST, refused
from ...kafka.outgoing_message import Outgoing
from ...kafka.produce import Faults, flush, produce, send_offsets, transactional_producer
from ...kafka.retry import Retry
from ...watermarks.position import Input
from ..group.committed import Places
from ..group.membership import Membership, MembershipLost
from ..log.messages import LARGEST

_ANSWER_SECONDS = 10.0
_PAUSE_SECONDS = 0.2
_TRANSACTION_MS = 30_000
"""How long a run killed within a transaction blocks readers. Transactions last milliseconds, but over a
slow line their messages may take seconds; "transaction.timeout.ms" overrides this."""


class Delivery(Protocol):
    """A way of delivering messages and positions."""

    def deliver(self, messages: Sequence[Outgoing], places: Mapping[Input, Places]) -> None:
        """Send messages and commit the input's positions.

        Raises `MembershipLost` if other members have the partitions by now, `Stopped`, and `KafkaException`
        for errors that can't be retried.
        """

    def close(self) -> None:
        """Close the connection."""


class AtLeastOnce:
    """Send dead letters, then deltas, wait until all replicas have them, then commit the input's positions.

    Each commit records the end of the table topic. A successor that finds deltas beyond it knows that they
    were sent but not committed, and continues after them; so the dead letters of a delta's range must be sent
    before it. Effectively once works the same way, under claims (`partition_recovery`).
    """

    def __init__(
        self,
        config: Mapping[str, Any],
        membership: Membership,
        table_topic: str,
        log: Sequence[int],
        stopping: Callable[[], bool],
    ) -> None:
        self._config = producer_config(config, LARGEST)
        self._producer = Producer(self._config, logger=LIBRARY_LOG)
        self._membership = membership
        self._table_topic = table_topic
        self._log = list(log)
        self._stopping = stopping

    def deliver(self, messages: Sequence[Outgoing], places: Mapping[Input, Places]) -> None:
        """See `Delivery`."""
        try:
            self._send([message for message in messages if message.topic != self._table_topic])
            self._send([message for message in messages if message.topic == self._table_topic])
            self._commit(self._known(places))
        except BaseException:
            # Nothing may be sent after a successor has looked for it.
            self.close()
            self._producer = Producer(self._config, logger=LIBRARY_LOG)
            raise

    def claim(self, messages: Sequence[Outgoing], places: Mapping[Input, Places]) -> None:
        """Commit positions under new claims, then announce the claims. Raises as `deliver` does."""
        self._commit(places)
        self._send(messages)

    def _known(self, places: Mapping[Input, Places]) -> dict[Input, Places]:
        """Add the end of the table topic to positions, unless they already say where it must be read from."""
        log = tuple(self._log)
        return {
            where: {name: replace(place, log=place.log or log) for name, place in own.items()}
            for where, own in places.items()
        }

    def _send(self, messages: Sequence[Outgoing]) -> None:
        missing = dict(enumerate(messages))
        waiting = Retry("send deltas", self._stopping)
        while missing:
            faults = Faults(list(missing.values()))
            for at, message in list(missing.items()):
                produce(self._producer, message, self._noting(missing, at, faults))
            while self._producer.flush(0.5):
                waiting.still("not all are acknowledged")
                self._membership.keep_alive()
            if not missing:
                break
            if (cut := faults.mended(list(missing.values()))) is not None:
                missing = dict(zip(missing, cut))
            else:
                waiting.failed(
                    faults.exception(KafkaError(KafkaError._MSG_TIMED_OUT), self._membership.group_id)
                )
        waiting.done()

    def _commit(self, places: Mapping[Input, Places]) -> None:
        waiting = Retry("commit positions", self._stopping)
        while True:
            try:
                self._membership.commit(places)
                waiting.done()
                return
            except KafkaException as error:
                waiting.failed(error)
                self._membership.keep_alive()

    def close(self) -> None:
        """Close the connection."""
        self._producer.purge()
        self._producer.flush(1.0)
        self._producer.close()

    def _noting(
        self, missing: dict[int, Outgoing], at: int, faults: Faults
    ) -> Callable[[KafkaError | None, Message], None]:
        def delivered(error: KafkaError | None, message: Message) -> None:
            if error is not None:
                faults.record(error, message)
                return
            missing.pop(at, None)
            partition, offset = message.partition(), message.offset()
            if message.topic() == self._table_topic and partition is not None and offset is not None:
                self._log[partition] = max(self._log[partition], offset + 1)

        return delivered


class AtMostOnce(AtLeastOnce):
    """Commit the input's positions, then send: a worker that dies in between loses what it holds.

    While it lives it retries; mergers detect a repeated range. Forwarded rows are retried by the library for
    ``delivery.timeout.ms``, which prevents duplicates, and not again after that.
    """

    def deliver(self, messages: Sequence[Outgoing], places: Mapping[Input, Places]) -> None:
        """See `Delivery`."""
        self._commit(self._known(places))
        self._send_rows([message for message in messages if message.is_row])
        self._send([message for message in messages if not message.is_row])

    def _send_rows(self, rows: Sequence[Outgoing]) -> None:
        missing, faults = dict(enumerate(rows)), Faults(rows)
        waiting = Retry("send rows", self._stopping)
        for at, message in enumerate(rows):
            produce(self._producer, message, self._noting(missing, at, faults))
        while self._producer.flush(0.5):
            waiting.still("not all are acknowledged")
            self._membership.keep_alive()
        waiting.done()
        if missing:
            raise faults.exception(KafkaError(KafkaError._MSG_TIMED_OUT), self._membership.group_id)


class Positions(Protocol):
    """The positions up to which the input was counted, stored in a consumer group (`group.membership`)."""

    group_id: str

    def offsets(self, places: Mapping[Input, Any]) -> Any:
        """Positions in the client library's form."""

    def committed(self, places: Mapping[Input, Any], seconds: float) -> Mapping[Input, Mapping[str, Any]]:
        """What is committed of these inputs, by stream. Raises `KafkaException`."""

    def group_metadata(self) -> Any:
        """The identity of the member; brokers refuse transactions of members that lost their membership."""

    def keep_alive(self) -> None:
        """Called while a delivery waits. Raises `MembershipLost`."""


class ExactlyOnce:
    """Messages and the input's positions in one transaction.

    `transactional_id` may have been used by earlier producers, which can't commit any more once this one is
    `ready`; by default it is new. After a commit or an abort with an unknown outcome the producer is
    discarded: a new one with the same transactional id ends the transaction, and the group's committed
    offsets show the outcome.
    """

    def __init__(
        self,
        config: Mapping[str, Any],
        membership: Positions,
        stopping: Callable[[], bool],
        transactional_id: str | None = None,
    ) -> None:
        self._config = {
            **producer_config(config, LARGEST),
            "transactional.id": transactional_id or f"{membership.group_id}-{uuid.uuid4()}",
            "transaction.timeout.ms": config.get("transaction.timeout.ms", _TRANSACTION_MS),
            # With the default, a producer that lost all brokers forgets them, including its group's
            # coordinator, and then waits for that one in send_offsets_to_transaction for ever (librdkafka
            # 2.16).
            "metadata.recovery.strategy": "none",
            "error_cb": self._note_fault,
        }
        self._on_error = config.get("error_cb")
        # So a producer that lost all brokers is discarded: they may return at other addresses.
        self._cut_off = False
        self._commit_seconds = int(self._config["transaction.timeout.ms"]) / 1000
        self._membership = membership
        self._stopping = stopping
        self._producer: Producer | None = None
        self._needed = threading.Event()
        # While a new producer waits for its coordinator, the first messages are read and sketched.
        self._preparing = self._in_background(self._prepare)

    def deliver(self, messages: Sequence[Outgoing], places: Mapping[Input, Places]) -> None:
        """See `Delivery`."""
        self._finish_preparing()
        try:
            self._deliver(messages, places)
        except MembershipLost:
            if self._producer is None:
                # Brokers don't return the committed positions of its partitions before its transaction has
                # ended: a new producer ends it at once, a timeout much later.
                self._preparing = self._in_background(self._end_transaction)
            raise

    def _deliver(self, messages: Sequence[Outgoing], places: Mapping[Input, Places]) -> None:
        waiting = Retry("commit a transaction", self._stopping)
        unsettled = False
        while True:
            faults = Faults(messages)
            try:
                if self._producer is not None:
                    self._producer.poll(0)  # delivers the library's errors and log messages to callbacks
                if self._cut_off:
                    self.close()
                if self._producer is None:
                    self._producer = self._fresh()
                if not (unsettled and self._landed(places)):
                    self._transact(self._producer, messages, places, faults)
                waiting.done()
                return
            except KafkaException as error:
                unsettled = True
                self._clear(error.args[0])
                if error.args[0].code() in LOST:
                    raise MembershipLost(error.args[0].str()) from None
                if (cut := faults.mended(messages)) is not None:
                    messages = cut
                else:
                    waiting.failed(faults.exception(error.args[0], self._membership.group_id))
                self._membership.keep_alive()

    def ready(self) -> None:
        """Wait until the transactions of earlier producers with the same id have ended."""
        self._finish_preparing()
        waiting = Retry("begin transactions", self._stopping)
        while self._producer is None:
            try:
                self._producer = self._fresh()
            except KafkaException as error:
                waiting.failed(refused(error.args[0], "begin transactions", group=self._membership.group_id))
        waiting.done()

    def close(self) -> None:
        """Discard the producer; the next one, or a timeout, aborts a transaction that it left open."""
        self._needed.set()
        if self._producer is not None and not self._preparing.is_alive():
            self._producer.purge()
            self._producer = None

    def _in_background(self, work: Callable[[], None]) -> threading.Thread:
        self._needed.clear()
        thread = threading.Thread(target=work, name="streamgauge-producer", daemon=True)
        thread.start()
        return thread

    def _finish_preparing(self) -> None:
        self._needed.set()
        self._preparing.join()

    def _prepare(self) -> None:
        # The error will recur, and be raised, when there is something to deliver.
        with suppress(KafkaException):
            self._producer = self._fresh()

    def _end_transaction(self) -> None:
        """End the transaction, retrying until it works or another producer has ended it."""
        self._prepare()
        while self._producer is None and not self._needed.wait(_PAUSE_SECONDS):
            self._prepare()

    def _note_fault(self, error: KafkaError) -> None:
        self._cut_off |= error.code() == KafkaError._ALL_BROKERS_DOWN
        if self._on_error is not None:
            self._on_error(error)

    def _fresh(self) -> Producer:
        self._cut_off = False
        return transactional_producer(self._config, _ANSWER_SECONDS)

    def _transact(
        self,
        producer: Producer,
        messages: Sequence[Outgoing],
        places: Mapping[Input, Places],
        faults: Faults,
    ) -> None:
        producer.begin_transaction()
        for message in messages:
            produce(producer, message, faults.record)
        flush(producer, self._commit_seconds, lambda: faults.error is not None or self._cut_off)
        if (error := faults.error) is not None or self._cut_off:
            self.close()
            raise KafkaException(error or KafkaError(KafkaError._ALL_BROKERS_DOWN))
        if places:
            offsets, group = self._membership.offsets(places), self._membership.group_metadata()
            send_offsets(producer, offsets, group, _ANSWER_SECONDS)
        producer.commit_transaction(self._commit_seconds)

    def _clear(self, error: KafkaError) -> None:
        """Abort the transaction, or discard the producer."""
        if self._producer is None:
            return
        if not error.txn_requires_abort():
            self.close()
            return
        try:
            self._producer.abort_transaction(_ANSWER_SECONDS)
        except KafkaException:
            self.close()

    def _landed(self, places: Mapping[Input, Places]) -> bool:
        """Whether the previous transaction was committed after all."""
        committed = self._membership.committed(places, _ANSWER_SECONDS)
        return bool(places) and all(
            name in committed[where] and committed[where][name].position == place.position
            for where, own in places.items()
            for name, place in own.items()
        )
