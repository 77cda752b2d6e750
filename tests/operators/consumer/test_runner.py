"""Streams run straight off a real broker."""

from __future__ import annotations

import atexit
import gc
import logging
import os
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from confluent_kafka import KafkaException

from streamgauge.operators.consumer.group.membership import Membership
from streamgauge.operators.consumer.log.faults import DeltaError
from streamgauge.operators.consumer.log.messages import encode, table_topic
from streamgauge.operators.consumer.runner import Run, run, start
from streamgauge.operators.definition.aggregates import count
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.kafka.topics import TopicError, admin, ensure_topic, partitions_of
from streamgauge.operators.sketching.accounting import Account
from streamgauge.operators.sketching.delta import Delta
from streamgauge.operators.table.merge import merge

pytestmark = pytest.mark.kafka

DELIVERIES = ["exactly_once", "at_least_once"]


class Windows:
    """Closed windows by their start; one that comes again replaces what was known of it."""

    def __init__(self) -> None:
        self.tables: dict[object, pa.Table] = {}

    def __call__(self, table: pa.Table) -> None:
        self.tables[table.column("window_start")[0].as_py()] = table

    def table(self) -> pa.Table:
        return merge(self.tables.values())


def until(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not come to pass"
        time.sleep(0.05)


def read(kafka: Any, topic: str) -> list[Any]:
    from confluent_kafka import Consumer, KafkaError, TopicPartition

    consumer = Consumer(
        {"bootstrap.servers": kafka.bootstrap_servers, "group.id": "look", "enable.partition.eof": True}
    )
    found: list[Any] = []
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        while (message := consumer.poll(20)) is not None:
            if message.error() is not None:
                assert message.error().code() == KafkaError._PARTITION_EOF
                return found
            found.append(message)
        raise AssertionError("the topic didn't answer")
    finally:
        consumer.close()


def kill_9(broker: Any) -> None:
    """End the broker as a power cut would; its watchdog ends by itself then."""
    children = Path(f"/proc/{broker.pid}/task/{broker.pid}/children")
    for pid in map(int, children.read_text().split()) if children.exists() else [broker.pid]:
        os.kill(pid, signal.SIGKILL)
    until(lambda: not broker.running)


@pytest.mark.parametrize("delivery", DELIVERIES)
def test_a_bounded_run_gives_what_one_pass_gives(kafka, posts, same, delivery: str) -> None:
    topic = posts()
    topic.send(9_000)
    summary = run(topic.stream, delivery=delivery, until="latest", checkpoint_seconds=0.1)
    table, account = topic.one_pass()
    assert account.balanced
    assert summary.account == account
    assert account.dead_lettered == 18 and account.filtered > 0 and account.late > 0
    same(summary.table, table)
    assert (summary.lag, summary.duplicates, summary.overlaps) == (0, 0, 0)
    letters = read(kafka, f"{topic.topic}.dead-letters")
    assert len(letters) == 18
    for letter in letters:
        told = {name: value.decode() for name, value in letter.headers()}
        assert topic.sent[int(told["partition"])][int(told["offset"])] == letter.value()
        assert told["reason"] and told["topic"] == topic.topic


@pytest.mark.parametrize("delivery", DELIVERIES)
def test_a_later_run_of_the_group_goes_on_where_the_last_ended(posts, same, delivery: str) -> None:
    topic, windows = posts(), Windows()
    options = {"delivery": delivery, "until": "latest", "group_id": topic.topic, "on_window": windows}
    for n in (4_000, 0, 500, 4_500):
        topic.send(n)
        summary = run(topic.stream, **options)
        assert summary.account == topic.one_pass()[1]
    same(windows.table(), topic.one_pass()[0])
    assert summary.duplicates == 0


def test_groups_are_spread_over_several_table_partitions(posts) -> None:
    topic = posts()
    topic.send(3_000)
    stream = topic.stream
    keyed = Stream(stream.source, stream.time).group_by("user").tumbling("10s").agg(posts=count())
    summary = run(keyed, until="latest", table_partitions=3)
    table, account = topic.one_pass(keyed)
    assert summary.account == account
    assert merge(summary.table).equals(merge(table))


@pytest.mark.parametrize("delivery", DELIVERIES)
def test_kill_9_of_a_worker_process_loses_and_repeats_nothing(posts, same, delivery: str) -> None:
    topic, windows = posts(4), Windows()
    options = {"delivery": delivery, "group_id": topic.topic, "on_window": windows, "checkpoint_seconds": 0.1}
    running = start(topic.stream, workers=2, **options)
    for round in range(6):
        topic.send(2_000)
        seen = running.summary().account.read
        until(lambda seen=seen: running.summary().account.read > seen)
        if round in (1, 3):
            os.kill(running.worker_pids[round % 2], signal.SIGKILL)
    until(lambda: running.summary().account.read == 12_000)
    running.stop()
    assert running.wait(60).account == topic.one_pass()[1]
    summary = run(topic.stream, until="latest", **options)
    assert summary.account == topic.one_pass()[1]
    assert summary.overlaps == 0
    same(windows.table(), topic.one_pass()[0])


def test_a_worker_that_dies_between_its_deltas_and_its_commit_repeats_nothing(
    posts, same, monkeypatch
) -> None:
    topic, windows = posts(), Windows()
    topic.send(3_000)
    options = {"delivery": "at_least_once", "group_id": topic.topic, "on_window": windows, "until": "latest"}

    def die(self: Membership, places: object) -> None:
        raise SystemError("struck by lightning")

    with monkeypatch.context() as patch:
        patch.setattr(Membership, "commit", die)
        with pytest.raises(SystemError, match="lightning"):
            run(topic.stream, **options)
    topic.send(3_000)
    summary = run(topic.stream, **options)
    table, account = topic.one_pass()
    assert (summary.account, summary.duplicates, summary.overlaps) == (account, 0, 0)
    same(windows.table(), table)


def test_two_runs_share_a_group_and_hand_over(posts, same) -> None:
    topic, windows = posts(4), Windows()
    options = {"group_id": topic.topic, "on_window": windows, "checkpoint_seconds": 0.1}
    one = start(topic.stream, **options)
    topic.send(2_000)
    until(lambda: one.summary().account.read > 0)
    two = start(topic.stream, **options)
    until(lambda: two.assigned == 2)
    topic.send(2_000)
    until(lambda: one.summary().account.read + two.summary().account.read >= 4_000)
    one.stop()
    one.wait(60)
    topic.send(2_000)
    until(lambda: two.summary().account.read == 6_000)
    two.stop()
    assert two.wait(60).account == topic.one_pass()[1]
    run(topic.stream, until="latest", **options)
    same(windows.table(), topic.one_pass()[0])


def test_windows_close_on_an_idle_stream(kafka, posts) -> None:
    from confluent_kafka import Producer

    topic, windows = posts(2), Windows()
    stream = Stream(topic.stream.source, topic.stream.time).tumbling("2s", delay="0s").agg(posts=count())
    running = start(stream, on_window=windows, idle_seconds=0.3, checkpoint_seconds=0.1)
    now = int(datetime.now(UTC).timestamp() * 1e6)
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    producer.produce(topic.topic, f'{{"user": 1, "at": {now}, "tags": []}}'.encode(), partition=0)
    producer.flush(30)
    until(lambda: bool(windows.tables))
    running.stop()
    assert running.wait(60).account == Account(read=1, counted=1)
    assert windows.table().column("posts").to_pylist() == [1]


def test_a_broker_that_goes_away_is_waited_for(posts, same, tmp_path, caplog) -> None:
    from streamgauge.apps.kafka.broker import EmbeddedKafka

    with EmbeddedKafka(data=tmp_path / "kafka") as broker:
        topic, windows = posts(broker=broker), Windows()
        topic.send(3_000)
        options = {"group_id": topic.topic, "on_window": windows, "checkpoint_seconds": 0.1}
        running = start(topic.stream, **options)
        until(lambda: running.summary().account.read == 3_000)
        with caplog.at_level(logging.WARNING, "streamgauge.kafka"):
            kill_9(broker)
            until(lambda: "waiting" in caplog.text)
            broker.start()
        topic.send(3_000)
        until(lambda: running.summary().account.read == 6_000)
        assert running.running
        broker.stop()
        running.stop()
        running.wait(40)
        broker.start()
        summary = run(topic.stream, until="latest", **options)
        assert summary.account == topic.one_pass()[1]
        same(windows.table(), topic.one_pass()[0])


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="threads of C code are looked up in /proc")
@pytest.mark.parametrize("delivery", DELIVERIES)
def test_a_run_leaves_no_connection_behind(posts, delivery: str) -> None:
    def connections() -> int:
        tasks = Path("/proc/self/task").glob("*/comm")
        return sum(task.read_text().startswith("rdk:") for task in tasks)

    topic = posts(2)
    topic.send(100)
    options = {"group_id": topic.topic, "until": "latest", "delivery": delivery}
    run(topic.stream, **options)
    gc.collect()
    gc.disable()  # nor must it wait for a collection
    try:
        before = connections()
        run(topic.stream, **options)
        until(lambda: connections() <= before, 20)
    finally:
        gc.enable()


