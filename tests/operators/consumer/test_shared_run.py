"""Several streams that share one reading: each gets what it would alone, and they begin and end as one."""

from __future__ import annotations

import os
import signal
from typing import Any

import polars as pl
import pytest
from confluent_kafka import Consumer
from prometheus_client import CollectorRegistry

from streamgauge.operators.consumer.error_context import in_words
from streamgauge.operators.consumer.options import RunOptions
from streamgauge.operators.consumer.runner import run
from streamgauge.operators.definition.aggregates import count, distinct
from streamgauge.operators.definition.definition_diff import DefinitionChanged
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.formats.json.decoder import json
from streamgauge.operators.kafka.topics import admin
from streamgauge.operators.sinks.answers_to_kafka import AnswersToKafka
from streamgauge.operators.sinks.sketches_to_kafka import SketchesToKafka
from streamgauge.operators.table.query import query
from streamgauge.operators.table.sketch_table import merge
from streamgauge.queries.views.log_start import table_topic_of
from streamgauge.shared_runs import run_together, start_together

from ...cases import each
from ...waiting import readable, until
from .runs import Windows


def streams_of(topic: Any) -> dict[str, Stream]:
    """Branches of one stream with windows of their own, and one that decodes otherwise."""
    rows = Stream(topic.stream.source, topic.stream.time)
    few, many = rows.branch(pl.col("user") < 100)
    users = Stream.from_kafka(
        topic.topic,
        value=json({"user": pl.Int64, "at": pl.Int64}),
        time=pl.from_epoch("at", time_unit="us"),
        bootstrap_servers=topic.kafka.bootstrap_servers,
        config=dict(topic.stream.source.config),
    )
    return {
        "few": few.tumbling("10s", delay="2s").agg(posts=count(), users=distinct("user")),
        "many": many.tumbling("30s", delay="5s").agg(posts=count()),
        "by-user": users.group_by("user").tumbling("20s", delay="2s").agg(posts=count()),
    }


def messages_in(kafka: Any, topic: str) -> int:
    """How many messages a topic has, those of aborted transactions left out."""
    readable(kafka.bootstrap_servers, topic)
    consumer = Consumer(
        {"bootstrap.servers": kafka.bootstrap_servers, "group.id": topic, "enable.partition.eof": True}
        | {"auto.offset.reset": "earliest"}
    )
    try:
        consumer.subscribe([topic])
        left, messages = len(consumer.list_topics(topic, timeout=120).topics[topic].partitions), 0
        while left:
            message = consumer.poll(120)
            assert message is not None
            left, messages = left - (message.error() is not None), messages + (message.error() is None)
        return messages
    finally:
        consumer.close()


def by_window(table: Any) -> list[dict[str, Any]]:
    """The counts of each window and group, in order."""
    names = [name for name in ("window_start", "user", "posts") if name in table.column_names]
    return sorted(
        query(table).select(names).to_dicts(), key=lambda row: (row["window_start"], row.get("user", 0))
    )


@pytest.mark.slow
@pytest.mark.kafka
def test_each_gets_what_it_would_get_alone_run_after_run(kafka: Any, posts: Any) -> None:
    topic = posts(3)
    streams = streams_of(topic)
    windows = {name: Windows() for name in streams}
    streams["rows"] = Stream(topic.stream.source, topic.stream.time).rows_to_kafka(f"{topic.topic}.rows")
    sinks = {"few": [AnswersToKafka(f"{topic.topic}.few"), SketchesToKafka()], "many": [SketchesToKafka()]}
    to_table = [name for name, own in sinks.items() if SketchesToKafka() in own]
    for n in (3_000, 2_000):
        topic.send(n)
        options = {"on_window": windows, "sinks": sinks, "group_id": topic.topic, "until": "latest"}
        running = start_together(streams, table_partitions=2, **options)
        running.wait(600)
        until(lambda running=running: all(running[name].summary().lag == 0 for name in streams))
        result = {name: running[name].summary() for name in streams}
        for name, stream in streams.items():
            assert (result[name].account, result[name].duplicates) == (topic.one_pass(stream)[1], 0)
    for name in ("few", "many"):
        assert by_window(windows[name].table()) == by_window(topic.one_pass(streams[name])[0])
    # Messages that all of them refuse are dead letters once.
    dead = sum(value == b'{"user": 1, "at' for own in topic.sent for value in own)
    assert dead and messages_in(kafka, f"{topic.topic}.dead-letters") == dead
    assert messages_in(kafka, f"{topic.topic}.few") >= len(windows["few"].tables)
    assert messages_in(kafka, f"{topic.topic}.rows") == result["rows"].account.counted
    # Each has topics of its own, which are found as those of a group.
    client = admin({"bootstrap.servers": kafka.bootstrap_servers})
    for name, stream in streams.items():
        group, fingerprint = f"{topic.topic}.{name}", stream.fingerprint()
        assert table_topic_of(client, group) == f"{group}.table.{fingerprint}"
        if name in to_table:
            messages = messages_in(kafka, f"{group}.windows.{fingerprint}")
            assert messages >= len(windows[name].tables)


