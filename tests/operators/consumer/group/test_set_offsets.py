"""Offsets that the usual tools of Kafka have set: nothing is left out unless that was requested."""

from __future__ import annotations

import logging
from typing import Any

import polars as pl
import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition

from streamgauge.operators.consumer.group.reset import committed_offsets
from streamgauge.operators.consumer.group.set_offsets import OffsetsAhead
from streamgauge.operators.consumer.group.skip import skip
from streamgauge.operators.consumer.options import RunOptions
from streamgauge.operators.consumer.runner import run
from streamgauge.operators.definition.aggregates import count, distinct, top_k
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.kafka.topics import admin, end_offsets
from streamgauge.operators.watermarks.position import Input
from streamgauge.shared_runs import run_together

from ..runs import Windows, run_and_ask

pytestmark = pytest.mark.kafka


def set_offset(topic: Any, partition: int, offset: int) -> None:
    """What ``kafka-consumer-groups --reset-offsets`` does: an offset, and no metadata."""
    client = admin({"bootstrap.servers": topic.kafka.bootstrap_servers})
    wanted = ConsumerGroupTopicPartitions(topic.topic, [TopicPartition(topic.topic, partition, offset)])
    client.alter_consumer_group_offsets([wanted])[topic.topic].result(60)


@pytest.mark.slow
@pytest.mark.parametrize(
    "delivery", ["exactly_once", "effectively_once", pytest.param("at_least_once", marks=pytest.mark.soak)]
)
def test_an_offset_ahead_is_refused_and_skipped_on_request(
    kafka: Any, posts: Any, same: Any, delivery: Any
) -> None:
    topic, windows, server = posts(2), Windows(), kafka.bootstrap_servers
    options: Any = {"group_id": topic.topic, "delivery": delivery, "until": "latest", "table_partitions": 2}
    topic.send(1_000)
    # The windows that are open at the end must continue with what they hold.
    run(topic.stream, RunOptions(**options, on_window=windows))
    topic.send(600)
    table = f"{topic.topic}.table.{topic.stream.fingerprint()}"
    client = admin({"bootstrap.servers": server})
    log = end_offsets(client, [(table, 0), (table, 1)])

    set_offset(topic, 1, 700)
    with pytest.raises(
        OffsetsAhead,
        match=r"counted .*\[1\] up to offset 500.* set to 700 .*leave out 200 offsets "
        r"\(500 … 699\).*set the offset back to 500.*groups skip",
    ):
        run(topic.stream, RunOptions(**options))
    assert end_offsets(client, [(table, 0), (table, 1)]) == log, "something was written"

    assert skip(topic.topic, bootstrap_servers=server) == {(topic.topic, 1): 700}
    summary = run_and_ask(topic.stream, RunOptions(**options, on_window=windows))
    del topic.sent[1][500:700]
    wanted, account = topic.one_pass()
    assert summary.account.skipped == 200 and summary.account.balanced
    counts = summary.account.to_dict()
    assert (counts.pop("skipped"), counts, summary.lag) == (200, account.to_dict(), 0)
    assert "200 skipped" in repr(summary)
    same(windows.table(), wanted)

    # To the end of one partition, and the run goes on from there.
    topic.send(200)
    assert skip(topic.topic, "latest", partitions=[(topic.topic, 0)], bootstrap_servers=server) == {
        (topic.topic, 0): 900
    }
    summary = run_and_ask(topic.stream, RunOptions(**options))
    assert (summary.account.skipped, summary.account.read, summary.lag) == (300, account.read + 100, 0)


def test_an_offset_that_was_set_back_counts_nothing_twice(kafka: Any, posts: Any, caplog: Any) -> None:
    topic = posts(1)
    options: Any = {"group_id": topic.topic, "until": "latest"}
    topic.send(300)
    run(topic.stream, RunOptions(**options))
    topic.send(100)
    set_offset(topic, 0, 350)
    with pytest.raises(OffsetsAhead):
        run(topic.stream, RunOptions(**options))
    set_offset(topic, 0, 120)
    with caplog.at_level(logging.WARNING, "streamgauge.kafka"):
        assert run(topic.stream, RunOptions(**options)).account == topic.one_pass()[1]
    assert "was set back to 120: continuing at 300" in caplog.text
    assert "groups reset" in caplog.text


