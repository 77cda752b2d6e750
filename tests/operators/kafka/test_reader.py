"""Both ways of reading Kafka give the same, on a real broker."""

from __future__ import annotations

import threading
import time
from typing import Any

import numpy as np
import pytest
from confluent_kafka import Producer

from streamgauge.apps.dev.kafka.broker import EmbeddedKafka
from streamgauge.operators.kafka.confluent_source import PlainSource
from streamgauge.operators.kafka.raw_source import RawSource
from streamgauge.operators.kafka.reader import EARLIEST, LATEST, Reader, ReadError

from .reading import NewTopic, read_all, rows, send, values

pytestmark = pytest.mark.kafka


def test_raw_batches_are_read_wherever_the_settings_allow_it(
    config: dict[str, Any], new_topic: NewTopic, caplog: pytest.LogCaptureFixture
) -> None:
    topic = new_topic()
    with Reader(config, {(topic, 0): 0}) as reader:
        assert isinstance(reader._source, RawSource)
    theirs = {**config, "ssl.engine.location": "x"}
    for _ in range(2):
        with Reader(theirs, {(topic, 0): 0}) as reader:
            assert isinstance(reader._source, PlainSource)
    assert caplog.text.count("several times slower: only librdkafka itself has the Kafka setting") == 1
    assert "ssl.engine.location" in caplog.text


def test_every_column_of_every_kind_of_message(
    kafka: EmbeddedKafka, config: dict[str, Any], new_topic: NewTopic, source: Any
) -> None:
    topic = new_topic(2)
    producer = Producer(config)
    sent = [
        {"value": b'{"a": 1}', "key": b"k", "timestamp": 1_600_000_000_123},
        {"value": None, "key": b"tombstone", "timestamp": 1},
        {"value": b"", "key": b"", "timestamp": 4_102_444_800_000 - 10**12 * 3},
        {"value": b"two\nlines\n", "key": None, "timestamp": 5},
        {"value": b"\x00\xff\xfe", "key": "schlüssel".encode(), "timestamp": 6},
        {"value": b"x" * 100_000, "key": b"y" * 3000, "timestamp": 7, "headers": [("a", b"1"), ("a", b"")]},
        {"value": b"h", "key": None, "timestamp": 8, "headers": [("null", None), ("größe", b"\x00\n")]},
    ]
    for partition in (0, 1):
        for message in sent:
            producer.produce(topic, partition=partition, **message)
    assert producer.flush(120) == 0

    with Reader(config, {(topic, 0): 0, (topic, 1): 0}, headers=True, source=source) as reader:
        got = rows(read_all(reader, 2 * len(sent)))
    assert [row["partition"] for row in got] == [0] * len(sent) + [1] * len(sent)
    for row, message in zip(got, sent * 2):
        assert (row["topic"], row["value"], row["key"]) == (topic, message["value"], message["key"])
        assert round(row["timestamp"].timestamp() * 1000) == message["timestamp"]
        assert [(h["key"], h["value"]) for h in row["headers"]] == message.get("headers", [])
    assert [row["offset"] for row in got] == [*range(len(sent))] * 2


@pytest.mark.parametrize("kind", ["CreateTime", "LogAppendTime"])
def test_timestamps_are_the_producers_or_the_brokers_and_it_is_said_which(
    kafka: EmbeddedKafka, config: dict[str, Any], new_topic: NewTopic, source: Any, kind: str
) -> None:
    topic = new_topic(1, {"message.timestamp.type": kind})
    before = int(time.time() * 1000)
    send(kafka, topic, [b"a", b"b"], timestamp=5)
    with Reader(config, {(topic, 0): 0}, source=source) as reader:
        (result,) = reader.read_to({(topic, 0): 2})
    if kind == "CreateTime":
        assert result.timestamp.tolist() == [5, 5] and result.appended is None
    else:
        assert result.appended is not None and result.appended.tolist() == [True, True]
        assert (result.timestamp >= before).all()


def test_values_lie_in_the_lines_with_a_newline_behind_each(
    kafka: EmbeddedKafka, config: dict[str, Any], new_topic: NewTopic, source: Any
) -> None:
    topic = new_topic()
    send(kafka, topic, [b"a", None, b"", b"bc"])
    with Reader(config, {(topic, 0): 0}, source=source) as reader:
        batches = read_all(reader, 4)
    assert all((batch.lines[batch.ends] == ord("\n")).all() for batch in batches)
    assert [batch.value_at(i) for batch in batches for i in range(len(batch))] == [b"a", None, b"", b"bc"]
    assert batches[0].headers is None


