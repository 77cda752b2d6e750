"""Finite reads end at any offset, whatever lies there: messages, markers, gaps."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

from streamgauge.apps.dev.kafka.broker import EmbeddedKafka
from streamgauge.operators.kafka.reader import Reader, ReadError

from .reading import SOURCES, NewTopic, read_all, rows, send, transaction, values

pytestmark = pytest.mark.kafka


@pytest.mark.slow
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


@pytest.mark.slow
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
            read = [int(o) for batch in reader.read_to({(topic, 0): end}, timeout=120) for o in batch.offset]
            assert read == offsets
            assert reader.positions()[(topic, 0)] >= end
        send(kafka, topic, [b"after"])
        assert values(read_all(reader, 1)) == [b"after"]


@pytest.mark.slow
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
            got = rows(list(reader.read_to(ends, max_messages=700, timeout=120)))
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
            result = np.concatenate([m.offset for m in reader.read_to({(topic, 0): end})])
            assert result.tolist() == list(range(start, end))


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


@pytest.mark.slow
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
    deadline = time.monotonic() + 300
    left = 60
    while left > 1 and time.monotonic() < deadline:
        # A segment is closed, and so cleaned, by the message after it.
        send(kafka, topic, [b"v"], key=b"other")
        with Reader(config, {(topic, 0): 0}) as reader:
            left = sum(map(len, reader.read_to({(topic, 0): 60}, timeout=120)))
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
        result = reader.read_to({(topic, 0): 5}, timeout=0.5)
        assert len(next(result)) == 1
        with pytest.raises(ReadError, match=rf"{topic}\[0\] gave nothing for .* before the end at 5"):
            next(result)
