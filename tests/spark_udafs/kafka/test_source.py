"""The source's two sides, planning and reading, called as Spark does but without Spark."""

from __future__ import annotations

import pickle
import re
import time
import uuid
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from streamgauge.operators.definition import aggregates as ask
from streamgauge.operators.definition.stream import Step, Stream
from streamgauge.operators.formats.json import json
from streamgauge.spark_udafs.definitions import ChangedDefinition
from streamgauge.spark_udafs.kafka.offsets import Offsets
from streamgauge.spark_udafs.kafka.source import KafkaSketchSource, KafkaStreamReader, bound
from streamgauge.spark_udafs.merge.partials import ACCOUNT, AHEAD_US

pytestmark = pytest.mark.kafka
ALL = ReadAllAvailable()
MINUTE = 60_000_000


class Query:
    """One run of a query: plans batches like Spark, reads them, and keeps what Spark would log."""

    def __init__(
        self,
        kafka: Any,
        log: list[dict[str, Any]] | None = None,
        stream: Stream | None = None,
        **options: str,
    ) -> None:
        given = {"kafka.bootstrap.servers": kafka.bootstrap_servers, "startingOffsets": "earliest", **options}
        source = KafkaSketchSource if stream is None else bound(stream, {})
        reader = source(given).streamReader(None)
        assert isinstance(reader, KafkaStreamReader)
        self.reader = reader
        self.log = [reader.initialOffset()] if log is None else list(log)

    def batch(self, limit: Any = ALL) -> list[pa.RecordBatch] | None:
        """The next micro-batch; None where there is nothing to do."""
        end = self.reader.latestOffset(self.log[-1], limit)
        if end == self.log[-1]:
            return None
        self.log.append(end)
        return self.read(len(self.log) - 1)

    def read(self, number: int) -> list[pa.RecordBatch]:
        """A micro-batch, perhaps not for the first time."""
        found: list[pa.RecordBatch] = []
        for task in self.reader.partitions(self.log[number - 1], self.log[number]):
            worker = pickle.loads(pickle.dumps(self.reader))
            found += worker.read(pickle.loads(pickle.dumps(task)))
        return found

    @property
    def last(self) -> Offsets:
        return Offsets.from_json(self.log[-1])


def account(batches: list[pa.RecordBatch]) -> dict[str, int]:
    """What a micro-batch announces of all messages so far."""
    table = pa.Table.from_batches(batches)
    return {name: sum(n or 0 for n in table.column(f"__{name}").to_pylist()) for name in ACCOUNT}


def rows(batches: list[pa.RecordBatch]) -> int:
    """The rows that are counted in a micro-batch's windows."""
    return sum(n or 0 for n in pa.Table.from_batches(batches).column("rows").to_pylist())


@pytest.fixture
def sketches(kafka: Any, everything_from: Callable[[str], Stream]) -> Callable[..., Query]:
    def make(topic: str, log: list[dict[str, Any]] | None = None, **options: str) -> Query:
        return Query(kafka, log, everything_from(topic), **options)

    return make


def test_every_message_is_accounted_for_once(
    sketches: Callable[..., Query],
    topic: Callable[..., str],
    send: Callable[..., None],
    frame_of: Callable[..., pl.DataFrame],
    json_of: Callable[[pl.DataFrame], list[bytes]],
) -> None:
    name = topic(2)
    frame = frame_of(1, rows=1_000).with_columns(
        pl.when(pl.col("lang") == "").then(pl.lit("xx")).otherwise("lang")
    )
    filtered = frame.filter(pl.col("lang") == "xx").height
    send(name, json_of(frame))
    bad = [b"oops", None, b"", b'{"at":7}', b'{"user":"u"}', b'{"at":"1969-99-01"}']
    send(name, [*json_of(frame.head(1)), *bad], partition=1)
    # Two minutes after the end of the first rows' window.
    send(name, json_of(frame.tail(1)), partition=1)
    send(name, json_of(frame.head(3)), partition=1)
    query = sketches(name)
    counts = []
    while (batches := query.batch(ReadMaxRows(300))) is not None:
        counts.append(account(batches))
    assert counts[-1] == {
        "read": 1_011,
        "counted": 1_002 - filtered,
        "filtered": filtered,
        "late": 3,
        "dead_lettered": 6,
    }
    for found in counts:
        assert found["read"] == sum(found[name] for name in ACCOUNT[1:])
    assert [found["read"] for found in counts] == sorted(found["read"] for found in counts)