def test_ends_behind_markers_of_transactions_are_reached(posts, same) -> None:
    topic = posts(2)
    topic.send(1_000, transaction=True)
    summary = run(topic.stream, until="latest").account, run(topic.stream, until="latest").table
    table, account = topic.one_pass()
    assert summary[0] == account
    same(summary[1], table)


def test_an_empty_topic_gives_an_empty_table(posts) -> None:
    summary = run(posts().stream, until="latest")
    assert summary.account == Account() and summary.table.num_rows == 0 and summary.windows().height == 0


def test_a_topic_that_does_not_exist_is_named(posts) -> None:
    stream = posts().stream
    missing = Stream.from_kafka(
        "nowhere", value=stream.source.value, bootstrap_servers=stream.source.bootstrap_servers
    )
    with pytest.raises(TopicError, match="no topic 'nowhere'"):
        run(missing.tumbling("1m").agg(posts=count()), until="latest")


def test_a_stream_of_frames_can_not_be_run() -> None:
    stream = Stream.from_batches({"at": pl.Datetime("us")}, time="at").tumbling("1m").agg(posts=count())
    with pytest.raises(TypeError, match="from_kafka"):
        run(stream)


def test_deltas_of_another_definition_are_refused_by_name(kafka, posts) -> None:
    from confluent_kafka import Producer

    topic = posts()
    topic.send(100)
    stream, group = topic.stream, topic.topic
    name = table_topic(group, stream.fingerprint())
    ensure_topic(admin({"bootstrap.servers": kafka.bootstrap_servers}), name, 1)
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    for message in encode(Delta("0123456789abcdef", topic.topic, 0, 0, 5, None), name, 1):
        producer.produce(name, message.value, headers=list(message.headers), partition=0)
    producer.flush(30)
    with pytest.raises(DeltaError, match=f"0123456789abcdef.*{stream.fingerprint()}"):
        run(stream, until="latest", group_id=group)


