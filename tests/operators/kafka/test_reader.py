"""Both ways of reading Kafka give the same, on a real broker."""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from confluent_kafka import Producer

from streamgauge.apps.kafka.broker import EmbeddedKafka
from streamgauge.operators.formats.messages import Messages
from streamgauge.operators.kafka.plain import PlainSource
from streamgauge.operators.kafka.raw import RawSource
from streamgauge.operators.kafka.reader import EARLIEST, LATEST, Reader, ReadError

pytestmark = pytest.mark.kafka

NewTopic = Callable[..., str]
SOURCES = ["raw", "plain"]


@pytest.fixture(params=SOURCES)
def source(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture
def new_topic(kafka: EmbeddedKafka) -> NewTopic:
    """Create a topic nobody else uses; gives its name."""

    def create(partitions: int = 1, config: dict[str, str] | None = None) -> str:
        name = f"reader-{uuid.uuid4().hex[:12]}"
        kafka.create_topic(name, partitions, config)
        return name

    return create


@pytest.fixture
def config(kafka: EmbeddedKafka) -> dict[str, Any]:
    return {"bootstrap.servers": kafka.bootstrap_servers}


def send(kafka: EmbeddedKafka, topic: str, values: list[bytes | None], **more: Any) -> None:
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "log_level": 0})
    for value in values:
        producer.produce(topic, value, **{"partition": 0, **more})
    assert producer.flush(20) == 0


def transaction(kafka: EmbeddedKafka, topic: str, values: list[bytes], commit: bool) -> None:
    """Send in a transaction, and wait for its marker, which Kafka writes after the transaction's end."""
    config = {"bootstrap.servers": kafka.bootstrap_servers}
    with Reader(config, {(topic, 0): EARLIEST}) as reader:
        after = reader.end_offsets()[(topic, 0)] + len(values) + 1
        producer = Producer({**config, "transactional.id": uuid.uuid4().hex})
        producer.init_transactions(20)
        producer.begin_transaction()
        for value in values:
            producer.produce(topic, value, partition=0)
        assert producer.flush(20) == 0
        (producer.commit_transaction if commit else producer.abort_transaction)(20)
        deadline = time.monotonic() + 20
        while (end := reader.end_offsets()[(topic, 0)]) != after and time.monotonic() < deadline:
            time.sleep(0.01)
        assert end == after


def read_all(reader: Reader, count: int, **how: Any) -> list[Messages]:
    """Batches until `count` messages are there."""
    batches: list[Messages] = []
    while sum(map(len, batches)) < count:
        messages = reader.read(timeout=20, **how)
        assert messages is not None, f"only {sum(map(len, batches))} of {count} messages came"
        batches.append(messages)
    assert sum(map(len, batches)) == count
    return batches


def rows(batches: list[Messages]) -> list[dict[str, Any]]:
    """All columns as rows, by partition and offset."""
    found = [row for batch in batches for row in batch.to_arrow().to_pylist()]
    return sorted(found, key=lambda row: (row["topic"], row["partition"], row["offset"]))


def values(batches: list[Messages]) -> list[bytes | None]:
    return [row["value"] for row in rows(batches)]


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
    assert producer.flush(20) == 0

    with Reader(config, {(topic, 0): 0, (topic, 1): 0}, headers=True, source=source) as reader:
        got = rows(read_all(reader, 2 * len(sent)))
    assert [row["partition"] for row in got] == [0] * len(sent) + [1] * len(sent)
    for row, message in zip(got, sent * 2):
        assert (row["topic"], row["value"], row["key"]) == (topic, message["value"], message["key"])
        assert round(row["timestamp"].timestamp() * 1000) == message["timestamp"]
        assert [(h["key"], h["value"]) for h in row["headers"]] == message.get("headers", [])
    assert [row["offset"] for row in got] == [*range(len(sent))] * 2


