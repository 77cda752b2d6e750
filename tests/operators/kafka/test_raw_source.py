"""What the raw source makes of its fetcher's answers: in order, in portions, and not too far ahead."""

from __future__ import annotations

import time
from collections import deque
from itertools import takewhile
from types import SimpleNamespace
from typing import Any

import pytest
from kafka import TopicPartition

from streamgauge.operators.formats.messages import Messages
from streamgauge.operators.kafka import raw_source
from streamgauge.operators.kafka.array_pool import ARRAYS
from streamgauge.operators.kafka.raw_fetcher import Damaged, Fetched, RawRecords
from streamgauge.operators.kafka.raw_source import RawSource
from streamgauge.operators.kafka.record_batches import batches as batches_of
from streamgauge.operators.kafka.source import CORRUPT, LogPosition

from .made_batches import RECORDS, Answer, Record, batch_of
from .reading import NewTopic

WHERE = ("t", 0)
TEN: list[Record] = [(i, 0, None, b"v%d" % i, []) for i in range(10)]


class Broker:
    """Stands for kafka-python's consumer and fetcher: a log of one partition, an answer a poll."""

    def __init__(self, log: dict[int, bytes], end: int, silent: bool = False) -> None:
        self.log, self.end, self.at, self.silent = log, end, 0, silent
        self.seeks: list[int] = []
        self.faults: deque[Any] = deque()
        self.answers = 0
        self.ends = {WHERE: end}
        self.config: dict[str, Any] = {}

    @property
    def _subscription(self) -> Any:
        return SimpleNamespace(assignment={TopicPartition(*WHERE): self})

    def seek(self, position: Any) -> None:
        self.seeks.append(position.offset)
        self.at = position.offset

    def poll(self, *_: Any) -> dict[Any, list[Fetched]]:
        self.answers += 1
        if self.at >= self.end or self.silent:
            return {}
        place = TopicPartition(*WHERE)
        known = [base for base in self.log if base <= self.at]
        if not known or self.log[max(known)] == b"":
            return {place: Damaged(self.at, place, b"", "nothing there").take()}
        parts = takewhile(bool, (part for base, part in self.log.items() if base >= max(known)))
        records = RawRecords(self.at, place, Answer(b"".join(parts)))  # type: ignore[arg-type]
        records.end = self.end
        result = records.take()
        self.at = records.next_fetch_offset
        return {place: result}


def reading(broker: Broker, start: int = 0, skip: bool = False) -> RawSource:
    source = RawSource({"bootstrap.servers": "nowhere:1"}, skip=skip)
    source._consumer, source._fetcher = broker, broker  # type: ignore[assignment]
    source._begin({WHERE: LogPosition(start)})
    broker.at = start
    return source


def messages_of(source: RawSource, until: int, limit: int = 100) -> list[Any]:
    """Offsets as they come, and (first, next) of what was skipped."""
    collected: list[Any] = []
    for _ in range(200):
        if source.positions([WHERE]).get(WHERE, 0) >= until:
            break
        messages, _, faults = source.poll(limit, 0.01)
        assert not faults
        if messages is not None:
            collected += messages.offset.tolist()
            if messages.broken is not None:
                collected.append((messages.broken.first, messages.broken.next))
    return collected


def damaged(base: int) -> bytes:
    return batch_of(TEN, base)[:-1] + b"?"


def test_a_source_gives_out_all_before_a_broken_batch_and_then_names_it_each_time() -> None:
    broker = Broker({0: batch_of(RECORDS[:2], 0), 2: damaged(2), 12: batch_of(TEN, 12)}, 22)
    source = reading(broker, 1)
    messages, _, faults = source.poll(100, 5.0)
    assert messages is not None and messages.offset.tolist() == [1] and not faults
    for _ in range(2):
        messages, _, faults = source.poll(100, 5.0)
        assert messages is None and source.positions([WHERE]) == {WHERE: 2}
        assert (faults[0].code, faults[0].where, faults[0].fatal) == (CORRUPT, WHERE, True)
        assert "the record batch at offset 2 is damaged: its checksum is wrong" in faults[0].text
    # It was fetched once more before that: bytes may break on their way.
    assert broker.seeks == [2]