@pytest.mark.parametrize("delivery", DELIVERIES)
def test_what_failed_half_way_is_not_delivered(posts, same, monkeypatch, delivery: Any) -> None:
    topic = posts()
    topic.send(3_000)
    options = {"delivery": delivery, "group_id": topic.topic, "until": "latest"}
    second: Any = [*topic.stream.aggregates][1]
    groups = topic.stream.aggregates[second].family.groups_class()

    def fail(self: object, *columns: object, **inputs: object) -> None:
        raise SystemError("struck by lightning")

    with monkeypatch.context() as patch:
        patch.setattr(groups, "update", fail)
        with pytest.raises(SystemError, match="lightning"):
            run(topic.stream, **options)
    summary = run(topic.stream, **options)
    table, account = topic.one_pass()
    assert (summary.account, summary.duplicates, summary.overlaps) == (account, 0, 0)
    same(summary.table, table)


def test_a_callback_that_fails_ends_the_run_with_its_error(posts) -> None:
    topic = posts()
    topic.send(300)

    def fail(table: pa.Table) -> None:
        raise LookupError("no room on the wall")

    with pytest.raises(LookupError, match="no room"):
        run(topic.stream, until="latest", on_window=fail)


def test_a_slow_callback_holds_nobody_up_who_looks_at_the_run(posts) -> None:
    topic = posts(1)
    topic.send(3_000)
    entered, go_on = threading.Event(), threading.Event()

    def slow(table: pa.Table) -> None:
        entered.set()
        assert go_on.wait(120)

    running = start(topic.stream, on_window=slow)
    try:
        assert entered.wait(60)
        with ThreadPoolExecutor(1) as pool:
            table = pool.submit(running.table)
            # The window that is being handed over and those that still fill, each once.
            starts = table.result(60).column("window_start").to_pylist()
        assert len(starts) == len(set(starts)) > 1
    finally:
        go_on.set()
        running.stop()
        running.wait(60)


