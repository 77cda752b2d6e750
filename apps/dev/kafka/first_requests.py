"""Make a new broker create its internal topics, which it does when the first client needs them.

This delays each such client by up to a second, because clients retry after pauses of half a second.
"""

from __future__ import annotations

from contextlib import suppress

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

_SECONDS = 30.0


def send_first_requests(address: str) -> None:
    """Make a broker create its topics for transactions and groups; ignore a broker that doesn't answer."""
    client = {"bootstrap.servers": address, "log_level": 0}
    with suppress(KafkaException):
        producer = Producer({**client, "transactional.id": "first"})
        consumer = Consumer({**client, "group.id": "first"})
        # The consumer's request runs while the producer's is awaited.
        consumer.poll(0.0)
        producer.init_transactions(_SECONDS)
        with suppress(KafkaException):
            consumer.committed([TopicPartition("none", 0)], timeout=_SECONDS)
        consumer.close()