@pytest.mark.kafka
@pytest.mark.soak
def test_a_group_goes_on_with_the_same_streams_only(kafka: Any, posts: Any) -> None:
    topic = posts(2)
    topic.send(600)
    streams = streams_of(topic)
    options: dict[str, Any] = {"group_id": topic.topic, "until": "latest", "progress": False}
    pair = {name: streams[name] for name in ("few", "many")}
    run_together(pair, **options)
    other = streams["many"].source, streams["many"].time, streams["many"].steps
    changed = Stream(*other).tumbling("40s", delay="5s").agg(posts=count())
    steps = Stream(*other[:2]).filter(pl.col("user") > 7).tumbling("30s", delay="5s").agg(posts=count())
    refused = {
        r"of the stream 'many': the window changed from tumbling 30s to tumbling 40s": {
            **pair,
            "many": changed,
        },
        r"of the stream 'many': step 1 changed": {**pair, "many": steps},
        r"of the streams 'few' and 'many' together.*\('by-user' added\).*Run the same streams again": streams,
        r"\('many' missing\)": {"few": pair["few"]},
        r"\('few' and 'many' missing, 'by-user' added\)": {"by-user": streams["by-user"]},
    }
    for reported, requested in refused.items():
        with pytest.raises(DefinitionChanged, match=reported):
            run_together(requested, **options)
    with pytest.raises(DefinitionChanged, match="of the streams 'few' and 'many' together"):
        run(pair["few"], RunOptions(group_id=topic.topic, until="latest"))
    with pytest.raises(DefinitionChanged, match="of the streams 'few' and 'many' together"):
        run(pair["few"], RunOptions(group_id=f"{topic.topic}.few", until="latest"))
    alone = f"{topic.topic}-alone"
    run(streams["many"], RunOptions(group_id=alone, until="latest"))
    with pytest.raises(DefinitionChanged, match="is of a stream that runs by itself"):
        run_together(pair, **{**options, "group_id": alone})
    topic.send(600)
    # What the offsets said is found in the table topics, as after offsets.retention.minutes without a member.
    client = admin({"bootstrap.servers": kafka.bootstrap_servers})
    for group in (topic.topic, *(f"{topic.topic}.{name}.merger" for name in pair)):
        client.delete_consumer_groups([group])[group].result(120)
    with pytest.raises(DefinitionChanged, match=r"\('by-user' added\)"):
        run_together(streams, **options)
    for name, summary in run_together(pair, **options).items():
        assert (summary.account, summary.duplicates) == (topic.one_pass(streams[name])[1], 0)


@pytest.mark.kafka
@pytest.mark.soak
def test_a_stream_that_fails_ends_all_and_is_named(posts: Any) -> None:
    def twice(rows: pl.DataFrame) -> pl.DataFrame:
        return pl.concat([rows, rows])

    topic = posts(2)
    topic.send(2_000)
    streams, windows = streams_of(topic), {name: Windows() for name in ("few", "many")}
    broken = Stream(topic.stream.source, topic.stream.time).map_batches(twice, {"user": pl.Int64})
    aggregates = {"few": streams["few"], "broken": broken.tumbling("10s").agg(posts=count())}
    with pytest.raises(Exception, match="twice") as failed:
        run_together(aggregates, until="latest", progress=False)
    assert in_words(failed.value).endswith("(in the stream 'broken')")

    def full(table: Any) -> None:
        raise OSError("no space left")

    pair = {name: streams[name] for name in windows}
    options: dict[str, Any] = {"group_id": topic.topic, "checkpoint_seconds": 0.1}
    running = start_together(pair, on_window={"few": windows["few"], "many": full}, **options)
    with pytest.raises(OSError, match="no space left") as ended:
        running.wait(120)
    assert in_words(ended.value) == "no space left (in the stream 'many')"
    assert not running.running and not running.health().healthy
    assert "no space left (in the stream 'many')" in running["few"].health().why
    result = run_together(pair, on_window=windows, until="latest", progress=False, **options)
    for name, stream in pair.items():
        table, account = topic.one_pass(stream)
        assert (result[name].account, result[name].duplicates) == (account, 0)
        assert by_window(windows[name].table()) == by_window(table)