@pytest.mark.parametrize("kind", ["CreateTime", "LogAppendTime"])
def test_timestamps_are_the_producers_or_the_brokers_and_it_is_told_which(
    kafka: EmbeddedKafka, config: dict[str, Any], new_topic: NewTopic, source: Any, kind: str
) -> None:
    topic = new_topic(1, {"message.timestamp.type": kind})
    before = int(time.time() * 1000)
    send(kafka, topic, [b"a", b"b"], timestamp=5)
    with Reader(config, {(topic, 0): 0}, source=source) as reader:
        (found,) = reader.read_to({(topic, 0): 2})
    if kind == "CreateTime":
        assert found.timestamp.tolist() == [5, 5] and found.appended is None
    else:
        assert found.appended is not None and found.appended.tolist() == [True, True]
        assert (found.timestamp >= before).all()


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


def test_many_messages_in_batches_of_any_size(
    kafka: EmbeddedKafka, config: dict[str, Any], new_topic: NewTopic, source: Any
) -> None:
    topic = new_topic(3)
    for partition in range(3):
        send(kafka, topic, [b"%d-%d" % (partition, i) for i in range(4000)], partition=partition)
    for limit in (1000, 7, 100_000):
        with Reader(config, {(topic, p): 0 for p in range(3)}, source=source) as reader:
            batches = [] if limit > 7 else [reader.read(limit, 20) for _ in range(5)]
            assert all(batch is not None and 0 < len(batch) <= limit for batch in batches)
            batches += read_all(reader, 12_000 - sum(map(len, batches)), max_messages=max(limit, 500))
            assert reader.positions() == {(topic, p): 4000 for p in range(3)} == reader.end_offsets()
            assert reader.read(timeout=0.05) is None
        assert values(batches) == [b"%d-%d" % (p, i) for p in range(3) for i in range(4000)]
        for batch in batches:
            for p in range(3):
                assert (np.diff(batch.offset[batch.partition == p]) == 1).all()


@pytest.mark.soak
def test_no_more_is_fetched_ahead_of_three_hundred_partitions_than_was_allowed(
    kafka: EmbeddedKafka, config: dict[str, Any], new_topic: NewTopic
) -> None:
    topic = new_topic(300)
    producer = Producer(config)
    for partition in range(300):
        producer.produce(topic, np.random.default_rng(partition).bytes(40_000), partition=partition)
    assert producer.flush(60) == 0
    allowed = 2048
    places = {(topic, p): 0 for p in range(300)}
    count, most = 0, 0
    with Reader({**config, "queued.max.messages.kbytes": allowed}, places, source="raw") as reader:
        source: Any = reader._source
        while count < 300:
            messages = reader.read(10, 20.0)
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


def test_starting_early_late_and_from_anywhere(
    kafka: EmbeddedKafka, config: dict[str, Any], new_topic: NewTopic, source: Any
) -> None:
    topic = new_topic()
    send(kafka, topic, [b"0", b"1", b"2"])
    with Reader(config, {(topic, 0): EARLIEST}, source=source) as reader:
        assert reader.positions() == {(topic, 0): 0}
        assert values(read_all(reader, 3)) == [b"0", b"1", b"2"]
        reader.seek({(topic, 0): 1})
        # At once: the library still tells the position from before.
        assert reader.positions() == {(topic, 0): 1}
        assert values(read_all(reader, 2)) == [b"1", b"2"]
        with pytest.raises(ReadError, match="isn't assigned"):
            reader.seek({(topic, 1): 0})
    with Reader(config, {(topic, 0): LATEST}, source=source) as reader:
        assert reader.positions() == {(topic, 0): 3}
        assert reader.read(timeout=0.3) is None
        send(kafka, topic, [b"3"])
        assert values(read_all(reader, 1)) == [b"3"]


def test_reaching_the_end_is_no_reason_to_come_back_with_nothing(
    kafka: EmbeddedKafka, config: dict[str, Any], new_topic: NewTopic, source: Any
) -> None:
    topic = new_topic(4)
    later = threading.Timer(1.0, send, (kafka, topic, [b"late"]), {"partition": 3})
    with Reader(config, {(topic, p): 0 for p in range(4)}, source=source) as reader:
        later.start()
        messages = reader.read(timeout=30)
        assert messages is not None
        assert values([messages]) == [b"late"]
    later.join()


