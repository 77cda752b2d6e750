"""What planning asks the cluster: topics missing or recreated, offsets that are gone, partitions added."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from json import dumps
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient
from pyspark.sql.streaming.datasource import ReadMaxRows

from streamgauge.operators.definition.aggregates import count
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.formats.json.decoder import json
from streamgauge.spark_udafs.kafka.options import EACH
from streamgauge.spark_udafs.kafka.source import KafkaSketchSource

from ...waiting import until
from .planned import ALL, Query, account, letters_of, rows, values

pytestmark = pytest.mark.kafka


def test_a_topic_that_is_not_there_is_named(kafka: Any) -> None:
    with pytest.raises(LookupError, match=r"topic 'nowhere' doesn't exist at 127\.0\.0\.1:\d+; create it"):
        Query(kafka, subscribe="nowhere")


def test_offsets_out_of_range(kafka: Any, topic: Callable[..., str], send: Callable[..., None]) -> None:
    name = topic()
    send(name, [b"a", b"b", b"c"])
    start = f'{{"{name}":{{"0":9}}}}'
    with pytest.raises(
        ValueError, match=rf"startingOffsets: offset 9 of {name}-0 is out of range: there are 0 to 3"
    ):
        Query(kafka, subscribe=name, startingOffsets=start)
    query = Query(kafka, subscribe=name, startingOffsets=start, failOnDataLoss="false")
    assert query.last.ends == {(name, 0): 3}
    with pytest.raises(ValueError, match="exactly the partitions read"):
        Query(kafka, subscribe=name, startingOffsets=f'{{"{name}":{{"1":0}}}}')


def test_a_read_begins_and_ends_at_timestamps(
    kafka: Any, topic: Callable[..., str], send: Callable[..., None]
) -> None:
    name = topic(2)
    for number in range(6):
        send(name, [b"%d" % number], partition=number % 2, timestamp=(number + 1) * 1000)

    def read(**options: str) -> list[bytes]:
        given = {"kafka.bootstrap.servers": kafka.bootstrap_servers, "subscribe": name, **options}
        reader = KafkaSketchSource(given).reader(None)
        return sorted(values([b for task in reader.partitions() for b in reader.read(task)]))

    def each(first: int, second: int) -> str:
        return dumps({name: {"0": first, "1": second}})

    assert read(startingTimestamp="4000") == [b"3", b"4", b"5"]
    assert read(startingTimestamp="3000", endingTimestamp="5000") == [b"2", b"3"]
    assert read(startingOffsetsByTimestamp=each(5000, 2001), startingOffsets="earliest") == [b"3", b"4", b"5"]
    assert read(endingOffsetsByTimestamp=each(1000, 6000)) == [b"1", b"3"]
    # An end that no message has reached is the latest; a beginning fails, unless set otherwise.
    assert read(endingOffsetsByTimestamp=each(9000, 2000)) == [b"0", b"2", b"4"]
    with pytest.raises(ValueError, match=rf"startingTimestamp: {name}-0 has no message that late"):
        read(startingTimestamp="6000")
    assert read(startingTimestamp="6000", startingOffsetsByTimestampStrategy="latest") == [b"5"]
    with pytest.raises(ValueError, match=rf"ByTimestamp must be given for exactly .*{name}-1; got {name}-0"):
        read(startingOffsetsByTimestamp=dumps({name: {"0": 0}}))
    assert read(maxRecordsPerPartition="1") == [b"%d" % number for number in range(6)]


def test_small_micro_batches_are_waited_for(
    kafka: Any, topic: Callable[..., str], send: Callable[..., None]
) -> None:
    name, clock = topic(), [0.0]
    query = Query(kafka, subscribe=name, minOffsetsPerTrigger="3", maxTriggerDelay="60s")
    query.reader._clock = lambda: clock[0]
    collected = []
    for now, sent in ((0, b"a"), (1, b"b"), (2, b"c"), (3, b"d"), (4, b"e"), (62.9, b""), (63, b"")):
        clock[0] = now
        send(name, [sent] if sent else [])
        collected.append(values(query.batch()))
    assert collected == [[b"a"], [], [], [b"b", b"c", b"d"], [], [], [b"e"]]
    # A query that is to read all there is and end doesn't wait.
    send(name, [b"f"])
    again = Query(kafka, query.log, subscribe=name, minOffsetsPerTrigger="3")
    again.reader.prepareForTriggerAvailableNow()
    assert values(again.batch()) == [b"f"]


def test_messages_that_expired_fail_the_query_or_are_skipped(
    kafka: Any, topic: Callable[..., str], send: Callable[..., None]
) -> None:
    name = topic()
    send(name, [b"a", b"b", b"c", b"d"])
    query = Query(kafka, subscribe=name)
    query.batch(ReadMaxRows(1))
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    for done in admin.delete_records([TopicPartition(name, 0, 3)]).values():
        done.result(120)
    # Another client, since this one has fetched them already.
    elsewhere = {"subscribe": name, "kafka.client.id": "another"}
    with pytest.raises(RuntimeError, match=rf"reading {name}-0 from 1 to 4: offset 1 of") as raised:
        Query(kafka, query.log, **elsewhere).batch()
    assert "failOnDataLoss" in str(raised.value) and "auto.offset.reset" not in str(raised.value)
    going_on = Query(kafka, query.log, **elsewhere, failOnDataLoss="false")
    batches = going_on.batch()
    assert batches is not None
    assert [value for b in batches for value in b.column("value").to_pylist()] == [b"d"]


def recreate(kafka: Any, name: str) -> None:
    """Delete a topic and make one of the same name."""
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    admin.delete_topics([name])[name].result(120)
    deadline = time.monotonic() + 300
    while name in admin.list_topics(timeout=120).topics:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    kafka.create_topic(name, 1)


@pytest.mark.parametrize("more", [b"x", b"xyzxyz"], ids=["fewer messages", "more messages"])
def test_a_recreated_topic_fails_the_query_or_is_read_from_its_beginning(
    kafka: Any, topic: Callable[..., str], send: Callable[..., None], more: bytes
) -> None:
    name = topic()
    send(name, [b"a", b"b", b"c"])
    query = Query(kafka, subscribe=name)
    query.batch()
    old = {**query.log[-1]}
    assert old.pop("topics").keys() == {name}
    # Logged and not yet read when the topic goes.
    send(name, [b"d"])
    planned = query.reader.latestOffset(query.log[-1], ALL)
    recreate(kafka, name)
    new = [bytes([letter]) for letter in more]
    send(name, new)
    lost = rf"messages are lost: the topic '{name}' is not the one read before"
    with pytest.raises(RuntimeError, match=lost):
        Query(kafka, query.log, subscribe=name).batch()
    with pytest.raises(RuntimeError, match=lost):
        Query(kafka, [*query.log, planned], subscribe=name).read(len(query.log))
    going_on = Query(kafka, query.log, subscribe=name, failOnDataLoss="false")
    assert values(going_on.batch()) == new
    assert going_on.batch() is None
    unfinished = Query(kafka, [*query.log, planned], subscribe=name, failOnDataLoss="false")
    assert values(unfinished.read(len(query.log))) == []
    assert values(unfinished.batch()) == new
    # A checkpoint without ids, as brokers before 2.8 leave it: what it can see, it reports.
    if len(new) < 3:
        with pytest.raises(RuntimeError, match=rf"messages are lost: {name}-0 ends at 1, before 3"):
            Query(kafka, [old], subscribe=name).batch()
    else:
        # Another client, since this one has fetched what was there before.
        elsewhere = {"subscribe": name, "kafka.client.id": "another"}
        assert values(Query(kafka, [old], **elsewhere).batch()) == new[3:]


def test_the_account_goes_on_in_a_recreated_topic(
    kafka: Any, sketches: Callable[..., Query], topic: Callable[..., str], send: Callable[..., None]
) -> None:
    name = topic()
    message = b'{"at":"2026-01-01T00:00:00","user":"u"}'
    send(name, [message] * 3)
    query = sketches(name)
    query.reader.prepareForTriggerAvailableNow()
    while query.batch() is not None:
        pass
    recreate(kafka, name)
    send(name, [message.replace(b"00:00:00", b"00:05:00")] * 5)
    batches = sketches(name, log=query.log, failOnDataLoss="false").batch()
    assert batches is not None
    assert rows(batches) == 5
    assert account(batches)["counted"] == 8


def test_a_partition_added_later_is_read_from_its_beginning(
    kafka: Any, topic: Callable[..., str], send: Callable[..., None]
) -> None:
    from confluent_kafka.admin import NewPartitions

    name = topic()
    send(name, [b"a"])
    query = Query(kafka, subscribe=name, startingOffsets="latest")
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    admin.create_partitions([NewPartitions(name, 2)])[name].result(120)
    deadline = time.monotonic() + 300
    while len(admin.list_topics(name, timeout=120).topics[name].partitions) < 2:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    send(name, [b"b"], partition=1)
    batches = query.batch()
    assert batches is not None
    assert [value for b in batches for value in b.column("value").to_pylist()] == [b"b"]


def stream_of(kafka: Any, *topics: str) -> Stream:
    value = json({"at": pl.String, "lang": pl.String})
    read = Stream.from_kafka(list(topics), value=value, time="at", bootstrap_servers=kafka.bootstrap_servers)
    return read.group_by("lang").tumbling("1m").agg(rows=count())


def test_a_topic_that_begins_to_match_is_read_from_its_beginning(
    kafka: Any, topic: Callable[..., str], send: Callable[..., None]
) -> None:
    prefix, named = f"m{uuid.uuid4().hex[:8]}.", topic()
    first, second = f"{prefix}cpu", f"{prefix}disk"
    kafka.create_topic(first, 1)
    kafka.create_topic(f"{first}.dead-letters", 1)
    row = b'{"at":"2026-01-01T00:00:%02d","lang":"en"}'
    for name in (first, named):
        send(name, [row % 1, b"oops"])
    options = {"deadLetterTopic": f"{EACH}.dead-letters"}
    query = Query(kafka, None, stream_of(kafka, named, f"^{prefix}"), **options)
    batches = query.batch()
    assert batches is not None
    assert query.last.ends == {(first, 0): 2, (named, 0): 2}
    assert account(batches) == {"read": 4, "counted": 2, "filtered": 0, "late": 0, "dead_lettered": 2}
    kafka.create_topic(second, 1)
    send(second, [row % 2, row % 3, b"oops"])
    counted = 0

    def taken_up() -> bool:
        nonlocal counted
        counted += rows(query.batch() or [_nothing(batches)])
        return counted == 2

    until(taken_up)
    assert query.last.ends == {(first, 0): 2, (named, 0): 2, (second, 0): 3}
    assert query.last.topics.keys() == {first, named, second}
    (letter,) = letters_of(kafka, f"{second}.dead-letters", 1)
    assert letter.value() == b"oops"


def _nothing(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    return batches[0].slice(0, 0)


def test_patterns_that_match_nothing_or_twice_are_named(kafka: Any, topic: Callable[..., str]) -> None:
    with pytest.raises(LookupError, match=r"no topic at .* matches '\^nowhere\.' yet; create one"):
        Query(kafka, None, stream_of(kafka, "^nowhere."))
    name = topic()
    value = json({"lang": pl.String})
    one, other = (
        Stream.from_kafka(f"^{name[:at]}", value=value, bootstrap_servers=kafka.bootstrap_servers)
        for at in (8, 9)
    )
    both = one.merge(other.select("lang"))
    with pytest.raises(LookupError, match=f"'{name}' matches the patterns of two of the merged streams"):
        Query(kafka, None, both.tumbling("1m").agg(rows=count()))
