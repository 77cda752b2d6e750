"""Deltas as messages: spread over the partitions by group, refused if another definition made them."""

from __future__ import annotations

import polars as pl
import pytest

from streamgauge.operators.consumer.log import messages
from streamgauge.operators.consumer.log.messages import decode, encode, table_topic
from streamgauge.operators.consumer.options import RunOptions
from streamgauge.operators.consumer.runner import run
from streamgauge.operators.definition.aggregates import count, distinct
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.kafka.chunked_records import Record
from streamgauge.operators.kafka.log_faults import DeltaError
from streamgauge.operators.kafka.topics import admin, ensure_topic
from streamgauge.operators.sketching.delta import Delta
from streamgauge.operators.table.sketch_table import merge
from streamgauge.operators.testing import StreamTester

pytestmark = pytest.mark.kafka


def test_groups_are_spread_over_several_table_partitions(posts) -> None:
    topic = posts()
    topic.send(3_000)
    stream = topic.stream
    keyed = Stream(stream.source, stream.time).group_by("user").tumbling("10s").agg(posts=count())
    summary = run(keyed, RunOptions(until="latest", table_partitions=3))
    table, account = topic.one_pass(keyed)
    assert summary.account == account
    assert merge(summary.table) == merge(table)


def test_deltas_of_another_definition_are_refused_by_name(kafka, posts) -> None:
    from confluent_kafka import Producer

    topic = posts()
    topic.send(100)
    stream, group = topic.stream, topic.topic
    name = table_topic(group, stream.fingerprint())
    ensure_topic(admin({"bootstrap.servers": kafka.bootstrap_servers}), name, 1)
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "enable.idempotence": True})
    for message in encode(Delta("0123456789abcdef", topic.topic, 0, 0, 5, None), name, 1):
        producer.produce(name, message.value, headers=list(message.headers), partition=0)
    producer.flush(120)
    with pytest.raises(DeltaError, match=f"0123456789abcdef.*{stream.fingerprint()}"):
        run(stream, RunOptions(until="latest", group_id=group))


@pytest.mark.parametrize("compression", ["lz4", "zstd", None])
def test_a_delta_is_read_however_its_version_compressed_it(monkeypatch, compression) -> None:
    rows = Stream.from_schema({"at": pl.Int64, "user": pl.String}, time=pl.from_epoch("at"))
    stream = rows.tumbling("1m").agg(posts=count(), users=distinct("user"))
    tester = StreamTester(stream)
    tester.feed([{"at": second, "user": f"user {second % 7}"} for second in range(600)])
    table = tester.finish().tables().to_arrow()
    monkeypatch.setattr(messages, "_COMPRESSION", compression)
    (message,) = encode(Delta(stream.fingerprint(), "posts", 0, 0, 600, table), "log", 1)
    read = decode(Record(message.value, dict(message.headers), 0, "")).table
    assert read is not None and read.equals(table)