@pytest.mark.kafka
@pytest.mark.soak
def test_kill_9_of_a_worker_process_loses_and_repeats_nothing_of_any_stream(posts: Any) -> None:
    topic = posts(4)
    streams = streams_of(topic)
    windows = {name: Windows() for name in ("few", "many")}
    options: dict[str, Any] = {"group_id": topic.topic, "checkpoint_seconds": 0.1, "on_window": windows}
    registry = CollectorRegistry()
    running = start_together(streams, workers=2, registry=registry, **options)
    assert list(running) == list(streams) and len(running) == 3
    for turn in range(4):
        topic.send(2_000)
        seen = running["few"].account.read
        until(lambda seen=seen: running["few"].account.read > seen)
        if turn in (0, 2):
            os.kill(running.worker_pids[turn // 2], signal.SIGKILL)
    until(lambda: all(running[name].account.read == 8_000 for name in streams))
    until(lambda: running.health().ready)
    for name, stream in streams.items():
        assert by_window(merge(running[name].table())) == by_window(topic.one_pass(stream)[0])
    for name in streams:
        group = {"group": f"{topic.topic}.{name}"}
        assert registry.get_sample_value("streamgauge_messages_read_total", group) == 8_000
        assert registry.get_sample_value("streamgauge_ready", group) == 1
    result = running.drain(120)
    run_together(streams, until="latest", progress=False, **options)
    for name, stream in streams.items():
        table, account = topic.one_pass(stream)
        assert (result[name].account, result[name].duplicates, result[name].overlaps) == (account, 0, 0)
        if name in windows:
            assert by_window(windows[name].table()) == by_window(table)


@each(
    ("given", "reported"),
    [
        ({"streams": {}}, r'streams must map names to streams, as in \{"english"'),
        ({"streams": []}, r"streams must map names .*, got \[\]"),
        ({"streams": {"a.b": None}}, r"'a\.b' is not a name of at most 40 letters"),
        ({"streams": {"a": 7}}, "'a' is 7, not a stream"),
        ({"delivery": "at_least_once"}, "delivery is 'at_least_once', and streams that run together"),
        ({"group_id": "g" * 199}, "with a stream's name it is at most 200"),
        ({"on_window": print}, 'on_window must map names of streams to values, as in {"a"'),
        ({"on_window": {"c": print}}, "on_window names 'c', which is not a stream; there are 'a', 'b'"),
        ({"on_window": {"a": 7}}, "on_window must be a function of one table, got 7"),
        ({"sinks": {"c": []}}, "sinks names 'c'"),
        ({"sinks": {"a": ["out"]}}, "sinks must be a list of sinks"),
        ({"state_bytes": 1_500_000}, "2 streams share it, and each needs 1,000,000"),
        ({"workers": 0}, "workers must be an integer ≥ 1, got 0"),
        ({"streams": 40}, "40 are too many to run together"),
    ],
)
def test_what_can_not_run_together_is_refused_before_a_broker_is_asked(given: Any, reported: str) -> None:
    rows = Stream.from_kafka("posts", value=json({"n": pl.Int64}), bootstrap_servers="localhost:1")
    stream = rows.tumbling("1m").agg(posts=count())
    streams = given.pop("streams", {"a": stream, "b": stream})
    if isinstance(streams, int):
        streams = {f"stream-{n}": stream for n in range(streams)}
    with pytest.raises((TypeError, ValueError), match=reported):
        start_together(streams, **given)


def test_streams_of_other_brokers_and_unfinished_ones_are_named() -> None:
    rows = Stream.from_kafka("posts", value=json({"n": pl.Int64}), bootstrap_servers="localhost:1")
    other = Stream.from_kafka("posts", value=json({"n": pl.Int64}), bootstrap_servers="localhost:2")
    aggregates = {"a": rows.tumbling("1m").agg(n=count()), "b": other.tumbling("1m").agg(n=count())}
    with pytest.raises(
        ValueError, match="'a' and 'b' are read from different brokers or with different settings"
    ):
        start_together(aggregates)
    with pytest.raises(ValueError, match="has no aggregates yet") as unfinished:
        start_together({"a": aggregates["a"], "b": rows})
    assert "(in the stream 'b')" in in_words(unfinished.value)