def test_a_batch_read_again_is_the_same_to_the_byte(
    sketches: Callable[..., Query],
    topic: Callable[..., str],
    send: Callable[..., None],
    frame_of: Callable[..., pl.DataFrame],
    json_of: Callable[[pl.DataFrame], list[bytes]],
) -> None:
    name = topic()
    send(name, json_of(frame_of(2, rows=900)))
    query = sketches(name)
    first = query.batch(ReadMaxRows(500))
    second = query.batch(ReadMaxRows(500))
    assert first is not None and second is not None
    # In another order, after others have used the connection, and by a query that was started again.
    again = sketches(name, log=query.log)
    for found, expected in ((again.read(2), second), (query.read(1), first), (again.read(2), second)):
        one, other = pa.Table.from_batches(found), pa.Table.from_batches(expected)
        assert [name for name in one.schema.names if one[name] != other[name]] == []
        assert one.equals(other)


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
    found, counted_again = [], 0
    while (batches := lossy.batch(ReadMaxRows(300))) is not None:
        found.append(account(batches))
        counted_again += rows(batches)
        admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
        group = f"streamgauge-{lossy.last.query}"
        admin.delete_consumer_groups([group])[group].result(10)
    assert found == expected
    assert counted_again == counted == expected[-1]["counted"]


def test_the_watermark_waits_for_all_partitions_and_closes_what_is_left_at_the_end(
    sketches: Callable[..., Query],
    topic: Callable[..., str],
    send: Callable[..., None],
    frame_of: Callable[..., pl.DataFrame],
    json_of: Callable[[pl.DataFrame], list[bytes]],
) -> None:
    name = topic(2)
    frame = frame_of(4, rows=400, minutes=4)
    send(name, json_of(frame))
    send(name, json_of(frame.head(10)), partition=1)
    query = sketches(name)
    query.reader.prepareForTriggerAvailableNow()
    marks = []
    while query.batch(ReadMaxRows(205)) is not None:
        marks.append(query.last.watermark_us)
    first, last = (int(t.timestamp() * 1e6) for t in (frame["at"][9], frame["at"][-1]))
    assert marks[0] < 0
    assert marks[1] <= first
    assert marks[-1] == last - last % MINUTE + MINUTE
    assert marks == sorted(marks)
    # What comes for a window that was closed is late, in whatever partition.
    send(name, json_of(frame.tail(5)), partition=1)
    later = sketches(name, log=query.log)
    batches = later.batch()
    assert batches is not None
    assert account(batches)["late"] == 5


def test_windows_stay_open_at_the_end_if_asked(
    sketches: Callable[..., Query],
    topic: Callable[..., str],
    send: Callable[..., None],
    frame_of: Callable[..., pl.DataFrame],
    json_of: Callable[[pl.DataFrame], list[bytes]],
) -> None:
    name = topic()
    frame = frame_of(4, rows=400)
    send(name, json_of(frame))
    query = sketches(name, closeAtEnd="false")
    query.reader.prepareForTriggerAvailableNow()
    while query.batch() is not None:
        pass
    assert query.last.watermark_us == int(frame["at"][-1].timestamp() * 1e6) - 5_000_000
    send(name, json_of(frame.tail(5)))
    batches = sketches(name, log=query.log).batch()
    assert batches is not None
    assert account(batches)["counted"] == 405


def test_an_idle_stream_closes_its_windows_and_then_rests(
    sketches: Callable[..., Query],
    topic: Callable[..., str],
    send: Callable[..., None],
    frame_of: Callable[..., pl.DataFrame],
    json_of: Callable[[pl.DataFrame], list[bytes]],
) -> None:
    name = topic(2)
    frame = frame_of(6, rows=50).filter(pl.col("at").dt.second() >= 50)
    send(name, json_of(frame))
    query = sketches(name, idleTimeout="100")
    last = int(frame["at"][-1].timestamp() * 1e6)
    deadline = time.monotonic() + 60
    while query.last.watermark_us < last - last % MINUTE + MINUTE:
        query.batch()
        assert time.monotonic() < deadline
    while query.batch() is not None:
        assert time.monotonic() < deadline
    announced = pa.Table.from_batches(query.read(len(query.log) - 1)).column("window_end")
    assert announced.cast(pa.int64()).to_pylist() == [AHEAD_US + query.last.watermark_us]
    assert [query.batch() for _ in range(3)] == [None] * 3


