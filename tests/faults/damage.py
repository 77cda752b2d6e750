"""A merger's snapshot in the table topic, damaged as the newest one there."""

from __future__ import annotations

from typing import Any

from confluent_kafka import Message, Producer
from confluent_kafka.admin import AdminClient

from .exact import messages


def damage_snapshot(episode: Any) -> None:
    """Write each partition's newest snapshot once more behind all else, cut off or with a flipped bit."""
    servers = episode.kafka.bootstrap_servers
    newest: dict[tuple[str, int], Message] = {}
    for topic in table_topics(servers, episode.options["group_id"]):
        for message in messages(servers, topic):
            if dict(message.headers() or ()).get("kind") == b"state":
                newest[topic, message.partition()] = message
    producer = Producer({"bootstrap.servers": servers, "enable.idempotence": True})
    for message in newest.values():
        value = bytearray(message.value())
        if episode.random.random() < 0.5:
            del value[episode.random.randrange(len(value)) :]
        else:
            value[episode.random.randrange(len(value))] ^= 1 << episode.random.randrange(8)
        producer.produce(
            message.topic(), bytes(value), partition=message.partition(), headers=message.headers()
        )
    assert producer.flush(120) == 0


def table_topics(servers: str, group_id: str) -> list[str]:
    """The table topics of a group, one for each of its streams."""
    known = AdminClient({"bootstrap.servers": servers}).list_topics(timeout=120).topics
    return [topic for topic in known if topic.startswith(f"{group_id}.") and ".table." in topic]
