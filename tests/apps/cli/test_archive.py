"""A topic that is archived and replayed is the same topic again."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from typer.testing import CliRunner

from streamgauge.apps.cli.commands import app

pytestmark = pytest.mark.kafka


def messages_of(servers: str, topic: str, partition: int, count: int) -> list[Any]:
    """The first messages of a partition: key, value, headers, timestamp."""
    consumer = Consumer({"bootstrap.servers": servers, "group.id": uuid.uuid4().hex})
    consumer.assign([TopicPartition(topic, partition, 0)])
    read: list[Any] = []
    while len(read) < count:
        for message in consumer.consume(count - len(read), 5):
            assert message.error() is None
            read.append((message.key(), message.value(), message.headers(), message.timestamp()))
    consumer.close()
    return read


def invoke(*arguments: str) -> dict[str, Any]:
    result = CliRunner().invoke(app, list(arguments))
    assert result.exit_code == 0, result.output + str(result.exception)
    return json.loads(result.stdout.splitlines()[-1])


def test_an_archive_is_replayed_to_an_equal_topic(kafka: Any, tmp_path: Path) -> None:
    topic, copy = f"posts-{uuid.uuid4().hex[:8]}", f"copy-{uuid.uuid4().hex[:8]}"
    servers = kafka.bootstrap_servers
    kafka.create_topic(topic, 3)
    producer = Producer({"bootstrap.servers": servers})
    counts = [0, 0, 0]
    for number in range(500):
        partition = number * 7 % 3
        counts[partition] += 1
        producer.produce(
            topic,
            None if number % 50 == 1 else b"\xff%d" % number,
            b"" if number % 5 == 0 else b"k%d" % number,
            partition,
            timestamp=1_767_225_600_000 + (number if number % 9 else 3),
            headers=[("n", b"%d" % number), ("n", None)] if number % 2 else None,
        )
    assert producer.flush(120) == 0
    to = str(tmp_path / "archive")
    archived = invoke(
        "archive", topic, "--to", to, "--once", "--json", "--bootstrap-servers", servers, "--size", "300B"
    )
    assert archived["messages"] == 500 and archived["files"] > 6
    sent = invoke("replay", to, "--to", copy, "--speed", "max", "--json", "--bootstrap-servers", servers)
    assert sent["sent"] == 500
    for partition, count in enumerate(counts):
        assert messages_of(servers, copy, partition, count) == messages_of(servers, topic, partition, count)
    again = CliRunner().invoke(app, ["archive", topic, "--to", to, "--once", "--bootstrap-servers", servers])
    assert again.exit_code == 0 and "0 messages in 0 files" in again.output


def test_a_topic_with_fewer_partitions_is_refused(kafka: Any, tmp_path: Path) -> None:
    topic, one = f"posts-{uuid.uuid4().hex[:8]}", f"one-{uuid.uuid4().hex[:8]}"
    for name, partitions in ((topic, 2), (one, 1)):
        kafka.create_topic(name, partitions)
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    producer.produce(topic, b"x", partition=1)
    assert producer.flush(120) == 0
    servers, to = kafka.bootstrap_servers, str(tmp_path / "archive")
    invoke("archive", topic, "--to", to, "--once", "--json", "--bootstrap-servers", servers)
    result = CliRunner().invoke(app, ["replay", to, "--to", one, "--bootstrap-servers", servers])
    assert isinstance(result.exception, ValueError) and "had 2 partitions" in str(result.exception)


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["--size", "much"], "--size must be a number of bytes"),
        (["--interval", "soon"], "--interval must be a duration"),
        (["--keep", "0s"], "--keep must be a duration"),
        (["--start", "now"], "--start must be earliest or latest"),
    ],
)
def test_wrong_options_are_refused_before_anything_is_read(arguments: list[str], message: str) -> None:
    result = CliRunner().invoke(
        app, ["archive", "posts", "--to", "x", "--bootstrap-servers", "nowhere:1", *arguments]
    )
    assert isinstance(result.exception, ValueError) and message in str(result.exception)
