"""Send a micro-batch's messages to Kafka once: in one transaction with the batch's number."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Producer

from ...operators.consumer.log.messages import LARGEST
from ...operators.kafka.client_config import producer_config
from ...operators.kafka.faults import Refused
from ...operators.kafka.outgoing_message import Outgoing
from ...operators.kafka.produce import Faults, flush, produce
from ...operators.kafka.retry import Retry
from ...sketches.core.errors import RunError
from .batch_positions import PREFIX, BatchPositions, positions_topic

_SECONDS = 10.0
_TRANSACTION_MS = 60_000
"""The time limit for sending a batch; "transaction.timeout.ms" overrides it."""


class BatchSender:
    """Sends the batches of one query to a topic, or to several topics represented by one of them.

    The number of the last batch is committed with the batch (`BatchPositions`), in the consumer group
    ``<prefix>-<query>``. The transactional id is ``<group>-<topic>``, so that a query's sinks for different
    topics don't fence each other. With `lasting`, the number also outlives the group, in the topic
    ``<prefix>.batch-positions``; a job that isn't repeated doesn't need this.
    """

    def __init__(
        self, config: Mapping[str, Any], topic: str, query: str, prefix: str = PREFIX, lasting: bool = True
    ) -> None:
        self._config = config
        self._topic = topic
        self._group = f"{prefix}-{query}"
        self._log = positions_topic(prefix) if lasting else None
        self._transactions: _Transactions | None = None

    def send(self, messages: Iterable[Outgoing], number: int) -> None:
        """Send a batch, unless it was sent before; wait for unreachable brokers.

        Raises `RunError` if Kafka refuses, with the missing permission.
        """
        messages = list(messages)
        waiting = Retry(f"write batch {number} to {self._topic}", lambda: False)
        while True:
            faults = Faults(messages)
            try:
                # A starting producer ends the transaction that its predecessor left open.
                if self._transactions is None:
                    self._transactions = _Transactions(self._config, self._topic, self._group, self._log)
                self._transactions.send(messages, number, faults)
                waiting.done()
                return
            except KafkaException as error:
                self._transactions = None
                undelivered = faults.exception(error.args[0], self._group)
                if isinstance(undelivered, Refused):
                    raise RunError(f"{undelivered}; the sink's names begin with its prefix") from None
                waiting.failed(error)


class _Transactions:
    """A transactional producer with the record of which batch was sent last."""

    def __init__(self, config: Mapping[str, Any], topic: str, group: str, log: str | None) -> None:
        limit_ms = int(config.get("transaction.timeout.ms", _TRANSACTION_MS))
        self._batch_seconds = limit_ms / 1000
        settings = {
            **producer_config(config, LARGEST + 4096),
            "transactional.id": f"{group}-{topic}",
            "transaction.timeout.ms": limit_ms,
        }
        self._producer = Producer(settings, logger=logging.getLogger("streamgauge.kafka"))
        self._producer.init_transactions(_SECONDS)
        self._positions = BatchPositions(config, topic, group, log)

    def send(self, messages: Iterable[Outgoing], number: int, faults: Faults) -> None:
        """Send a batch, unless it was sent before. Raises `KafkaException` if it wasn't delivered."""
        if self._positions.next_batch() > number:
            return
        self._producer.begin_transaction()
        for message in (*messages, *self._positions.messages(number)):
            produce(self._producer, message, faults.record)
        if not flush(self._producer, self._batch_seconds, lambda: faults.error is not None):
            raise KafkaException(faults.error or KafkaError(KafkaError._TIMED_OUT))
        self._positions.commit(self._producer, number)
        self._producer.commit_transaction(self._batch_seconds)
