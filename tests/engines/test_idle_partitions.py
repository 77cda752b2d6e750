"""Partitions that fall silent, or never had a row, hold no window open for long; what wakes them counts.

The cases are restated from Flink's tests of idle sources, Kafka Streams' of tasks without records and
Bytewax' of clocks that go on while nothing comes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from streamgauge import StreamTester, count, query
from streamgauge.operators.consumer.options import RunOptions
from streamgauge.operators.consumer.runner import run, start
from streamgauge.operators.definition.stream import Stream
from streamgauge.spark_udafs.streaming.run import account_of, on_spark, write

from .test_windows import send, source_of
from .window_cases import DAY

IDLE_SECONDS = 1.0
PATIENCE = 600.0


@dataclass(frozen=True)
class IdleCase:
    """Rows by partition, of which windows close once silence is noticed; those that come later; the end.

    Windows of `size` seconds are by their first second, with their rows. `late` is how many rows are late;
    where `again` says what a window holds that the consumer gives again, they are late on Spark alone, where
    a window is given out once.
    """

    name: str
    first: tuple[tuple[int, ...], ...]
    closed: Mapping[int, int]
    later: tuple[tuple[int, ...], ...] = ()
    open: Mapping[int, int] = field(default_factory=dict)
    again: Mapping[int, int] = field(default_factory=dict)
    late: int = 0
    size: int = 600


CASES = (
    IdleCase("one never had a row", ((1, 640), ()), {0: 1}, (), {600: 1}),
    IdleCase("one fell silent", ((1, 640), (2,)), {0: 2}, (), {600: 1}),
    IdleCase("its next row is of an open window", ((1, 640), (2,)), {0: 2}, ((), (650,)), {600: 2}),
    IdleCase("its next row is of one that is over", ((1, 640), (2,)), {0: 2}, ((), (3,)), {600: 1}, late=1),
    IdleCase("the others go on", ((1, 640), (), (2,)), {0: 2}, ((1201,),), {600: 1, 1200: 1}),
    IdleCase("silence alone has closed it", ((1,),), {0: 1}, ((2,),), {}, {0: 2}, late=1, size=4),
)


def stream_of(case: IdleCase, rows: Stream) -> Stream:
    return rows.tumbling(f"{case.size}s", delay="5s", max_ahead=None).agg(n=count())


def rows_of(partitions: tuple[tuple[int, ...], ...]) -> list[list[dict[str, Any]]]:
    return [[{"at": (DAY + s) * 1_000_000, "case": 0, "key": "a"} for s in of] for of in partitions]


class Windows(dict[int, int]):
    """Windows by their first second, the last that was given of each."""

    def take(self, table: Any, *_: Any) -> None:
        answers = query(pa.table(table))
        starts = (answers["window_start"].dt.epoch("s") - DAY).to_list()
        self.update(zip(starts, answers["n"].to_list()))


def wait_for(done: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not done():
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_consumers_parts_close_windows_beside_silence(case: IdleCase) -> None:
    stream, windows = stream_of(case, source_of("rows", "localhost:9092")), Windows()
    # The rows are of the past, as those of topics are.
    tester = StreamTester(stream, partitions=len(case.first), start=datetime.fromtimestamp(DAY + 86_400, UTC))

    def feed(partitions: tuple[tuple[int, ...], ...]) -> None:
        for partition, rows in enumerate(rows_of(partitions)):
            tester.feed(rows, partition=partition)

    feed(case.first)
    windows.take(tester.tables())
    assert windows == {}
    windows.take(tester.advance(10).tables())
    assert windows == case.closed
    feed(case.later)
    windows.take(tester.finish().tables())
    assert windows == {**case.closed, **case.open, **case.again}
    assert tester.account.late == (0 if case.again else case.late)


@pytest.fixture
def topics(kafka: Any) -> list[str]:
    names = [f"idle-{time.monotonic_ns()}-{at}" for at in range(len(CASES))]
    for name, case in zip(names, CASES):
        kafka.create_topic(name, len(case.first))
        send(kafka, name, rows_of(case.first))
    return names


def send_later(kafka: Any, topics: list[str]) -> None:
    for name, case in zip(topics, CASES):
        send(kafka, name, rows_of(case.later))


def total(case: IdleCase) -> int:
    return sum(map(len, case.first + case.later))


@pytest.mark.slow
@pytest.mark.kafka
def test_the_consumer_closes_windows_beside_silence(kafka: Any, topics: list[str]) -> None:
    streams = [stream_of(c, source_of(topic, kafka.bootstrap_servers)) for c, topic in zip(CASES, topics)]
    windows, runs = [Windows() for _ in CASES], []

    def options(at: int, until: Any = None) -> RunOptions:
        own = {"group_id": topics[at], "on_window": windows[at].take, "idle_seconds": IDLE_SECONDS}
        return RunOptions(until=until, checkpoint_seconds=0.2, **own)

    try:
        runs += [start(stream, options(at)) for at, stream in enumerate(streams)]
        wait_for(lambda: windows == [case.closed for case in CASES])
        send_later(kafka, topics)
        wait_for(lambda: [r.summary().account.read for r in runs] == [total(case) for case in CASES])
    finally:
        for one in runs:
            one.stop()
            one.wait()
    for at, (case, stream) in enumerate(zip(CASES, streams)):
        account = run(stream, options(at, "latest")).account
        assert windows[at] == {**case.closed, **case.open, **case.again}
        late = 0 if case.again else case.late
        assert (account.counted, account.late) == (total(case) - late, late)


def all_go_on(queries: list[Any]) -> bool:
    """Whether no query has ended; one whose process came up too late is begun again when it is asked."""
    return all(query.isActive for query in queries)


@pytest.mark.slow
@pytest.mark.kafka
@pytest.mark.spark
def test_spark_closes_windows_beside_silence(
    spark: Any, kafka: Any, topics: list[str], tmp_path: Path
) -> None:
    windows, queries, ending = [Windows() for _ in CASES], [], tmp_path / "end"
    try:
        for at, topic in enumerate(topics):
            stream = stream_of(CASES[at], source_of(topic, kafka.bootstrap_servers))
            settings = {"endFile": str(ending)}
            table = on_spark(
                stream,
                spark,
                dead_letters=None,
                idle_seconds=IDLE_SECONDS,
                options=settings,
                close_at_end=True,
            )
            queries.append(write(table, tmp_path / str(at), windows[at].take))
        wait_for(lambda: all_go_on(queries) and windows == [case.closed for case in CASES])
        send_later(kafka, topics)
        read = [total(case) for case in CASES]
        wait_for(lambda: all_go_on(queries) and [account_of(one).read for one in queries] == read)
        ending.touch()
        for one, case, own in zip(queries, CASES, windows):
            one.processAllAvailable()
            one.processAllAvailable()
            assert own == {**case.closed, **case.open}
            account = account_of(one)
            assert (account.counted, account.late) == (total(case) - case.late, case.late)
    finally:
        for one in queries:
            one.end()