def test_a_transaction_timeout_beyond_the_brokers_own_ends_the_run_with_advice(posts) -> None:
    topic = posts(1, **{"transaction.timeout.ms": 2_000_000})
    topic.send(10)
    with pytest.raises(KafkaException, match=r"transaction\.max\.timeout\.ms \(900000"):
        run(topic.stream, until="latest")


def test_a_run_on_its_own_leaves_no_group_and_no_table_topic(kafka, posts) -> None:
    topic = posts()
    topic.send(100)
    client = admin({"bootstrap.servers": kafka.bootstrap_servers})
    running: Run = start(topic.stream, until="latest")
    running.wait(60)
    until(lambda: running.plan.table_topic not in client.list_topics(timeout=10).topics)
    groups = {group.group_id for group in client.list_consumer_groups().result(30).valid}
    assert running.plan.group_id not in groups


def test_brokers_that_do_not_answer_are_named_and_waited_for(caplog) -> None:
    with pytest.raises(TopicError, match=r"no broker answered at 127\.0\.0\.1:1 .*bootstrap_servers"):
        partitions_of(admin({"bootstrap.servers": "127.0.0.1:1"}), "posts", 0.2)
    assert "waiting for an answer from Kafka at 127.0.0.1:1" in caplog.text


def test_ctrl_c_returns_when_the_run_has_ended_and_not_before(posts) -> None:
    topic, closed = posts(1), threading.Event()
    topic.send(3_000)
    before = {thread.name for thread in threading.enumerate()}

    def interrupt() -> None:
        assert closed.wait(120)
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    helper = threading.Thread(target=interrupt)
    helper.start()
    summary = run(topic.stream, on_window=lambda _: closed.set(), checkpoint_seconds=0.1)
    helper.join()
    assert summary.interrupted
    left = {thread.name for thread in threading.enumerate()} - before
    assert [name for name in left if name.startswith("streamgauge-")] == []


def test_a_run_that_its_program_leaves_behind_ends_in_order(posts, monkeypatch) -> None:
    left: list[Callable[[], None]] = []
    monkeypatch.setattr(atexit, "register", left.append)
    monkeypatch.setattr(atexit, "unregister", left.remove)
    running = start(posts(1).stream)
    (abandoned,) = left
    abandoned()
    assert not running.running
    until(lambda: not left)
    assert running.plan.table_topic not in admin(running.plan.config).list_topics(timeout=20).topics
