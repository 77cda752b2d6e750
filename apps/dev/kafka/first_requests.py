"""What a new broker does once: it makes its own topics when the first client needs them.

That takes each of those clients up to a second, as they look again after pauses of half a second.
"""

from __future__ import annotations

from contextlib import suppress

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

_SECONDS = 30.0


def send_first_requests(address: str) -> None:
    """Have a broker make its topics of transactions and of groups. One that does not answer is left alone."""
    client = {"bootstrap.servers": address, "log_level": 0}
    with suppress(KafkaException):
        producer = Producer({**client, "transactional.id": "first"})
        consumer = Consumer({**client, "group.id": "first"})
        # The consumer's request is under way while the producer's is waited for.
        consumer.poll(0.0)
        producer.init_transactions(_SECONDS)
        with suppress(KafkaException):
            consumer.committed([TopicPartition("none", 0)], timeout=_SECONDS)
        consumer.close()
