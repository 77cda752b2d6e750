"""Silence on a real broker: what idles, what doesn't, and that no row is condemned by it."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from confluent_kafka import Producer

from streamgauge.operators.consumer.options import RunOptions
from streamgauge.operators.consumer.run import Run
from streamgauge.operators.consumer.run_plan import Plan
from streamgauge.operators.consumer.runner import start
from streamgauge.operators.consumer.worker.idle_detector import HighWatermarks, IdleDetector
from streamgauge.operators.definition.aggregates import count
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.formats.json.decoder import json
from streamgauge.operators.sketching.account import Account
from streamgauge.operators.sketching.message_warnings import Remarks
from streamgauge.operators.sketching.partition_buffer import PartitionBuffer
from streamgauge.operators.sketching.partition_state import PartitionState
from streamgauge.operators.watermarks.position import Input

from ....waiting import until

pytestmark = pytest.mark.kafka

NOW = int(datetime.now(UTC).timestamp()) // 60 * 60 - 600


def stream_of(kafka: Any, topic: str) -> Stream:
    source = Stream.from_kafka(
        topic,
        value=json({"at": pl.Int64}),
        time=pl.from_epoch("at", time_unit="s"),
        bootstrap_servers=kafka.bootstrap_servers,
    )
    return source.tumbling("10s", delay="5s").agg(posts=count())


def idle(run: Run) -> set[int]:
    """The partitions that count as idle."""
    return {p for state in run._only.merger.states() for (_, p), mark in state.marks.items() if mark.idle}


@contextmanager
def running(kafka: Any, topic: str, **options: Any) -> Iterator[Run]:
    result = start(
        stream_of(kafka, topic), RunOptions(**{"idle_seconds": 0.3, "checkpoint_seconds": 0.1, **options})
    )
    try:
        yield result
    finally:
        result.stop()
        result.wait(120)


def send(producer: Producer, topic: str, seconds: range, partition: int) -> None:
    for second in seconds:
        producer.produce(topic, b'{"at":%d}' % (NOW + second), partition=partition)
    assert producer.flush(120) == 0


@pytest.fixture
def topic(kafka: Any) -> Callable[[int], str]:
    def make(partitions: int) -> str:
        name = f"silence-{uuid.uuid4().hex[:8]}"
        kafka.create_topic(name, partitions=partitions)
        return name

    return make


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.soak)])
def test_an_empty_topic_that_wakes_loses_no_row(
    kafka: Any, topic: Callable[[int], str], workers: int
) -> None:
    name = topic(4)
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "enable.idempotence": True})
    with running(kafka, name, workers=workers, idle_seconds=1.5) as run:
        until(lambda: idle(run) == {0, 1, 2, 3})
        for second in range(100):
            producer.produce(name, b'{"at":%d}' % (NOW + second), partition=second % 4)
        assert producer.flush(120) == 0
        until(lambda: run.summary().account.read == 100)
        assert run.summary().account == Account(read=100, counted=100)
        until(lambda: sum(run.summary().table.column("posts").to_pylist()) >= 90)


@pytest.mark.slow
def test_the_backlog_of_a_pause_counts_after_a_restart_with_several_table_partitions(
    kafka: Any, topic: Callable[[int], str]
) -> None:
    name, reported = topic(1), list[dict[tuple[int, int], int]]()
    source = stream_of(kafka, name).source
    parity = Stream(source, pl.from_epoch("at", time_unit="s")).with_columns(odd=pl.col("at") % 2)
    keyed = parity.group_by("odd").tumbling("10s", delay="0s").agg(posts=count())

    def on_window(table: pa.Table) -> None:
        for row in table.to_arrow().select(["window_start", "odd", "posts"]).to_pylist():
            reported[-1][int(row["window_start"].timestamp()) - NOW, row["odd"]] = row["posts"]

    options = {"group_id": name, "on_window": on_window, "table_partitions": 4, "checkpoint_seconds": 0.1}
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "enable.idempotence": True})

    @contextmanager
    def run() -> Iterator[Run]:
        reported.append({})
        result = start(keyed, RunOptions(idle_seconds=0.3, **options))
        try:
            yield result
        finally:
            result.drain(300)  # which waits until it is stored that a window was emitted

    send(producer, name, range(10), 0)
    with run():
        until(lambda: len(reported[0]) == 2)
    with run() as second:
        until(lambda: idle(second) == {0})
        assert reported == [{(0, 0): 5, (0, 1): 5}, {}]
        send(producer, name, range(9, 25), 0)
        wanted = {(0, 1): 6, (10, 0): 5, (10, 1): 5}
        until(lambda: {key: posts for key, posts in reported[1].copy().items() if key[0] < 20} == wanted)
        until(lambda: second.summary().account.read == 26)
        assert second.summary().account == Account(read=26, counted=26)
    assert {key: posts for key, posts in reported[1].items() if key[0] < 20} == wanted


def test_what_lies_behind_an_open_transaction_is_not_idle(kafka: Any, topic: Callable[[int], str]) -> None:
    name = topic(2)
    settings = {"bootstrap.servers": kafka.bootstrap_servers}
    plain = Producer(settings)
    transactional = Producer({**settings, "transactional.id": name})
    transactional.init_transactions(120)
    with running(kafka, name) as run:
        send(plain, name, range(10), 0)
        until(lambda: idle(run) == {0, 1})
        transactional.begin_transaction()
        send(transactional, name, range(10, 60), 0)
        # Behind it, and committed: nobody may read it yet.
        send(plain, name, range(60, 70), 0)
        send(plain, name, range(80), 1)
        until(lambda: run.summary().account.read == 90)
        until(lambda: idle(run) == {1})
        assert run.summary().account.read == 90
        transactional.commit_transaction(120)
        until(lambda: run.summary().account.read == 150)
        assert run.summary().account == Account(read=150, counted=150)
        until(lambda: idle(run) == {0, 1})


def test_bad_messages_that_never_cease_hold_no_window_open(kafka: Any, topic: Callable[[int], str]) -> None:
    name = topic(2)
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "enable.idempotence": True})
    with running(kafka, name, dead_letters=None) as run:
        send(producer, name, range(60), 0)

        def is_emitted() -> bool:
            for _ in range(20):
                producer.produce(name, b"oops", partition=1)
            producer.poll(0)
            return sum(run.summary().table.column("posts").to_pylist()) >= 50

        until(is_emitted)
        assert producer.flush(120) == 0
        assert run.summary().account.late == 0


def test_a_partition_that_was_read_to_its_end_rests_for_good_in_a_bounded_run(kafka: Any) -> None:
    plan = Plan(
        stream_of(kafka, "posts"),
        "group",
        "table",
        {"posts": 3},
        ends={Input("posts", 0): 2, Input("posts", 1): 5},
    )
    now = [7.0]
    intake, idleness = (
        PartitionBuffer(Remarks("posts", {}), plan.ends),
        IdleDetector(plan, HighWatermarks(lambda: None), lambda: now[0]),
    )
    for where in plan.inputs:
        intake.add_partition(PartitionState(plan.stream, *where, 0), [])
        idleness.track(where)
    intake.skip_to(Input("posts", 0), 2)
    idleness.update(intake, {}, renew=True)
    ended = {p for (_, p), own in intake.progress.items() if own.rest is not None and own.rest.ended}
    assert ended == {0, 2}
    first, now[0] = intake.progress["posts", 0].rest, 8.0
    idleness.update(intake, {}, renew=False)
    assert intake.progress["posts", 0].rest == first
    idleness.update(intake, {}, renew=True)
    assert intake.progress["posts", 0].rest.us == first.us + 1_000_000


def test_a_wall_clock_that_is_set_back_stops_no_checkpoint(
    kafka: Any, topic: Callable[[int], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    name = topic(1)
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "enable.idempotence": True})
    with running(kafka, name) as run:
        send(producer, name, range(10), 0)
        until(lambda: run.summary().account.read == 10)
        real = time.time
        monkeypatch.setattr(time, "time", lambda: real() - 86_400)
        send(producer, name, range(10, 40), 0)
        until(lambda: run.summary().account == Account(read=40, counted=40))
        until(lambda: idle(run) == {0})
