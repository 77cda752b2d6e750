"""Send alerts from a Spark query to topics, each exactly once."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from ...operators.kafka.client_config import producer_config
from ...operators.kafka.faults import refused
from ...operators.kafka.outgoing_message import Outgoing
from ...operators.kafka.retry import Retry
from ..kafka.batch_positions import PREFIX, BatchPositions, positions_topic

_SECONDS = 10.0


class AlertSender:
    """Sends numbered parts of alerts, each in a transaction that also commits its number (`BatchPositions`).

    A part that is repeated after a crash, under the same number, is therefore not sent again. `name` names
    the consumer group and the transactions, and `what` names what is sent if it isn't alerts. While brokers
    are unreachable, the sender waits until `stopping` is set.
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
        """Send a part, unless it was sent before. Raises `Refused` if waiting won't help."""
        waiting = Retry(f"send the {self._what} of batch {number}", self._stopping)
        while True:
            try:
                # A starting producer ends the transaction that its predecessor left open.
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
    """A transactional producer with the record of which part was sent last."""

    def __init__(self, config: Mapping[str, Any], name: str) -> None:
        self._config = config
        self._name = name
        self._positions: dict[str, BatchPositions] = {}
        settings = {
            "partitioner": "murmur2_random",
            **producer_config(config, 1_000_000),
            "transactional.id": name,
        }
        self._producer = Producer(settings, logger=logging.getLogger("streamgauge.kafka"))
        self._producer.init_transactions(_SECONDS)

    def send(self, messages: list[Outgoing], number: int) -> None:
        """Send the part with this number, unless it was sent before."""
        topic = messages[0].topic
        if topic not in self._positions:
            self._positions[topic] = BatchPositions(self._config, topic, self._name, positions_topic(PREFIX))
        positions = self._positions[topic]
        if positions.next_batch() > number:
            return
        faults: list[KafkaError] = []

        def delivered(error: KafkaError | None, _: Message) -> None:
            faults.extend([] if error is None else [error])

        self._producer.begin_transaction()
        for message in (*messages, *positions.messages(number)):
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
        positions.commit(self._producer, number)
        self._producer.commit_transaction(_SECONDS)
