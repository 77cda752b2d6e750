"""Messages handed to a producer, and what became of those that it could not deliver."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from .faults import passing, refused
from .outgoing import Outgoing, shorter

_TOO_LARGE = {KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.RECORD_LIST_TOO_LARGE}


def produce(
    producer: Producer, message: Outgoing, delivered: Callable[[KafkaError | None, Message], None]
) -> None:
    """Hand a message over, as soon as there is room; `delivered` is told what became of it."""
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


class Faults:
    """What the messages of one attempt failed with, so far as waiting won't mend it."""

    def __init__(self, messages: Sequence[Outgoing]) -> None:
        self.error: KafkaError | None = None
        self._topics: Iterable[str] = {message.topic for message in messages}

    def note(self, error: KafkaError | None, message: Message) -> None:
        """The outcome of a message, as a producer reports it."""
        if error is not None and not passing(error) and self.error is None:
            self.error, self._topics = error, [message.topic() or ""]

    def mended(self, messages: Sequence[Outgoing]) -> list[Outgoing] | None:
        """The messages to try instead, if they failed for their size and some may be cut; else None."""
        if self.error is None or self.error.code() not in _TOO_LARGE:
            return None
        return shorter(messages)

    def told(self, error: KafkaError, group: str = "") -> KafkaException:
        """What to raise where an attempt failed with `error`: what its messages failed with says more."""
        told = self.error or error
        return refused(told, "take a message", topic=sorted(self._topics), group=group, right="WRITE")
