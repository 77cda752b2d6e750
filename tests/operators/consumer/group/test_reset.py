"""A group that was reset counts again from there, with nothing left of what was counted before."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import polars as pl
import pytest
from confluent_kafka import TIMESTAMP_CREATE_TIME, Consumer, TopicPartition

from streamgauge.operators.consumer.group.reset import GroupInUse, reset, wait_until_gone
from streamgauge.operators.consumer.options import RunOptions
from streamgauge.operators.consumer.runner import run, start
from streamgauge.operators.definition.aggregates import count
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.kafka.topics import TopicError, admin, remove
from streamgauge.operators.watermarks.position import Input
from streamgauge.shared_runs import run_together

from ....waiting import until
from ..runs import Windows, run_and_ask

pytestmark = pytest.mark.kafka


def timestamps(kafka: Any, topic: str, partition: int) -> list[int]:
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap_servers, "group.id": "look"})
    try:
        where = TopicPartition(topic, partition, 0)
        _, end = consumer.get_watermark_offsets(where, timeout=120)
        consumer.assign([where])
        collected: list[int] = []
        while len(collected) < end:
            for message in consumer.consume(end - len(collected), 10):
                kind, stamp = message.timestamp()
                assert kind == TIMESTAMP_CREATE_TIME
                collected.append(stamp)
        return collected
    finally:
        consumer.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    "delivery", ["exactly_once", pytest.param("effectively_once", marks=pytest.mark.soak)]
)
def test_a_group_counts_again_from_where_it_was_reset_to(
    kafka: Any, posts: Any, same: Any, delivery: Any
) -> None:
    topic, windows = posts(2), Windows()
    options: Any = {"group_id": topic.topic, "delivery": delivery, "until": "latest", "on_window": windows}
    server = kafka.bootstrap_servers

    topic.send(1_000)
    run(topic.stream, RunOptions(**options))
    topic.send(1_000)
    windows.tables.clear()
    assert reset(topic.topic, "earliest", bootstrap_servers=server) == {(topic.topic, p): 0 for p in (0, 1)}
    summary = run_and_ask(topic.stream, RunOptions(**options))
    table, account = topic.one_pass()
    assert (summary.account, summary.duplicates, summary.lag) == (account, 0, 0)
    same(windows.table(), table)

    assert reset(topic.topic, "latest", bootstrap_servers=server) == {(topic.topic, p): 1_000 for p in (0, 1)}
    topic.send(500)
    summary = run_and_ask(topic.stream, RunOptions(**options))
    assert (summary.account.read, summary.lag) == (500, 0)

    by_time = reset(topic.topic, datetime(2000, 1, 1), bootstrap_servers=server)
    assert by_time == {(topic.topic, p): 0 for p in (0, 1)}
    stamps = timestamps(kafka, topic.topic, 0)
    middle = datetime.fromtimestamp(stamps[600] / 1000, UTC)
    result = reset(topic.topic, middle, bootstrap_servers=server)[Input(topic.topic, 0)]
    assert result == next(at for at, stamp in enumerate(stamps) if stamp >= stamps[600])

    reset(topic.topic, {(topic.topic, 0): 1_200, (topic.topic, 1): 0}, bootstrap_servers=server)
    # Another definition may go on: of the first, nothing is left.
    other = Stream(topic.stream.source, topic.stream.time).tumbling("1m").agg(posts=count())
    summary = run_and_ask(other, RunOptions(**options))
    assert (summary.account.read, summary.lag) == (50 + 1_250, 0)


@pytest.mark.soak
def test_streams_that_run_together_are_set_back_together(kafka: Any, posts: Any) -> None:
    topic = posts(2)
    odd, even = Stream(topic.stream.source, topic.stream.time).branch(pl.col("user") % 2 == 1)
    aggregates = {
        name: s.tumbling("10s", delay="2s").agg(posts=count()) for name, s in (("o", odd), ("e", even))
    }
    options: Any = {"group_id": topic.topic, "until": "latest", "progress": False}
    # Another group, whose table topic is called like that of a stream.
    run(aggregates["o"], RunOptions(group_id=f"{topic.topic}.third", until="latest"))
    for n, to in ((500, "earliest"), (500, "latest"), (300, None)):
        topic.send(n)
        result = run_together(aggregates, **options)
        if to is not None:
            assert all(result[name].account == topic.one_pass(aggregates[name])[1] for name in aggregates)
            reset(topic.topic, to, bootstrap_servers=kafka.bootstrap_servers)
    assert [result[name].account.read for name in aggregates] == [300, 300]
    topics = admin({"bootstrap.servers": kafka.bootstrap_servers}).list_topics(timeout=120).topics
    assert f"{topic.topic}.third.table.{aggregates['o'].fingerprint()}" in topics


def test_a_group_with_members_is_left_alone(kafka: Any, posts: Any) -> None:
    topic = posts(1, **{"session.timeout.ms": 60_000})  # it stays a member, however slow
    topic.send(100)
    running = start(topic.stream, RunOptions(group_id=topic.topic, checkpoint_seconds=0.1))
    until(lambda: running.summary().account.read == 100)
    with pytest.raises(GroupInUse, match=r"has members \(1, on .*stop its runs first"):
        reset(topic.topic, "earliest", bootstrap_servers=kafka.bootstrap_servers)
    topic.send(100)
    until(lambda: running.summary().account.read == 200)
    running.stop()
    assert running.wait(120).account == topic.one_pass()[1]


def test_a_group_is_reset_that_lost_its_offsets_with_its_topic(kafka: Any, posts: Any) -> None:
    topic, server = posts(1), kafka.bootstrap_servers
    topic.send(100)
    options = RunOptions(group_id=topic.topic, until="latest")
    run(topic.stream, options)
    client = admin({"bootstrap.servers": server})
    remove(client, [topic.topic], [])
    wait_until_gone(client, [topic.topic])
    kafka.create_topic(topic.topic)
    with pytest.raises(TopicError, match=r"was deleted and recreated .*groups reset GROUP"):
        run(topic.stream, options)
    assert reset(topic.topic, "earliest", bootstrap_servers=server) == {(topic.topic, 0): 0}
    assert run(topic.stream, options).account.read == 0


def test_places_that_are_not_there_change_nothing(kafka: Any, posts: Any) -> None:
    topic = posts(2)
    topic.send(100)
    options: Any = {"group_id": topic.topic, "until": "latest"}
    run(topic.stream, RunOptions(**options))
    before = set(admin(topic.stream.source.settings).list_topics(timeout=120).topics)
    for to, reported in {
        51: "offset 51 is not in .*which holds 0 to 49; write one from 0 to 50",
        -1: "offset -1 is not in",
        "tomorrow": "to must be \"earliest\", .* got 'tomorrow'",
    }.items():
        with pytest.raises(ValueError, match=reported):
            reset(topic.topic, to, bootstrap_servers=kafka.bootstrap_servers)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"leave out .*\[1\]"):
        reset(topic.topic, {(topic.topic, 0): 5}, bootstrap_servers=kafka.bootstrap_servers)
    with pytest.raises(ValueError, match=r"neither offsets nor a table topic: check its name.*--topic NAME"):
        reset(f"{topic.topic}x", "latest", bootstrap_servers=kafka.bootstrap_servers)
    assert before == set(admin(topic.stream.source.settings).list_topics(timeout=120).topics)
    assert run(topic.stream, RunOptions(**options)).account == topic.one_pass()[1]
