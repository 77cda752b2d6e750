"""Another Kafka's topics, as they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from ..agents import agent, fresh, messages

pytestmark = pytest.mark.kafka


def test_a_mirror_has_all_of_each_message_once(kafka: Any, tmp_path: Path) -> None:
    source, mirror = fresh("source"), fresh("mirror")
    kafka.create_topic(source, partitions=2)
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "enable.idempotence": True})

    def send(first: int, count: int) -> None:
        for number in range(first, first + count):
            headers = [("h", b"%d" % number), ("none", None)] if number % 3 == 0 else None
            value = None if number % 5 == 4 else b"value %d" % number
            key = None if number % 7 == 0 else b"key %d" % number
            producer.produce(
                source, value, key, number % 2, headers=headers, timestamp=1_700_000_000_000 + number
            )
        producer.flush()

    given = {"type": "kafka", "topics": [source], "bootstrap_servers": kafka.bootstrap_servers}
    send(0, 50)
    first = agent(kafka, tmp_path, given, mirror, partitions=2)
    first.run()
    send(50, 50)
    second = agent(kafka, tmp_path, given, mirror, partitions=2)
    second.run()
    assert (first.account.sent, second.account.sent) == (50, 50)

    def shown(topic: str) -> list[tuple[Any, ...]]:
        return sorted(
            (one.timestamp(), one.key() or b"", one.value() or b"", one.value() is None, one.headers())
            for one in messages(kafka, topic, 100)
        )

    assert shown(mirror) == shown(source)


@pytest.mark.parametrize("topics", [[], "alerts"])
def test_wrong_settings_are_refused(topics: Any) -> None:
    from streamgauge.agents.ingest.sources.kafka import KafkaMirror

    with pytest.raises(ValueError, match="topics must be a list"):
        KafkaMirror(topics=topics, bootstrap_servers="box:9092")