@pytest.mark.parametrize("silence", [0, 14, 3_600])
def test_a_stream_that_wakes_condemns_none_of_its_rows(
    sketches: Callable[..., Query], topic: Callable[..., str], send: Callable[..., None], silence: int
) -> None:
    name, now = topic(4), [1_000.0]
    query = sketches(name, idleTimeout="5000")
    query.reader._clock = lambda: now[0]
    values = [b'{"at":"2026-01-01T00:%02d:%02d","item":1}' % divmod(n, 60) for n in range(200)]
    assert query.batch() is None
    now[0] += silence
    assert query.batch() is None
    for partition in range(4):
        # One after the other, each in a micro-batch of its own.
        send(name, values[partition::4], partition=partition)
        batches = query.batch()
        assert batches is not None
        now[0] += 1
    assert account(batches) == {"read": 200, "counted": 200, "filtered": 0, "late": 0, "dead_lettered": 0}
    now[0] += 60
    while query.batch() is not None:
        now[0] += 60
    # All windows with rows are closed, and no time has passed beyond them.
    assert query.last.watermark_us == 1_767_225_600_000_000 + 4 * MINUTE


def test_what_lies_behind_an_open_transaction_is_not_silence(
    kafka: Any, sketches: Callable[..., Query], topic: Callable[..., str], send: Callable[..., None]
) -> None:
    name, now = topic(2), [1_000.0]
    query = sketches(name, idleTimeout="5000")
    query.reader._clock = lambda: now[0]
    values = [b'{"at":"2026-01-01T00:%02d:%02d","item":1}' % divmod(n, 60) for n in range(300)]
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "transactional.id": name})
    producer.init_transactions(30)
    producer.begin_transaction()
    for value in values:
        producer.produce(name, value, partition=0)
    assert producer.flush(30) == 0
    send(name, values, partition=1)
    for _ in range(5):
        query.batch()
        now[0] += 10
    assert query.last.watermark_us < 0
    producer.commit_transaction(30)
    batches = None
    while (found := query.batch()) is not None or batches is None:
        batches = found
        now[0] += 10
    assert account(batches)["counted"] == 600


def test_one_wrong_clock_condemns_none_of_the_rows_that_follow(
    sketches: Callable[..., Query], topic: Callable[..., str], send: Callable[..., None]
) -> None:
    name = topic()
    values = [b'{"at":"2026-01-01T00:%02d:%02d"}' % divmod(n, 60) for n in range(600)]
    # In a recording nobody can tell; far ahead of the clock it is a dead letter.
    wrong = [b'{"at":"2026-01-02T00:00:00"}', b'{"at":"2126-01-02T00:00:00"}']
    send(name, values[:30])
    send(name, wrong)
    send(name, values[30:])
    query = sketches(name)
    batches = query.batch(ReadMaxRows(40))
    while (found := query.batch(ReadMaxRows(40))) is not None:
        batches = found
    assert batches is not None
    expected = {"read": 602, "counted": 601, "filtered": 0, "late": 0, "dead_lettered": 1}
    assert account(batches) == expected


def test_an_empty_topic_gives_nothing_to_do(
    sketches: Callable[..., Query], topic: Callable[..., str]
) -> None:
    query = sketches(topic(3))
    assert query.batch() is None
    query.reader.prepareForTriggerAvailableNow()
    assert query.batch() is None


def test_a_topic_that_is_not_there_is_named(kafka: Any) -> None:
    with pytest.raises(LookupError, match=r"topic 'nowhere' doesn't exist at 127\.0\.0\.1:\d+; create it"):
        Query(kafka, subscribe="nowhere")


def test_offsets_out_of_range(kafka: Any, topic: Callable[..., str], send: Callable[..., None]) -> None:
    name = topic()
    send(name, [b"a", b"b", b"c"])
    start = f'{{"{name}":{{"0":9}}}}'
    with pytest.raises(ValueError, match=rf"offset 9 of {name}-0 is out of range: there are 0 to 3"):
        Query(kafka, subscribe=name, startingOffsets=start)
    query = Query(kafka, subscribe=name, startingOffsets=start, failOnDataLoss="false")
    assert query.last.ends == {(name, 0): 3}
    with pytest.raises(ValueError, match="exactly the partitions read"):
        Query(kafka, subscribe=name, startingOffsets=f'{{"{name}":{{"1":0}}}}')


def test_messages_that_expired_fail_the_query_or_are_skipped(
    kafka: Any, topic: Callable[..., str], send: Callable[..., None]
) -> None:
    name = topic()
    send(name, [b"a", b"b", b"c", b"d"])
    query = Query(kafka, subscribe=name)
    query.batch(ReadMaxRows(1))
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    for done in admin.delete_records([TopicPartition(name, 0, 3)]).values():
        done.result(10)
    # Another client, since this one has fetched them already.
    elsewhere = {"subscribe": name, "kafka.client.id": "another"}
    with pytest.raises(RuntimeError, match=rf"reading {name}-0 from 1 to 4: offset 1 of") as told:
        Query(kafka, query.log, **elsewhere).batch()
    assert "failOnDataLoss" in str(told.value) and "auto.offset.reset" not in str(told.value)
    going_on = Query(kafka, query.log, **elsewhere, failOnDataLoss="false")
    batches = going_on.batch()
    assert batches is not None
    assert [value for b in batches for value in b.column("value").to_pylist()] == [b"d"]


