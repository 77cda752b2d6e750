"""Another Kafka's topics, as they are."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewPartitions

from streamgauge.agents.ingest.batch import IngestError
from streamgauge.agents.ingest.sources import kafka as kafka_source

from ....waiting import until
from ..agents import agent, fresh, messages, values

pytestmark = pytest.mark.kafka


@pytest.mark.slow
def test_a_mirror_has_all_of_each_message_once(kafka: Any, tmp_path: Path) -> None:
    source, mirror = fresh("source"), fresh("mirror")
    kafka.create_topic(source, partitions=2)
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "enable.idempotence": True})

    def send(first: int, count: int) -> None:
        for number in range(first, first + count):
            headers = [("h", b"%d" % number), ("none", None)] if number % 3 == 0 else None
            value = None if number % 5 == 4 else b"value %d" % number
            key = None if number % 7 == 0 else b"key %d" % number
            timestamp = -1 if number % 11 == 0 else 1_700_000_000_000 + number
            producer.produce(source, value, key, number % 2, headers=headers, timestamp=timestamp)
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


def mirrored(kafka: Any, folder: Path, **given: Any) -> tuple[Any, str, Any]:
    """A source topic, its mirror's settings, and a function that sends to the first."""
    source = fresh("source")
    kafka.create_topic(source, partitions=1)

    def send(value: bytes, partition: int = 0) -> None:
        # A new one each time knows all partitions.
        producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "enable.idempotence": True})
        producer.produce(source, value, partition=partition)
        assert producer.flush(120) == 0

    settings = {"type": "kafka", "topics": [source], "bootstrap_servers": kafka.bootstrap_servers, **given}
    return settings, source, send


@pytest.mark.slow
def test_partitions_that_are_added_are_read_from_their_beginning(
    kafka: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafka_source, "_LOOK_SECONDS", 0.1)
    given, source, send = mirrored(kafka, tmp_path, start="latest")
    send(b"before")
    mirror = fresh("mirror")
    running = agent(kafka, tmp_path, given, mirror, once=False)
    thread = threading.Thread(target=running.run)
    thread.start()
    until(lambda: running.health().ready)
    send(b"first")
    until(lambda: running.account.sent == 1)
    client = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    client.create_partitions([NewPartitions(source, 2)])[source].result(60)
    send(b"second", partition=1)
    until(lambda: running.account.sent == 2)
    running.stop()
    thread.join(60)
    client.create_partitions([NewPartitions(source, 3)])[source].result(60)
    send(b"third", partition=2)
    agent(kafka, tmp_path, given, mirror).run()
    assert values(kafka, mirror) == [b"first", b"second", b"third"]


@pytest.mark.slow
def test_the_latest_at_the_first_start_alone(kafka: Any, tmp_path: Path) -> None:
    given, _, send = mirrored(kafka, tmp_path, start="latest")
    mirror = fresh("mirror")
    send(b"before")
    agent(kafka, tmp_path, given, mirror).run()
    send(b"while no agent ran")
    agent(kafka, tmp_path, given, mirror).run()
    assert values(kafka, mirror) == [b"while no agent ran"]


@pytest.mark.slow
def test_a_topic_that_was_created_again_is_refused(kafka: Any, tmp_path: Path) -> None:
    given, source, send = mirrored(kafka, tmp_path)
    mirror = fresh("mirror")
    send(b"one")
    agent(kafka, tmp_path, given, mirror).run()
    client = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    client.delete_topics([source])[source].result(60)
    until(lambda: source not in client.list_topics(timeout=60).topics)
    kafka.create_topic(source, partitions=1)
    for _ in range(3):
        send(b"two")
    with pytest.raises(IngestError, match=f"the topic '{source}' was deleted and recreated"):
        agent(kafka, tmp_path, given, mirror).run()


@pytest.mark.parametrize("topics", [[], "alerts"])
def test_wrong_settings_are_refused(topics: Any) -> None:
    from streamgauge.agents.ingest.sources.kafka import KafkaMirror

    with pytest.raises(ValueError, match="topics must be a list"):
        KafkaMirror(topics=topics, bootstrap_servers="box:9092")
