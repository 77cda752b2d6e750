"""What workers report and send: lost reports are made again, groups may be shared, dead letters arrive."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import polars as pl
import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient
from pyspark.sql.streaming.datasource import ReadMaxRows

from streamgauge.operators.definition.aggregates import count
from streamgauge.operators.definition.steps import Step
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.formats.json.decoder import json
from streamgauge.operators.formats.messages import Messages
from streamgauge.spark_udafs.kafka.options import KafkaOptions
from streamgauge.spark_udafs.kafka.workers import remarks_on
from streamgauge.spark_udafs.merge.partials import ACCOUNT

from .planned import Query, account, letters_of, rows

pytestmark = pytest.mark.kafka


def test_times_in_another_unit_are_warned_of_once(caplog: pytest.LogCaptureFixture) -> None:
    rows = Stream.from_kafka("units", value=json({"ts": pl.Int64}), time=pl.from_epoch("ts", time_unit="ms"))
    stream = rows.tumbling("1h").agg(n=count())
    options = KafkaOptions.parse({"kafka.bootstrap.servers": "box:9092"}, stream)
    for _ in range(2):
        messages = Messages.of([b'{"ts": 1700000000}'] * 30, topic="units", timestamps=[1] * 30)
        for part, decoded in stream.reading.kafka_source.decoded(messages):
            remarks_on(options, "units").observe(part, decoded)
        remarks_on(options, "units").report_due(1)
    (output,) = caplog.messages
    assert 'write time=pl.from_epoch("ts", time_unit="s")' in output


def test_what_a_lost_report_said_is_found_by_reading_again(
    kafka: Any,
    sketches: Callable[..., Query],
    topic: Callable[..., str],
    send: Callable[..., None],
    frame_of: Callable[..., pl.DataFrame],
    json_of: Callable[[pl.DataFrame], list[bytes]],
) -> None:
    name = topic()
    values = json_of(frame_of(3, rows=900))
    # Late after what comes before it, early without that.
    send(name, [*values[:600], b"oops", values[0], *values[600:]])
    whole = sketches(name)
    expected, counted = [], 0
    while (batches := whole.batch(ReadMaxRows(300))) is not None:
        expected.append(account(batches))
        counted += rows(batches)
    assert expected[-1]["late"] == 1
    lossy = sketches(name)
    result, counted_again = [], 0
    while (batches := lossy.batch(ReadMaxRows(300))) is not None:
        result.append(account(batches))
        counted_again += rows(batches)
        admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
        group = f"streamgauge-{lossy.last.query}"
        admin.delete_consumer_groups([group])[group].result(120)
    # What the last one's report said is looked for once, in a micro-batch without messages.
    assert result == [*expected, expected[-1]]
    assert counted_again == counted == expected[-1]["counted"]


def test_queries_that_share_a_consumer_group_take_nothing_of_each_other(
    kafka: Any, sketches: Callable[..., Query], topic: Callable[..., str], send: Callable[..., None]
) -> None:
    name = topic()
    message = b'{"at":"2026-01-01T00:00:0%d","user":"u"}'
    send(name, [message % n for n in range(6)])
    mine = {"kafka.group.id": f"mine-{name}"}
    one = sketches(name, **mine)
    one.batch(ReadMaxRows(3))
    # Another, which drops what the first counts, reads the same range; then each goes on by itself.
    other = Query(kafka, stream=_only(sketches(name).reader._options.stream, "nobody"), **mine)
    result = other.batch(ReadMaxRows(3))
    assert result is not None and account(result) == dict.fromkeys(ACCOUNT, 0) | {"read": 3, "filtered": 3}
    alone = sketches(name, log=one.log, **mine).batch()
    assert alone is not None
    assert account(alone) == dict.fromkeys(ACCOUNT, 0) | {"read": 6, "counted": 6}
    with pytest.raises(RuntimeError, match=f"another query reports to the consumer group 'mine-{name}'"):
        other.batch()
    prefixed = sketches(name, groupIdPrefix="team")
    prefixed.batch()
    group = {"bootstrap.servers": kafka.bootstrap_servers, "group.id": f"team-{prefixed.last.query}"}
    member = Consumer(group)
    assert [place.offset for place in member.committed([TopicPartition(name, 0)], timeout=120)] == [6]
    member.close()


def _only(stream: Stream | None, user: str) -> Stream:
    """A stream's rows of one user."""
    assert stream is not None
    step = Step("filter", (pl.col("user") == user,))
    return replace(stream, steps=(*stream.steps, step))


def test_dead_letters_reach_their_topic_with_reason_and_bytes(
    kafka: Any,
    sketches: Callable[..., Query],
    topic: Callable[..., str],
    send: Callable[..., None],
) -> None:
    name = topic()
    send(name, [b"oops", b'{"at":"2026-01-01T00:00:00"}', None], key=b"k")
    query = sketches(name, deadLetterTopic=f"{name}.dead")
    batches = query.batch()
    assert batches is not None
    assert account(batches)["dead_lettered"] == 2
    letters = letters_of(kafka, f"{name}.dead", 2)
    decoded = [{key: value.decode() for key, value in letter.headers()} for letter in letters]
    assert [(t["topic"], t["partition"], t["offset"]) for t in decoded] == [
        (name, "0", "0"),
        (name, "0", "2"),
    ]
    assert decoded[0]["reason"].startswith("not JSON")
    assert [(letter.key(), letter.value()) for letter in letters] == [(b"k", b"oops"), (b"k", None)]
