"""Alerts from a Spark query to topics, each exactly once."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, Producer
from confluent_kafka import TopicPartition as Partition

from ...operators.kafka.client_config import client_config, producer_config
from ...operators.kafka.faults import refused
from ...operators.kafka.outgoing_message import Outgoing
from ...operators.kafka.retry import Retry
from ..kafka.cluster import reporting_consumer

_SECONDS = 10.0


class AlertSender:
    """Sends numbered parts of alerts, each in a transaction that notes its number in a consumer group.

    So a part that is sent again after a crash, under the same number, is not sent again. `name` is that of
    the group and of the transactions, and `what` says what is sent, where it isn't alerts. While brokers are
    unreachable it waits, until `stopping` says so.
    """

    def __init__(
        self,
        config: Mapping[str, Any],
        name: str,
        stopping: Callable[[], bool] = lambda: False,
        what: str = "alerts",
    ) -> None:
        self._what = what
        self._config = config
        self._name = name
        self._stopping = stopping
        self._transactions: _Transactions | None = None

    def send(self, messages: list[Outgoing], number: int) -> None:
        """Send a part, unless it was sent before. Raises `Refused` where waiting won't help."""
        waiting = Retry(f"send the {self._what} of batch {number}", self._stopping)
        while True:
            try:
                # A producer that starts ends the transaction that its predecessor left open.
                self._transactions = self._transactions or _Transactions(self._config, self._name)
                self._transactions.send(messages, number)
                waiting.done()
                return
            except KafkaException as error:
                self._transactions = None
                undelivered = refused(
                    error.args[0],
                    f"send {self._what}",
                    topic=messages[0].topic,
                    group=self._name,
                    right="WRITE",
                )
                waiting.failed(undelivered)


class _Transactions:
    """A transactional producer, and the consumer group that remembers which part was sent."""

    def __init__(self, config: Mapping[str, Any], name: str) -> None:
        self._group = reporting_consumer(client_config(config), name)
        settings = {
            "partitioner": "murmur2_random",
            **producer_config(config, 1_000_000),
            "transactional.id": name,
        }
        self._producer = Producer(settings, logger=logging.getLogger("streamgauge.kafka"))
        self._producer.init_transactions(_SECONDS)

    def send(self, messages: list[Outgoing], number: int) -> None:
        """Send the part of a number, unless it was sent before."""
        place = Partition(messages[0].topic, 0)
        (sent,) = self._group.committed([place], timeout=_SECONDS)
        if sent.offset > number:
            return
        faults: list[KafkaError] = []

        def delivered(error: KafkaError | None, _: Message) -> None:
            faults.extend([] if error is None else [error])

        self._producer.begin_transaction()
        for message in messages:
            self._producer.produce(
                message.topic,
                message.value,
                message.key,
                message.partition,
                delivered,
                headers=list(message.headers),
            )
        if self._producer.flush(_SECONDS) or faults:
            raise KafkaException(faults[0] if faults else KafkaError(KafkaError._MSG_TIMED_OUT))
        done = Partition(place.topic, 0, number + 1)
        self._producer.send_offsets_to_transaction([done], self._group.consumer_group_metadata(), _SECONDS)
        self._producer.commit_transaction(_SECONDS)
