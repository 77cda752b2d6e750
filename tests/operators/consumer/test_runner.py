"""Streams run straight off a real broker."""

from __future__ import annotations

import atexit
import gc
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from confluent_kafka import KafkaException

from streamgauge.operators.consumer.options import RunOptions
from streamgauge.operators.consumer.run import Run
from streamgauge.operators.consumer.runner import run, start
from streamgauge.operators.consumer.supervision import run_planning
from streamgauge.operators.definition.aggregates import count
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.kafka.topics import TopicError, admin, partitions_of
from streamgauge.operators.sketching.account import Account

from ...waiting import readable, until
from .runs import DELIVERIES, Windows, run_and_ask

pytestmark = pytest.mark.kafka


def read(kafka: Any, topic: str) -> list[Any]:
    from confluent_kafka import Consumer, KafkaError, TopicPartition

    readable(kafka.bootstrap_servers, topic)
    consumer = Consumer(
        {"bootstrap.servers": kafka.bootstrap_servers, "group.id": "look", "enable.partition.eof": True}
    )
    collected: list[Any] = []
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        while (message := consumer.poll(120)) is not None:
            if message.error() is not None:
                assert message.error().code() == KafkaError._PARTITION_EOF
                return collected
            collected.append(message)
        raise AssertionError("the topic didn't answer")
    finally:
        consumer.close()


@pytest.mark.slow
@pytest.mark.parametrize("delivery", DELIVERIES)
def test_a_bounded_run_gives_what_one_pass_gives(kafka, posts, same, delivery: str) -> None:
    topic = posts()
    topic.send(9_000)
    options = RunOptions(delivery=delivery, until="latest", checkpoint_seconds=0.1)
    summary = run_and_ask(topic.stream, options)
    table, account = topic.one_pass()
    assert account.balanced
    assert summary.account == account
    assert account.dead_lettered == 18 and account.filtered > 0 and account.late > 0
    same(summary.table, table)
    assert (summary.lag, summary.duplicates, summary.overlaps) == (0, 0, 0)
    letters = read(kafka, f"{topic.topic}.dead-letters")
    assert len(letters) == 18
    for letter in letters:
        decoded = {name: value.decode() for name, value in letter.headers()}
        assert topic.sent[int(decoded["partition"])][int(decoded["offset"])] == letter.value()
        assert decoded["reason"] and decoded["topic"] == topic.topic


@pytest.mark.slow
def test_windows_close_on_an_idle_stream(kafka, posts) -> None:
    from confluent_kafka import Producer

    topic, windows = posts(2), Windows()
    stream = Stream(topic.stream.source, topic.stream.time).tumbling("2s", delay="0s").agg(posts=count())
    running = start(stream, RunOptions(on_window=windows, idle_seconds=0.3, checkpoint_seconds=0.1))
    now = int(datetime.now(UTC).timestamp() * 1e6)
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "enable.idempotence": True})
    producer.produce(topic.topic, f'{{"user": 1, "at": {now}, "tags": []}}'.encode(), partition=0)
    producer.flush(120)
    until(lambda: bool(windows.tables))
    running.stop()
    assert running.wait(120).account == Account(read=1, counted=1)
    assert windows.table().column("posts").to_pylist() == [1]


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="threads of C code are looked up in /proc")
@pytest.mark.parametrize("delivery", DELIVERIES)
def test_a_run_leaves_no_connection_behind(posts, delivery: str) -> None:
    def connections() -> int:
        tasks = Path("/proc/self/task").glob("*/comm")
        return sum(task.read_text().startswith("rdk:") for task in tasks)

    topic = posts(2)
    topic.send(100)
    options = {"group_id": topic.topic, "until": "latest", "delivery": delivery}
    run(topic.stream, RunOptions(**options))
    gc.collect()
    gc.disable()  # nor must it wait for a collection
    try:
        before = connections()
        run(topic.stream, RunOptions(**options))
        until(lambda: connections() <= before)
    finally:
        gc.enable()


def test_an_empty_topic_gives_an_empty_table(posts) -> None:
    summary = run(posts().stream, RunOptions(until="latest"))
    assert summary.account == Account() and summary.table.num_rows == 0 and summary.windows().height == 0


def test_a_topic_that_does_not_exist_is_named(posts) -> None:
    stream = posts().stream
    missing = Stream.from_kafka(
        "nowhere", value=stream.source.value, bootstrap_servers=stream.source.bootstrap_servers
    )
    with pytest.raises(TopicError, match="no topic 'nowhere'"):
        run(missing.tumbling("1m").agg(posts=count()), RunOptions(until="latest"))