def test_bytes_that_broke_on_their_way_are_fetched_again() -> None:
    broker = Broker({0: batch_of(TEN, 0), 10: damaged(10)}, 20)
    source = reading(broker)
    assert source.poll(100, 5.0)[0] is not None
    broker.log[10] = batch_of(TEN, 10)
    assert messages_of(source, 20) == list(range(10, 20))


def test_what_is_skipped_is_reported_in_its_place() -> None:
    lies = batch_of(TEN, 20, count=9)  # its checksum is right
    broker = Broker({0: batch_of(TEN, 0), 10: damaged(10), 20: lies, 30: batch_of(TEN, 30)}, 40)
    source = reading(broker, 5, skip=True)
    assert messages_of(source, 40) == [5, 6, 7, 8, 9, (10, 20), (20, 30), *range(30, 40)]


def test_what_is_skipped_keeps_its_bytes_and_its_reason() -> None:
    source = reading(Broker({0: damaged(0)}, 10), skip=True)
    messages = source.poll(100, 5.0)[0]
    assert messages is not None and messages.broken is not None
    assert messages.broken.raw == damaged(0) and "checksum" in messages.broken.reason
    assert isinstance(messages, Messages) and len(messages) == 0


def test_where_nothing_says_how_far_damage_goes_it_is_felt_for_and_never_past_the_end() -> None:
    broker = Broker({0: batch_of(TEN, 0), 10: b"", 31: batch_of(TEN, 31)}, 41)
    assert messages_of(reading(broker, skip=True), 41) == [
        *range(10),
        (10, 12),
        (12, 16),
        (16, 24),
        (24, 40),
        40,
    ]
    to_its_end = Broker({0: b""}, 9)
    assert messages_of(reading(to_its_end, skip=True), 9) == [(0, 2), (2, 6), (6, 9)]


def test_a_broker_that_gives_nothing_of_what_it_has_is_not_waited_for_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(raw_source, "_STALLED_SECONDS", 0.0)
    source = reading(Broker({}, 60, silent=True))
    faults: list[Any] = []
    while not faults:
        _, _, faults = source.poll(100, 0.01)
    assert "the broker sent nothing, though it ends at 60" in faults[0].text
    # Brokers that don't answer at all are away, or hold their answers back for a quota.
    away = Broker({}, 60, silent=True)
    patient = reading(away)
    away.poll = lambda *_: {}  # type: ignore[method-assign]
    assert not any(patient.poll(100, 0.01).faults for _ in range(20))


def test_messages_come_in_portions_of_the_size_asked_for() -> None:
    log = {base: batch_of(TEN, base) for base in range(0, 50, 10)}
    assert messages_of(reading(Broker(log, 50)), 50, limit=3) == list(range(50))
    source = reading(Broker(log, 50))
    sizes = []
    while source.positions([WHERE]).get(WHERE, 0) < 50:
        messages = source.poll(25, 0.01)[0]
        sizes.append(0 if messages is None else len(messages))
    assert sizes == [20, 20, 10]


def test_another_partition_is_not_begun_for_the_last_few_messages() -> None:
    source = reading(Broker({}, 0))
    elsewhere = ("t", 1)

    def steps(sizes: dict[tuple[str, int], int]) -> None:
        for where, many in sizes.items():
            batches = [next(batches_of(batch_of(TEN, base), base)) for base in range(0, 10 * many, 10)]
            source._waiting.extend(Fetched(where, batch.next_offset, batch) for batch in batches)

    steps({WHERE: 6, elsewhere: 6})
    assert [len(source._chosen(100)) for _ in range(2)] == [6, 6]
    steps({WHERE: 5, elsewhere: 6})  # half of what may come at once, no more
    assert [len(source._chosen(100)) for _ in range(2)] == [10, 1]