def made_anew(kafka: Any, name: str) -> None:
    """Delete a topic and make one of the same name."""
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    admin.delete_topics([name])[name].result(10)
    deadline = time.monotonic() + 60
    while name in admin.list_topics(timeout=5).topics:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    kafka.create_topic(name, 1)


def values(batches: list[pa.RecordBatch] | None) -> list[bytes]:
    """The messages of a micro-batch."""
    return [value for b in batches or [] for value in b.column("value").to_pylist()]


@pytest.mark.parametrize("more", [b"x", b"xyzxyz"], ids=["fewer messages", "more messages"])
def test_a_topic_made_anew_fails_the_query_or_is_read_from_its_beginning(
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
    made_anew(kafka, name)
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
    # The checkpoint of an earlier version knows no ids: what it can see, it tells.
    if len(new) < 3:
        with pytest.raises(RuntimeError, match=rf"messages are lost: {name}-0 ends at 1, before 3"):
            Query(kafka, [old], subscribe=name).batch()
    else:
        # Another client, since this one has fetched what was there before.
        elsewhere = {"subscribe": name, "kafka.client.id": "another"}
        assert values(Query(kafka, [old], **elsewhere).batch()) == new[3:]


def test_the_account_goes_on_in_a_topic_made_anew(
    kafka: Any, sketches: Callable[..., Query], topic: Callable[..., str], send: Callable[..., None]
) -> None:
    name = topic()
    message = b'{"at":"2026-01-01T00:00:00","user":"u"}'
    send(name, [message] * 3)
    query = sketches(name)
    query.reader.prepareForTriggerAvailableNow()
    while query.batch() is not None:
        pass
    made_anew(kafka, name)
    send(name, [message.replace(b"00:00:00", b"00:05:00")] * 5)
    batches = sketches(name, log=query.log, failOnDataLoss="false").batch()
    assert batches is not None
    assert rows(batches) == 5
    assert account(batches)["counted"] == 8


def test_another_definition_under_a_checkpoint_is_told_as_a_difference(
    kafka: Any,
    everything_from: Callable[..., Stream],
    topic: Callable[..., str],
    send: Callable[..., None],
) -> None:
    name = topic()
    send(name, [b'{"at":"2026-01-01T00:00:00","user":"u"}'])
    rows_of = replace(everything_from(name), window=None, aggregates={})

    def asked(size: str = "1m", **more: Any) -> Stream:
        return rows_of.tumbling(size).agg(**{"users": ask.distinct("user"), **more})

    query = Query(kafka, stream=asked())
    query.batch()
    unfinished = [query.log[-2], query.log[-1]]
    send(name, [b'{"at":"2026-01-01T00:00:01","user":"u"}'])
    for other, told in (
        (
            asked(users=ask.distinct("lang")),
            'the aggregate "users" changed from distinct("user", lg_k=12) to',
        ),
        (asked(users=ask.distinct("user", lg_k=10)), r"lg_k=12\) to distinct\(\"user\", lg_k=10\)"),
        (asked("2m"), "the window changed from tumbling 1m to tumbling 2m"),
        (asked(n=ask.count()), r'the aggregate "n" was added: count\(\)'),
        (
            rows_of.tumbling("1m").agg(n=ask.count(), users=ask.distinct("user")),
            'the aggregate "n" was added: count()',
        ),
        (
            rows_of.tumbling("1m").agg(people=ask.distinct("user")),
            'the aggregate "users" was renamed to "people"',
        ),
    ):
        told = told if "\\" in told else re.escape(told)
        with pytest.raises(ChangedDefinition, match=f"made by another definition: .*{told}"):
            Query(kafka, query.log, other).batch()
        with pytest.raises(ChangedDefinition, match=told):
            Query(kafka, unfinished, other).read(1)
    # The same again, and the checkpoint of a version that kept no definition.
    assert Query(kafka, query.log, asked()).batch() is not None
    without = {key: value for key, value in query.log[-1].items() if key != "definition"}
    later = Query(kafka, [without], asked())
    assert later.batch() is not None
    assert later.last.definition == query.last.definition


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
    found = other.batch(ReadMaxRows(3))
    assert found is not None and account(found) == dict.fromkeys(ACCOUNT, 0) | {"read": 3, "filtered": 3}
    alone = sketches(name, log=one.log, **mine).batch()
    assert alone is not None
    assert account(alone) == dict.fromkeys(ACCOUNT, 0) | {"read": 6, "counted": 6}
    with pytest.raises(RuntimeError, match=f"another query reports to the consumer group 'mine-{name}'"):
        other.batch()
    prefixed = sketches(name, groupIdPrefix="team")
    prefixed.batch()
    group = {"bootstrap.servers": kafka.bootstrap_servers, "group.id": f"team-{prefixed.last.query}"}
    member = Consumer(group)
    assert [place.offset for place in member.committed([TopicPartition(name, 0)], timeout=20)] == [6]
    member.close()


def _only(stream: Stream | None, user: str) -> Stream:
    """A stream's rows of one user."""
    assert stream is not None
    step = Step("filter", (pl.col("user") == user,))
    return replace(stream, steps=(*stream.steps, step))


def test_a_partition_added_later_is_read_from_its_beginning(
    kafka: Any, topic: Callable[..., str], send: Callable[..., None]
) -> None:
    from confluent_kafka.admin import NewPartitions

    name = topic()
    send(name, [b"a"])
    query = Query(kafka, subscribe=name, startingOffsets="latest")
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    admin.create_partitions([NewPartitions(name, 2)])[name].result(10)
    deadline = time.monotonic() + 20
    while len(admin.list_topics(name, timeout=5).topics[name].partitions) < 2:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    send(name, [b"b"], partition=1)
    batches = query.batch()
    assert batches is not None
    assert [value for b in batches for value in b.column("value").to_pylist()] == [b"b"]


def letters_of(kafka: Any, topic: str, n: int) -> list[Any]:
    """The first messages of a topic of one partition."""
    reader = Consumer({"bootstrap.servers": kafka.bootstrap_servers, "group.id": uuid.uuid4().hex})
    reader.assign([TopicPartition(topic, 0, 0)])
    letters = reader.consume(n, 20)
    reader.close()
    return letters


@pytest.mark.parametrize("drops", [True, False])
def test_rows_on_which_a_step_fails_are_dead_letters_where_rows_are_given(
    kafka: Any, topic: Callable[..., str], send: Callable[..., None], drops: bool
) -> None:
    name = topic()
    send(name, [b'{"text":"1"}', b"oops", b'{"text":"two"}', b'{"text":"3"}', b'{"text":"4"}'])
    source = Stream.from_kafka(
        name, value=json({"text": pl.String}), bootstrap_servers=kafka.bootstrap_servers
    )
    stream = source.with_columns(number=pl.col("text").cast(pl.Int64))
    if drops:
        stream = stream.filter(pl.col("number") != 3)
    query = Query(kafka, None, stream, emit="rows", deadLetterTopic=f"{name}.dead")
    batches = query.batch()
    assert batches is not None
    numbers = pa.Table.from_batches(batches).column("number").to_pylist()
    assert numbers == ([1, 4] if drops else [1, 3, 4])
    letters = letters_of(kafka, f"{name}.dead", 2)
    told = [{key: value.decode() for key, value in letter.headers()} for letter in letters]
    assert [(t["topic"], t["partition"], t["offset"]) for t in told] == [(name, "0", "1"), (name, "0", "2")]
    assert "conversion from `str` to `i64` failed" in told[1]["reason"]
    assert [letter.value() for letter in letters] == [b"oops", b'{"text":"two"}']


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
    told = [{key: value.decode() for key, value in letter.headers()} for letter in letters]
    assert [(t["topic"], t["partition"], t["offset"]) for t in told] == [(name, "0", "0"), (name, "0", "2")]
    assert told[0]["reason"].startswith("no JSON")
    assert [(letter.key(), letter.value()) for letter in letters] == [(b"k", b"oops"), (b"k", None)]


def test_tasks_are_split_for_messages_and_never_for_sketches(
    kafka: Any,
    sketches: Callable[..., Query],
    topic: Callable[..., str],
    send: Callable[..., None],
) -> None:
    name = topic(2)
    send(name, [b"a"] * 30)
    send(name, [b"b"] * 10, partition=1)
    query = Query(kafka, subscribe=name, minPartitions="4")
    end = query.reader.latestOffset(query.log[0], ALL)
    tasks = query.reader.partitions(query.log[0], end)
    sizes = [[(r.end - r.start) for r in task.ranges] for task in tasks]
    assert sizes == [[10], [10], [10], [10]]
    query = sketches(name, minPartitions="4")
    end = query.reader.latestOffset(query.log[0], ALL)
    assert len(query.reader.partitions(query.log[0], end)) == 2