@pytest.mark.slow
def test_many_messages_in_batches_of_any_size(
    kafka: EmbeddedKafka, config: dict[str, Any], new_topic: NewTopic, source: Any
) -> None:
    topic = new_topic(3)
    for partition in range(3):
        send(kafka, topic, [b"%d-%d" % (partition, i) for i in range(4000)], partition=partition)
    for limit in (1000, 7, 100_000):
        with Reader(config, {(topic, p): 0 for p in range(3)}, source=source) as reader:
            batches = [] if limit > 7 else [reader.read(limit, 120) for _ in range(5)]
            assert all(batch is not None and 0 < len(batch) <= limit for batch in batches)
            batches += read_all(reader, 12_000 - sum(map(len, batches)), max_messages=max(limit, 500))
            assert reader.positions() == {(topic, p): 4000 for p in range(3)} == reader.end_offsets()
            assert reader.read(timeout=0.05) is None
        assert values(batches) == [b"%d-%d" % (p, i) for p in range(3) for i in range(4000)]
        for batch in batches:
            for p in range(3):
                assert (np.diff(batch.offset[batch.partition == p]) == 1).all()


def test_batches_of_large_messages_are_short(
    kafka: EmbeddedKafka, config: dict[str, Any], new_topic: NewTopic, source: Any
) -> None:
    topic = new_topic()
    sent: list[bytes | None] = [b"%d" % i * 25_000 for i in range(100, 600)]
    send(kafka, topic, sent)
    with Reader(config, {(topic, 0): 0}, source=source) as reader:
        batches = read_all(reader, len(sent))
    sizes = [int((batch.ends - batch.starts).sum()) for batch in batches]
    assert max(sizes[1:]) <= 16 << 20 < sum(sizes)
    assert values(batches) == sent


@pytest.mark.soak
def test_no_more_is_fetched_ahead_of_three_hundred_partitions_than_was_allowed(
    kafka: EmbeddedKafka, config: dict[str, Any], new_topic: NewTopic
) -> None:
    topic = new_topic(300)
    producer = Producer(config)
    for partition in range(300):
        producer.produce(topic, np.random.default_rng(partition).bytes(40_000), partition=partition)
    assert producer.flush(120) == 0
    allowed = 2048
    places = {(topic, p): 0 for p in range(300)}
    count, most = 0, 0
    with Reader({**config, "queued.max.messages.kbytes": allowed}, places, source="raw") as reader:
        source: Any = reader._source
        while count < 300:
            messages = reader.read(10, 120)
            assert messages is not None
            count += len(messages)
            held = {id(step.batch.raw.obj): len(step.batch.raw.obj) for step in source._waiting if step.batch}
            come = [len(one.partition_data.records) for one in source._fetcher._completed_fetches]
            most = max(most, sum(held.values()) + sum(come))
    assert 500_000 < most <= allowed << 10


def test_two_topics_at_once(
    kafka: EmbeddedKafka, config: dict[str, Any], new_topic: NewTopic, source: Any
) -> None:
    one, two = new_topic(), new_topic()
    send(kafka, one, [b"1"] * 3)
    send(kafka, two, [b"2"] * 2)
    with Reader(config, {(one, 0): 1, (two, 0): 0}, source=source) as reader:
        got = rows(read_all(reader, 4))
        assert reader.positions() == {(one, 0): 3, (two, 0): 2}
    assert {(row["topic"], row["value"], row["offset"]) for row in got} == {
        *((one, b"1", 1), (one, b"1", 2), (two, b"2", 0), (two, b"2", 1))
    }


@pytest.mark.slow
def test_starting_early_late_and_from_anywhere(
    kafka: EmbeddedKafka, config: dict[str, Any], new_topic: NewTopic, source: Any
) -> None:
    topic = new_topic()
    send(kafka, topic, [b"0", b"1", b"2"])
    with Reader(config, {(topic, 0): EARLIEST}, source=source) as reader:
        assert reader.positions() == {(topic, 0): 0}
        assert values(read_all(reader, 3)) == [b"0", b"1", b"2"]
        reader.seek({(topic, 0): 1})
        # At once: the library still reports the position from before.
        assert reader.positions() == {(topic, 0): 1}
        assert values(read_all(reader, 2)) == [b"1", b"2"]
        with pytest.raises(ReadError, match="isn't assigned"):
            reader.seek({(topic, 1): 0})
    with Reader(config, {(topic, 0): LATEST}, source=source) as reader:
        assert reader.positions() == {(topic, 0): 3}
        assert reader.read(timeout=0.3) is None
        send(kafka, topic, [b"3"])
        assert values(read_all(reader, 1)) == [b"3"]


@pytest.mark.slow
def test_reaching_the_end_is_no_reason_to_come_back_with_nothing(
    kafka: EmbeddedKafka, config: dict[str, Any], new_topic: NewTopic, source: Any
) -> None:
    topic = new_topic(4)
    later = threading.Timer(1.0, send, (kafka, topic, [b"late"]), {"partition": 3})
    with Reader(config, {(topic, p): 0 for p in range(4)}, source=source) as reader:
        later.start()
        messages = reader.read(timeout=120)
        assert messages is not None
        assert values([messages]) == [b"late"]
    later.join()


def test_an_empty_topic_gives_nothing(config: dict[str, Any], new_topic: NewTopic, source: Any) -> None:
    topic = new_topic()
    with Reader(config, {(topic, 0): EARLIEST}, source=source) as reader:
        assert reader.read(timeout=0.5) is None
        assert list(reader.read_to(reader.end_offsets())) == []
        assert reader.positions() == {(topic, 0): 0}
