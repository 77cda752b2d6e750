"""Passing messages to a producer, and handling those that it could not deliver."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from ...sketches.core.errors import StreamgaugeError
from .client_config import LIBRARY_LOG
from .concurrent_calls import ends_within
from .faults import passing, refused
from .outgoing_message import Outgoing, shorter

_TOO_LARGE = {KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.RECORD_LIST_TOO_LARGE}
_GRACE_SECONDS = 1.0
"""How much longer than its timeout a call may take that the library ends by itself."""
CONNECT_SECONDS = 0.1
"""How long to let a new producer connect.

An idempotent producer first requests an id from a broker. If the library has no connection at that moment, it
retries half a second later, and the first message waits as long.
"""


def connected_producer(config: Mapping[str, Any]) -> Producer:
    """A producer that has had time to connect."""
    producer = Producer(dict(config), logger=LIBRARY_LOG)
    time.sleep(CONNECT_SECONDS)
    return producer


def transactional_producer(config: Mapping[str, Any], seconds: float) -> Producer:
    """A producer that has ended its predecessor's transaction. Raises `KafkaException`, after `seconds`.

    A commit waits for the last messages, so by default they are sent at once.
    """
    producer = connected_producer({"linger.ms": 0, **config})
    producer.init_transactions(seconds)
    return producer


def produce(
    producer: Producer, message: Outgoing, delivered: Callable[[KafkaError | None, Message], None]
) -> None:
    """Send a message, as soon as there is room; `delivered` is called with the result."""
    while True:
        try:
            producer.produce(
                message.topic,
                message.value,
                message.key,
                partition=message.partition,
                headers=list(message.headers),
                on_delivery=delivered,
            )
            return
        except BufferError:
            producer.poll(0.1)


def flush(producer: Producer, seconds: float, failed: Callable[[], bool]) -> bool:
    """Wait until all messages are accepted, or `failed()`; returns whether all were accepted in time.

    The library's own `flush`, commit and abort wait for the messages behind a refused one, which it may never
    send, until their full timeout. After a failure the producer must be discarded.
    """
    until = time.monotonic() + seconds
    while len(producer) and not failed() and time.monotonic() < until:
        producer.poll(0.1)
    return not len(producer) and not failed()


class Unanswered(StreamgaugeError, KafkaException):
    """No answer to a request within a transaction: its producer must be discarded, even without an abort."""


def send_offsets(producer: Producer, offsets: list[Any], group: Any, seconds: float) -> None:
    """Add a group's positions to the producer's transaction. Raises `KafkaException`, after `seconds`.

    If the group's coordinator was killed, the library waits until it is back, whatever the timeout
    (librdkafka 2.16, its issues 5456 and 5511). So the call has a thread, which is left behind with
    `Unanswered`. If it continues one day, brokers refuse it, because another producer has its transactional
    id by then.
    """
    send = partial(producer.send_offsets_to_transaction, offsets, group, seconds)
    if not ends_within(seconds + _GRACE_SECONDS, send):
        raise Unanswered(KafkaError(KafkaError._TIMED_OUT))


class Faults:
    """The final errors of the messages in one attempt."""

    def __init__(self, messages: Sequence[Outgoing]) -> None:
        self.error: KafkaError | None = None
        self._topics: Iterable[str] = {message.topic for message in messages}

    def record(self, error: KafkaError | None, message: Message) -> None:
        """Record the outcome of a message, as a producer reports it."""
        if error is not None and not passing(error) and self.error is None:
            self.error, self._topics = error, [message.topic() or ""]

    def mended(self, messages: Sequence[Outgoing]) -> list[Outgoing] | None:
        """Shortened messages to try instead, if they failed for their size and some may be cut; else None."""
        if self.error is None or self.error.code() not in _TOO_LARGE:
            return None
        return shorter(messages)

    def exception(self, error: KafkaError, group: str = "") -> KafkaException:
        """The exception for an attempt that failed with `error`; its messages' errors are more specific."""
        cause = self.error or error
        return refused(cause, "take a message", topic=sorted(self._topics), group=group, right="WRITE")