def test_an_empty_topic_gives_nothing(config: dict[str, Any], new_topic: NewTopic, source: Any) -> None:
    topic = new_topic()
    with Reader(config, {(topic, 0): EARLIEST}, source=source) as reader:
        assert reader.read(timeout=0.5) is None
        assert list(reader.read_to(reader.end_offsets())) == []
        assert reader.positions() == {(topic, 0): 0}


def test_only_committed_messages_are_read_and_markers_are_passed(
    kafka: EmbeddedKafka, config: dict[str, Any], new_topic: NewTopic, source: Any
) -> None:
    topic = new_topic()
    transaction(kafka, topic, [b"lost"] * 3, commit=False)  # 0, 1, 2, marker 3
    transaction(kafka, topic, [b"kept"] * 2, commit=True)  # 4, 5, marker 6
    send(kafka, topic, [b"plain"])  # 7
    transaction(kafka, topic, [b"lost"], commit=False)  # 8, marker 9
    with Reader(config, {(topic, 0): 0}, source=source) as reader:
        assert values(read_all(reader, 3)) == [b"kept", b"kept", b"plain"]
        assert reader.read(timeout=0.5) is None
        assert reader.positions() == {(topic, 0): 10} == reader.end_offsets()
    uncommitted = {**config, "isolation.level": "read_uncommitted"}
    with Reader(uncommitted, {(topic, 0): 0}, source=source) as reader:
        assert len(values(read_all(reader, 7))) == 7


@pytest.mark.parametrize(
    ("ends", "expected"),
    [
        # Every end in turn: inside aborted messages, on markers, on messages.
        ([10], [[4, 5, 7]]),
        ([1, 2, 4, 5, 7, 8, 10], [[], [], [], [4], [5], [7], []]),
        ([3, 6, 9, 10], [[], [4, 5], [7], []]),
    ],
)
def test_a_finite_read_ends_at_any_offset(
    kafka: EmbeddedKafka,
    config: dict[str, Any],
    new_topic: NewTopic,
    source: Any,
    ends: list[int],
    expected: list[list[int]],
) -> None:
    topic = new_topic()
    transaction(kafka, topic, [b"lost"] * 3, commit=False)  # 0, 1, 2, marker 3
    transaction(kafka, topic, [b"kept"] * 2, commit=True)  # 4, 5, marker 6
    send(kafka, topic, [b"plain"])  # 7
    transaction(kafka, topic, [b"lost"], commit=False)  # 8, marker 9
    with Reader(config, {(topic, 0): 0}, source=source) as reader:
        for end, offsets in zip(ends, expected):
            read = [int(o) for batch in reader.read_to({(topic, 0): end}, timeout=20) for o in batch.offset]
            assert read == offsets
            assert reader.positions()[(topic, 0)] >= end
        send(kafka, topic, [b"after"])
        assert values(read_all(reader, 1)) == [b"after"]


def test_finite_reads_of_several_partitions_lose_and_repeat_nothing(
    kafka: EmbeddedKafka, config: dict[str, Any], new_topic: NewTopic, source: Any
) -> None:
    topic = new_topic(3)
    for p in range(3):
        send(kafka, topic, [b"%d" % i for i in range(3000)], partition=p)
    steps = [(10, 2000, 5), (20, 2000, 1500), (2900, 3000, 1501), (3000, 3000, 2999)]
    start = [0, 0, 0]
    with Reader(config, {(topic, p): 0 for p in range(3)}, source=source) as reader:
        for step in steps:
            ends = {(topic, p): end for p, end in enumerate(step)}
            got = rows(list(reader.read_to(ends, max_messages=700, timeout=20)))
            assert [(row["partition"], row["offset"]) for row in got] == [
                (p, o) for p in range(3) for o in range(start[p], step[p])
            ]
            assert reader.positions() == ends
            start = list(step)
        # And a read without end goes on where the last one stopped.
        assert [(row["partition"], row["offset"]) for row in rows(read_all(reader, 1))] == [(2, 2999)]