def test_several_responses_are_one_run_of_each_partition() -> None:
    source = reading(Broker({}, 0))
    elsewhere = ("t", 1)
    source._position[elsewhere] = 0
    for base in (0, 10, 20):
        for where in (WHERE, elsewhere):
            batch = next(batches_of(batch_of(TEN, base), base))
            source._waiting.append(Fetched(where, batch.next_offset, batch))
    messages, _, _ = source.poll(100, 0.01)
    assert messages is not None and [messages.topic_partition(low) for low, _ in messages.runs()] == [
        WHERE,
        elsewhere,
    ]
    assert messages.offset.tolist() == 2 * list(range(30))


def test_what_collected_during_a_pause_is_returned_together() -> None:
    source = reading(Broker({0: batch_of(TEN, 0)}, 10))
    assert len(source.poll(100, 0.01)[0] or ()) == 10
    assert source.caught_up()
    source._fetcher.log |= {10: batch_of(TEN, 10)}  # type: ignore[attr-defined]
    source._fetcher.end = source._fetcher.ends[WHERE] = 20  # type: ignore[attr-defined]
    assert not source.caught_up()
    broker, first = source._fetcher, source._fetcher.poll  # type: ignore[attr-defined]

    def poll(*given: Any) -> Any:
        """The first response is from before the last messages."""
        result = first(*given)
        broker.log |= {20: batch_of(TEN, 20)}  # type: ignore[attr-defined]
        broker.end = broker.ends[WHERE] = 30  # type: ignore[attr-defined]
        return result

    broker.poll = poll  # type: ignore[attr-defined]
    time.sleep(0.03)
    assert len(source.poll(100, 0.01)[0] or ()) == 20
    assert source.caught_up()


def test_no_more_is_decompressed_at_once_than_memory_is_meant_for(monkeypatch: pytest.MonkeyPatch) -> None:
    log = {base: batch_of(TEN, base) for base in range(0, 50, 10)}
    monkeypatch.setattr(raw_source, "_AT_ONCE_BYTES", 2 * len(log[0]))
    source = reading(Broker(log, 50))
    assert [len(source.poll(100, 0.01)[0] or ()) for _ in range(3)] == [20, 20, 10]


@pytest.mark.parametrize(
    ("brokers", "each"), [(1, 4 << 20), (2, 2 << 20), (64, 64 << 10), (10_000, 64 << 10)]
)
def test_what_is_fetched_ahead_is_shared_among_brokers(brokers: int, each: int) -> None:
    source = RawSource({"bootstrap.servers": "nowhere:1", "queued.max.messages.kbytes": 8192})
    source._fetcher = SimpleNamespace(config={})  # type: ignore[assignment]
    source._share(brokers)
    assert source._fetcher.config == {"fetch_max_bytes": each, "max_partition_fetch_bytes": each}


def test_what_the_user_sets_for_a_fetch_is_kept_where_it_is_less() -> None:
    source = RawSource({"bootstrap.servers": "nowhere:1", "fetch.max.bytes": 70_000})
    source._fetcher = SimpleNamespace(config={})  # type: ignore[assignment]
    source._share(1)
    assert source._fetcher.config == {"fetch_max_bytes": 70_000, "max_partition_fetch_bytes": 4 << 20}


@pytest.mark.kafka
def test_leaders_are_known_before_the_first_fetch(config: dict[str, Any], new_topic: NewTopic) -> None:
    places = [(new_topic(), 0), *((three, number) for three in [new_topic(3)] for number in range(3))]
    source = RawSource(config)
    source.assign(dict.fromkeys(places, LogPosition(0)))
    cluster = source._consumer._manager.cluster
    assert {cluster.leader_for_partition(TopicPartition(*place)) for place in places} == {1}
    source.close()


def test_a_reader_at_the_end_of_its_partitions_holds_no_memory() -> None:
    source = reading(Broker({0: batch_of(TEN, 0), 10: b""}, end=10))
    messages, _, _ = source.poll(100, 0.01)
    assert messages is not None and ARRAYS._arrays
    _, ends, _ = source.poll(100, 0.01)
    assert ends == {WHERE: 10} and ARRAYS._arrays == []
