"""What a reader can't read is named; what passes is waited for."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from streamgauge.apps.dev.kafka.broker import EmbeddedKafka
from streamgauge.operators.kafka.reader import Reader, ReadError

from .reading import SOURCES, NewTopic, read_all, send, values

pytestmark = pytest.mark.kafka


def test_a_topic_that_does_not_exist_is_named(config: dict[str, Any], source: Any) -> None:
    with pytest.raises(ReadError, match=r"there is no topic 'nowhere' at 127\.0\.0\.1"):
        Reader(config, {("nowhere", 0): 0}, source=source)


def test_a_partition_that_does_not_exist_is_named(
    config: dict[str, Any], new_topic: NewTopic, source: Any
) -> None:
    topic = new_topic(2)
    with pytest.raises(ReadError, match="has no partition 2, only 0 to 1"):
        Reader(config, {(topic, 0): 0, (topic, 2): 0}, source=source)


def test_a_position_that_is_not_there_is_named(
    kafka: EmbeddedKafka, config: dict[str, Any], new_topic: NewTopic, source: Any
) -> None:
    topic = new_topic()
    send(kafka, topic, [b"0", b"1"])
    with (
        Reader(config, {(topic, 0): 99}, source=source) as reader,
        pytest.raises(ReadError, match=rf"offset 99 of {topic}\[0\] no longer exists, or does not exist yet"),
    ):
        reader.read(timeout=120)
    # Those who would rather lose messages say so; but none counts again because a position is ahead.
    lossy = {**config, "auto.offset.reset": "earliest"}
    with Reader(lossy, {(topic, 0): 99}, source=source) as reader, pytest.raises(ReadError):
        reader.read(timeout=120)
    admin = AdminClient(config)
    deleted = admin.delete_records([TopicPartition(topic, 0, 1)])
    assert [done.result(120).low_watermark for done in deleted.values()] == [1]
    with Reader(lossy, {(topic, 0): 0}, source=source) as reader:
        assert values(read_all(reader, 1)) == [b"1"]


def test_a_setting_that_does_not_exist_is_named(config: dict[str, Any], source: Any) -> None:
    with pytest.raises(ReadError, match=r"no\.such\.setting"):
        Reader({**config, "no.such.setting": 1}, {}, source=source)


def test_no_broker_at_all_says_so(source: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streamgauge.operators.kafka.reader._ANSWER_SECONDS", 1.0)
    with pytest.raises(ReadError, match=r"no broker at 127\.0\.0\.1:1 answered within 1 s"):
        Reader({"bootstrap.servers": "127.0.0.1:1"}, {("posts", 0): 0}, source=source)


def test_a_closed_reader_says_so(config: dict[str, Any], new_topic: NewTopic, source: Any) -> None:
    reader = Reader(config, {(new_topic(), 0): 0}, source=source)
    reader.close()
    reader.close()
    with pytest.raises(ReadError, match="closed"):
        reader.read()


@pytest.mark.slow
def test_a_broker_that_goes_away_is_waited_for(
    own_broker: EmbeddedKafka, caplog: pytest.LogCaptureFixture
) -> None:
    own_broker.create_topic("posts")
    send(own_broker, "posts", [b"0", b"1"])
    config = {"bootstrap.servers": own_broker.bootstrap_servers}
    readers = {source: Reader(config, {("posts", 0): 0}, source=source) for source in SOURCES}
    with caplog.at_level(logging.WARNING, "streamgauge.kafka"):
        for reader in readers.values():
            assert values(read_all(reader, 2)) == [b"0", b"1"]
        own_broker.stop()
        for source, reader in readers.items():
            for _ in range(40):
                assert reader.read(timeout=0.5) is None
                if reader.waiting:
                    break
            assert reader.waiting, f"{source} did not notice"
        assert "waiting for Kafka at 127.0.0.1" in caplog.text
        own_broker.start()
        send(own_broker, "posts", [b"2"])
        for reader in readers.values():
            assert values(read_all(reader, 1)) == [b"2"]
            assert reader.waiting is None
        assert "is back" in caplog.text
    for reader in readers.values():
        reader.close()
