"""Messages into Kafka: all of them, in order by author, with their own timestamps."""

from __future__ import annotations

import json
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from confluent_kafka import KafkaError, KafkaException

from streamgauge.apps.dev.replay import sender
from streamgauge.apps.dev.replay.generated import Generated
from streamgauge.apps.dev.replay.load import Load
from streamgauge.apps.dev.replay.sender import Undelivered, send
from streamgauge.apps.recordings.batch import Batch

from .sent import read

pytestmark = pytest.mark.kafka


@pytest.mark.slow
def test_everything_arrives_with_its_timestamp_and_authors_stay_together(kafka: Any) -> None:
    source = Generated(Load(rate=20_000, seed=5), posts=30_000)
    kafka.create_topic("sender-all", 3)
    collected: list[int] = []
    assert (
        send(source, "sender-all", kafka.bootstrap_servers, pace=False, progress=collected.append) == 30_000
    )
    assert collected[-1] == 30_000
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
    assert all(len(result) == 1 for result in homes.values())


class Stamped:
    """Two messages with these timestamps."""

    def __init__(self, *stamps: int) -> None:
        self.stamps = stamps

    def batches(self) -> Iterator[Batch]:
        n = len(self.stamps)
        values, keys = pa.array([b"x"] * n, pa.large_binary()), np.zeros(n, np.uint32)
        yield Batch(values, keys, np.array(self.stamps), np.zeros(n))


def test_times_in_another_unit_are_refused_before_the_broker_does(
    kafka: Any, caplog: pytest.LogCaptureFixture
) -> None:
    kafka.create_topic("sender-units", 1)
    send(Stamped(1_700_000_000_000), "sender-units", kafka.bootstrap_servers)
    assert not caplog.messages
    send(Stamped(1_700_000_000, 1_700_000_001), "sender-units", kafka.bootstrap_servers)
    reported = "holds 1700000000; read as milliseconds this is 1970-01-20, as seconds it is 2023-11-14"
    assert [reported in message for message in caplog.messages] == [True]
    with pytest.raises(Undelivered, match=r"of 1 messages .*as microseconds it is 2023-11-14"):
        send(Stamped(1_700_000_000_000_000), "sender-units", kafka.bootstrap_servers)


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


def test_a_broker_that_is_away_at_the_start_is_waited_for_and_other_errors_are_raised() -> None:
    gone = [KafkaError._TRANSPORT, KafkaError._TIMED_OUT, KafkaError._ALL_BROKERS_DOWN]
    assert sender._partitions(Away(*gone), "posts") == 2
    with pytest.raises(KafkaException):
        sender._partitions(Away(gone[0], KafkaError._AUTHENTICATION), "posts")


def test_nobody_waits_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sender, "_PATIENCE", 0.0)
    with pytest.raises(KafkaException):
        sender._partitions(Away(*[KafkaError._TRANSPORT] * 100), "posts")
