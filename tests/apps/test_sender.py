"""Messages into Kafka: all of them, in order by author, with their own timestamps."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from streamgauge.apps.replay import sender
from streamgauge.apps.replay.generated import Generated
from streamgauge.apps.replay.load import Load
from streamgauge.apps.replay.process import Replay, ReplayError
from streamgauge.apps.replay.sender import send

pytestmark = pytest.mark.kafka


def read(servers: str, topic: str, partitions: int) -> list[list[Any]]:
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "reader", "enable.auto.commit": False})
    found = []
    for partition in range(partitions):
        _, high = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=10)
        consumer.assign([TopicPartition(topic, partition, 0)])
        messages: list[Any] = []
        while len(messages) < high:
            messages += consumer.consume(10_000, timeout=1)
        found.append(messages)
    consumer.close()
    return found


def test_everything_arrives_with_its_timestamp_and_authors_stay_together(kafka: Any) -> None:
    source = Generated(Load(rate=20_000, seed=5), posts=30_000)
    kafka.create_topic("sender-all", 3)
    told: list[int] = []
    assert send(source, "sender-all", kafka.bootstrap_servers, pace=False, progress=told.append) == 30_000
    assert told[-1] == 30_000
    batches = list(source.batches())
    expected = {value for batch in batches for value in batch.values.to_pylist()}
    stamps = {stamp for batch in batches for stamp in batch.sent.tolist()}
    partitions = read(kafka.bootstrap_servers, "sender-all", 3)
    assert sum(map(len, partitions)) == 30_000
    homes: dict[str, set[int]] = {}
    for number, messages in enumerate(partitions):
        assert len(messages) > 5_000
        for message in messages:
            assert message.value() in expected
            assert message.timestamp()[1] in stamps
            if message.value().endswith(b"}") and message.value().startswith(b"{"):
                homes.setdefault(json.loads(message.value())["author"], set()).add(number)
    assert all(len(found) == 1 for found in homes.values())


def test_a_topic_that_does_not_exist_is_named(kafka: Any) -> None:
    with pytest.raises(KafkaException, match="Unknown topic"):
        send(Generated(Load(), posts=1), "sender-none", kafka.bootstrap_servers)


class Away:
    """A producer whose broker answers a question only after some that fail."""

    def __init__(self, *codes: int) -> None:
        self.codes = list(codes)

    def list_topics(self, topic: str, timeout: float) -> Any:
        if self.codes:
            raise KafkaException(KafkaError(self.codes.pop(0)))
        return SimpleNamespace(topics={topic: SimpleNamespace(error=None, partitions={0: None, 1: None})})


def test_a_broker_that_is_away_at_the_start_is_waited_for_and_other_errors_are_told() -> None:
    gone = [KafkaError._TRANSPORT, KafkaError._TIMED_OUT, KafkaError._ALL_BROKERS_DOWN]
    assert sender._partitions(Away(*gone), "posts") == 2
    with pytest.raises(KafkaException):
        sender._partitions(Away(gone[0], KafkaError._AUTHENTICATION), "posts")


def test_nobody_waits_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sender, "_PATIENCE", 0.0)
    with pytest.raises(KafkaException):
        sender._partitions(Away(*[KafkaError._TRANSPORT] * 100), "posts")


def test_a_replay_runs_in_its_own_process_and_tells_how_far_it_is(kafka: Any) -> None:
    kafka.create_topic("sender-process", 1)
    replay = Replay(
        Generated(Load(rate=5_000, seed=5), posts=2_000),
        "sender-process",
        kafka.bootstrap_servers,
        pace=False,
    ).start()
    replay.wait()
    assert replay.done and replay.sent == 2_000
    assert len(read(kafka.bootstrap_servers, "sender-process", 1)[0]) == 2_000


def test_a_replay_that_fails_says_why(kafka: Any) -> None:
    replay = Replay(Generated(Load(), posts=1), "sender-missing", kafka.bootstrap_servers).start()
    with pytest.raises(ReplayError, match="Unknown topic"):
        replay.wait()


def test_a_replay_can_be_stopped_at_any_moment(kafka: Any) -> None:
    kafka.create_topic("sender-stopped", 1)
    replay = Replay(Generated(Load(rate=100)), "sender-stopped", kafka.bootstrap_servers)
    replay.stop()  # never started
    replay.start()
    replay.stop()
    replay.stop()
    assert not replay.running