def test_what_can_not_be_skipped_is_named(kafka: Any, posts: Any) -> None:
    topic, server = posts(1), kafka.bootstrap_servers
    topic.send(300)
    run(topic.stream, RunOptions(group_id=topic.topic, until="latest"))
    wrong: list[tuple[Any, Any, str]] = [
        (None, (), "no offset of the group .* was set by another program; say which"),
        (
            100,
            (),
            r"to must be at or after .*\[0\], offset 300, got 100\. Nothing was.*groups reset",
        ),
        (301, (), "offset 301 is not in"),
        ("latest", [("likes", 0)], r"partitions must be among .*\[0\].*, got likes\[0\]"),
    ]
    for to, partitions, reported in wrong:
        with pytest.raises(ValueError, match=reported):
            skip(topic.topic, to, partitions=partitions, bootstrap_servers=server)
    set_offset(topic, 0, 400)
    with pytest.raises(ValueError, match=r"offset 400 is not in .*write one from 0 to 300"):
        skip(topic.topic, bootstrap_servers=server)
    with pytest.raises(OffsetsAhead, match=r"set to 400 .*the log ends at 300.*set it to 300, or run"):
        run(topic.stream, RunOptions(group_id=topic.topic, until="latest"))
    with pytest.raises(ValueError, match="has no offsets: check its name"):
        skip(f"{topic.topic}x", bootstrap_servers=server)


@pytest.mark.slow
@pytest.mark.parametrize("together", [False, True])
def test_a_skip_that_would_go_back_is_refused_whoever_set_the_offset(
    kafka: Any, posts: Any, together: bool
) -> None:
    topic, server = posts(2), kafka.bootstrap_servers
    client = admin({"bootstrap.servers": server})
    topic.send(1_000)
    if together:
        run_together({"a": topic.stream, "b": topic.stream}, group_id=topic.topic, until="latest")
    else:
        run(topic.stream, RunOptions(group_id=topic.topic, until="latest"))
    topic.send(600)
    behind = (
        rf"at or after what the group has counted of .*\[1\], offset 500, got {{}}.*othing was written"
        rf".*--topic {topic.topic} --partition 1 --offset 500 .*groups reset"
    )
    # By another program: ahead, where the group is, and back.
    for by_hand in (700, 500, 120):
        set_offset(topic, 1, by_hand)
        before = committed_offsets(client, topic.topic)
        for to, partitions in ((499, [(topic.topic, 1)]), ({(topic.topic, 0): 600, (topic.topic, 1): 0}, ())):
            got = to if isinstance(to, int) else 0
            with pytest.raises(ValueError, match=behind.format(got)):
                skip(topic.topic, to, partitions=partitions, bootstrap_servers=server)
        assert committed_offsets(client, topic.topic) == before
    with pytest.raises(ValueError, match=behind.format(120)):
        skip(topic.topic, bootstrap_servers=server)
    assert committed_offsets(client, topic.topic) == before

    # By an earlier skip, which may be taken back to where the group is.
    for to in (700, 600, 500):
        skip(topic.topic, to, partitions=[(topic.topic, 1)], bootstrap_servers=server)
        with pytest.raises(ValueError, match=behind.format(499)):
            skip(topic.topic, 499, partitions=[(topic.topic, 1)], bootstrap_servers=server)
        assert committed_offsets(client, topic.topic)[Input(topic.topic, 1)][0] == to


@pytest.mark.slow
def test_streams_that_run_together_all_skip_the_same(kafka: Any, posts: Any, same: Any) -> None:
    topic, server = posts(2), kafka.bootstrap_servers
    odd, even = Stream(topic.stream.source, topic.stream.time).branch(pl.col("user") % 2 == 1)
    streams = {
        name: branch.tumbling("10s", delay="2s").agg(
            posts=count(), users=distinct("user"), tags=top_k("tags", k=3)
        )
        for name, branch in (("odd", odd), ("even", even))
    }
    windows = {name: Windows() for name in streams}
    options: Any = {"group_id": topic.topic, "until": "latest", "progress": False}
    topic.send(1_000)
    run_together(streams, **options, on_window=windows)
    topic.send(600)
    set_offset(topic, 1, 700)
    with pytest.raises(OffsetsAhead, match="leave out 200 offsets"):
        run_together(streams, **options)
    assert skip(topic.topic, bootstrap_servers=server) == {(topic.topic, 1): 700}
    topic.send(400)
    summaries = run_together(streams, **options, on_window=windows)
    del topic.sent[1][500:700]
    for name, stream in streams.items():
        wanted, account = topic.one_pass(stream)
        counts = summaries[name].account.to_dict()
        assert (counts.pop("skipped"), counts) == (200, account.to_dict())
        same(windows[name].table(), wanted)
    # The skip is over: who runs again reads on.
    topic.send(200)
    summaries = run_together(streams, **options)
    assert [one.account.skipped for one in summaries.values()] == [200, 200]
    assert {one.account.read for one in summaries.values()} == {2_000}
