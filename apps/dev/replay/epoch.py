"""Send messages with timestamp 0, which librdkafka can't: it interprets 0 as "now"."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ....operators.kafka.raw_settings import raw_settings
from ....sketches.core.errors import StreamgaugeError
from ...recordings.batch import Batch

_ANSWER_SECONDS = 60.0


class Undeliverable(StreamgaugeError, RuntimeError):
    """The broker did not accept some messages."""


class CannotSend(StreamgaugeError, ValueError):
    """No client can send a message unchanged; the error says which and why."""


class EpochProducer:
    """Sends messages with a timestamp of 0, each batch as a whole; `config` are librdkafka's settings.

    It connects with the first of them.
    """

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._config = config
        self._producer: Any = None

    def _connected(self) -> Any:
        if self._producer is None:
            from kafka import KafkaProducer  # slow to import and rarely needed

            settings = raw_settings(self._config)
            known = {name: value for name, value in settings.items() if name in KafkaProducer.DEFAULT_CONFIG}
            known |= {"acks": "all", "enable_idempotence": True, "linger_ms": 5, "max_request_size": 1 << 30}
            self._producer = KafkaProducer(**known)
        return self._producer

    def send(self, topic: str, batch: Batch) -> None:
        """Send messages to their partitions, and return when the broker has them.

        Raises `CannotSend`, and `Undeliverable` if the broker doesn't accept them.
        """
        from kafka.errors import KafkaError

        assert batch.partitions is not None
        named = [None] * len(batch) if batch.named is None else batch.named
        headers = [[]] * len(batch) if batch.headers is None else batch.headers
        rows = zip(batch.values.to_pylist(), named, batch.partitions.tolist(), headers)
        producer, futures = self._connected(), []
        for value, key, partition, own in rows:
            encoded = [(name, text.encode() if isinstance(text, str) else text) for name, text in own]
            if any(text is None for _, text in encoded):
                raise CannotSend(
                    f"a message for {topic}[{partition}] has the timestamp 0 and a header without a value: "
                    "no client library sends both; nothing after it was sent"
                )
            futures.append(
                producer.send(topic, value, key, encoded, partition=int(partition), timestamp_ms=0)
            )
        producer.flush()
        for future in futures:
            try:
                future.get(_ANSWER_SECONDS)
            except KafkaError as error:
                raise Undeliverable(
                    f"messages with the timestamp 0 were not delivered to {topic!r}: {error}"
                ) from None

    def close(self) -> None:
        """Close the connection."""
        if self._producer is not None:
            self._producer.close()