def test_a_finite_read_after_going_back_or_ahead_reads_the_same(
    config: dict[str, Any], kafka: EmbeddedKafka, new_topic: NewTopic, source: Any
) -> None:
    topic = new_topic()
    send(kafka, topic, [b"%d" % n for n in range(300)])
    with Reader(config, {(topic, 0): 0}, source=source) as reader:
        for start, end in [(0, 200), (100, 300), (100, 300), (0, 50), (250, 260), (0, 300)]:
            reader.seek({(topic, 0): start})
            found = np.concatenate([m.offset for m in reader.read_to({(topic, 0): end})])
            assert found.tolist() == list(range(start, end))


def test_a_finite_read_that_is_given_up_loses_nothing(
    kafka: EmbeddedKafka, config: dict[str, Any], new_topic: NewTopic, source: Any
) -> None:
    topic = new_topic()
    send(kafka, topic, [b"%d" % i for i in range(100)])
    with Reader(config, {(topic, 0): 0}, source=source) as reader:
        next(reader.read_to({(topic, 0): 3}))
        for batch in reader.read_to({(topic, 0): 50}, max_messages=10):
            assert len(batch) > 0
            break
        done = reader.positions()[(topic, 0)]
        assert 3 < done <= 50
        assert values(read_all(reader, 100 - done)) == [b"%d" % i for i in range(done, 100)]


def test_a_finite_read_passes_what_compaction_took(
    kafka: EmbeddedKafka, config: dict[str, Any], new_topic: NewTopic
) -> None:
    quickly = {
        "cleanup.policy": "compact",
        "segment.ms": "100",
        "min.cleanable.dirty.ratio": "0.01",
        "max.compaction.lag.ms": "100",
    }
    topic = new_topic(1, quickly)
    for _ in range(3):
        send(kafka, topic, [b"v"] * 20, key=b"same")
        time.sleep(0.2)
    deadline = time.monotonic() + 60
    left = 60
    while left > 1 and time.monotonic() < deadline:
        # A segment is closed, and so cleaned, by the message after it.
        send(kafka, topic, [b"v"], key=b"other")
        with Reader(config, {(topic, 0): 0}) as reader:
            left = sum(map(len, reader.read_to({(topic, 0): 60}, timeout=20)))
    assert left == 1, "the broker has not compacted the topic"
    for source in SOURCES:
        with Reader(config, {(topic, 0): 0}, source=source) as reader:
            read = [[int(o) for b in reader.read_to({(topic, 0): end}) for o in b.offset] for end in (10, 60)]
            assert read == [[], [59]]
            assert reader.positions()[(topic, 0)] >= 60


def test_a_finite_read_beyond_the_end_says_so(
    kafka: EmbeddedKafka, config: dict[str, Any], new_topic: NewTopic, source: Any
) -> None:
    topic = new_topic()
    send(kafka, topic, [b"0"])
    with Reader(config, {(topic, 0): 0}, source=source) as reader:
        found = reader.read_to({(topic, 0): 5}, timeout=0.5)
        assert len(next(found)) == 1
        with pytest.raises(ReadError, match=rf"{topic}\[0\] gave nothing for .* before the end at 5"):
            next(found)


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
    send(kafka, topic, [b"0"])
    with (
        Reader(config, {(topic, 0): 99}, source=source) as reader,
        pytest.raises(ReadError, match=rf"offset 99 of {topic}\[0\] is no longer, or not yet, there"),
    ):
        reader.read(timeout=20)
    # Those who would rather lose messages say so.
    lossy = {**config, "auto.offset.reset": "earliest"}
    with Reader(lossy, {(topic, 0): 99}, source=source) as reader:
        assert values(read_all(reader, 1)) == [b"0"]


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


@pytest.fixture
def own_broker(tmp_path: Path) -> Iterator[EmbeddedKafka]:
    """A broker to be stopped and started."""
    with EmbeddedKafka(data=tmp_path / "data") as broker:
        yield broker


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