def test_a_stream_of_frames_can_not_be_run() -> None:
    stream = Stream.from_schema({"at": pl.Datetime("us")}, time="at").tumbling("1m").agg(posts=count())
    with pytest.raises(TypeError, match="from_kafka"):
        run(stream, RunOptions())


def test_a_callback_that_fails_ends_the_run_with_its_error(posts) -> None:
    topic = posts()
    topic.send(300)

    def fail(table: pa.Table) -> None:
        raise LookupError("no room on the wall")

    with pytest.raises(LookupError, match="no room"):
        run(topic.stream, RunOptions(until="latest", on_window=fail))


def test_a_slow_callback_holds_nobody_up_who_looks_at_the_run(posts) -> None:
    topic = posts(1)
    topic.send(3_000)
    entered, go_on = threading.Event(), threading.Event()

    def slow(table: pa.Table) -> None:
        entered.set()
        assert go_on.wait(120)

    running = start(topic.stream, RunOptions(on_window=slow))
    try:
        assert entered.wait(120)
        with ThreadPoolExecutor(1) as pool:
            table = pool.submit(running.table)
            # The window that is being handed over and those that still fill, each once.
            starts = table.result(120).column("window_start").to_pylist()
        assert len(starts) == len(set(starts)) > 1
    finally:
        go_on.set()
        running.stop()
        running.wait(120)


def test_a_run_on_its_own_leaves_no_group_and_no_table_topic(kafka, posts) -> None:
    topic = posts()
    topic.send(100)
    client = admin({"bootstrap.servers": kafka.bootstrap_servers})
    running: Run = start(topic.stream, RunOptions(until="latest"))
    running.wait(120)
    until(lambda: running.plan.table_topic not in client.list_topics(timeout=120).topics)
    groups = {group.group_id for group in client.list_consumer_groups().result(120).valid}
    assert running.plan.group_id not in groups


@pytest.mark.parametrize("failing", ["port", "client", "planning"])
def test_a_start_that_fails_leaves_no_topic(kafka, posts, failing: str, monkeypatch) -> None:
    # Only consumers in groups have this setting.
    stream = posts(**({"partition.assignment.strategy": "none"} if failing == "client" else {})).stream
    options = RunOptions(until="latest")
    if failing == "planning":
        monkeypatch.setattr(run_planning, "end_offsets", None)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        if failing == "port":
            options = replace(options, metrics=taken.getsockname()[1])
        with pytest.raises((OSError, KafkaException, TypeError)):
            start(stream, options)
    client = admin({"bootstrap.servers": kafka.bootstrap_servers})
    name = stream.source.topics[0]
    until(lambda: not any(one.startswith(f"{name}.streamgauge-") for one in client.list_topics().topics), 30)


def test_brokers_that_do_not_answer_are_named_and_waited_for(caplog) -> None:
    with pytest.raises(TopicError, match=r"no broker answered at 127\.0\.0\.1:1 .*check the address"):
        partitions_of(admin({"bootstrap.servers": "127.0.0.1:1"}), "posts", 0.2)
    assert "waiting for an answer from Kafka at 127.0.0.1:1" in caplog.text


@pytest.fixture
def heeds_ctrl_c() -> Iterator[None]:
    """SIGINT raises `KeyboardInterrupt`, also where the tests began in a shell's background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("heeds_ctrl_c")
def test_ctrl_c_returns_when_the_run_has_ended_and_not_before(posts) -> None:
    topic, closed = posts(1), threading.Event()
    topic.send(3_000)
    before = {thread.name for thread in threading.enumerate()}

    def interrupt() -> None:
        assert closed.wait(120)
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    helper = threading.Thread(target=interrupt)
    helper.start()
    summary = run(topic.stream, RunOptions(on_window=lambda _: closed.set(), checkpoint_seconds=0.1))
    helper.join()
    assert summary.interrupted
    left = {thread.name for thread in threading.enumerate()} - before
    assert [name for name in left if name.startswith("streamgauge-")] == []


def test_a_run_that_its_program_leaves_behind_ends_in_order(posts, monkeypatch) -> None:
    left: list[Callable[[], None]] = []
    monkeypatch.setattr(atexit, "register", left.append)
    monkeypatch.setattr(atexit, "unregister", left.remove)
    running = start(posts(1).stream, RunOptions())
    (abandoned,) = left
    abandoned()
    assert not running.running
    until(lambda: not left)
    assert running.plan.table_topic not in admin(running.plan.config).list_topics(timeout=120).topics
