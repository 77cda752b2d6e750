"""Streams that run together in one query of Spark count as written down, each by its own windows."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from confluent_kafka import Producer

from streamgauge import count, distinct
from streamgauge import json as json_value
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.sketching.account import Account
from streamgauge.spark_udafs.streaming.shared_query import accounts_of, write_together
from streamgauge.spark_udafs.streaming.sinks import Batch

from .test_bad_input import letters
from .test_windows import SCHEMA, counted_in, expected, partitions_of
from .window_cases import CASES, COUNT, DAY, windowed

KINDS = tuple(CASES)
BROKEN = b"{"


def stream_of(kind: str, topic: str, servers: str) -> Stream:
    """The rows of one kind of windows; those of other kinds are filtered."""
    value, time = json_value({**SCHEMA, "kind": pl.String}), pl.from_epoch("at", time_unit="us")
    rows = Stream.from_kafka(topic, value=value, time=time, bootstrap_servers=servers)
    own = rows.filter(pl.col("kind") == kind).group_by("case", "key")
    return windowed(kind, own).agg(n=count(), times=distinct("at"))


@pytest.fixture(scope="module")
def topic(kafka: Any) -> str:
    """The rows of all kinds, one kind's after another's; and a message that no stream can read.

    What a stream filters doesn't move its event time.
    """
    name = f"together-{uuid.uuid4().hex[:8]}"
    kafka.create_topic(name, max(len(partitions_of(kind)) for kind in KINDS))
    producer = Producer(
        {
            "bootstrap.servers": kafka.bootstrap_servers,
            "enable.idempotence": True,
            "linger.ms": 5,
            "log_level": 0,
        }
    )
    for kind in KINDS:
        for partition, rows in enumerate(partitions_of(kind)):
            for row in rows:
                producer.produce(name, json.dumps({**row, "kind": kind}).encode(), partition=partition)
    producer.produce(name, BROKEN, partition=0)
    assert producer.flush(120) == 0
    return name


class Windows(list[pa.Table]):
    """A sink that keeps the windows of each batch; the `failing`-th one fails."""

    def __init__(self, failing: int = 0) -> None:
        self.failing = failing
        self.numbered: dict[int, pa.Table] = {}

    def __call__(self, table: Any, batch: Batch) -> None:
        self.failing -= 1
        if self.failing == 0:
            raise RuntimeError("the disk is full")
        self.append(table.to_arrow())
        self.numbered[batch.number] = self[-1]

    def counted(self, kind: str) -> dict[str, Any]:
        return counted_in(pa.concat_tables(self), kind)


def read_together(
    spark: Any, kafka: Any, topic: str, folder: Path, failing: int = 0, **options: Any
) -> tuple[Any, dict[str, Windows]]:
    streams = {kind: stream_of(kind, topic, kafka.bootstrap_servers) for kind in KINDS}
    sinks = {kind: Windows(failing if kind == "hopping" else 0) for kind in KINDS}
    given: dict[str, Any] = {"max_per_trigger": 900, "idle_seconds": 3600.0, **options}
    by_name = {kind: [sink] for kind, sink in sinks.items()}
    return write_together(
        streams, spark, folder, by_name, available_now=True, **{"close_at_end": True, **given}
    ), sinks


def wanted(kind: str) -> dict[str, Any]:
    counted, _ = expected(kind)
    if kind != "count":
        return counted
    full = {name: {w: n for w, n in of.items() if n == COUNT} for name, of in counted.items()}
    return {name: of for name, of in full.items() if of}


def account(kind: str) -> Account:
    """The message that can't be read is in each stream's account."""
    own, read = expected(kind)[1], sum(len(rows) for one in KINDS for rows in partitions_of(one)) + 1
    return Account(read, own.counted, read - own.read - 1, own.late, 1)


@pytest.mark.slow
@pytest.mark.kafka
@pytest.mark.spark
def test_streams_of_all_kinds_of_windows_share_one_reading_though_a_sink_fails(
    spark: Any, kafka: Any, topic: str, tmp_path: Path
) -> None:
    first, before = read_together(spark, kafka, topic, tmp_path, failing=1)
    with pytest.raises(Exception, match="the disk is full"):
        first.awaitTermination(600)
    second, after = read_together(spark, kafka, topic, tmp_path)
    assert second.awaitTermination(600)
    assert not before["hopping"]
    assert after["hopping"].counted("hopping") == wanted("hopping")
    # Other sinks have had that batch's windows before: they are told its number.
    for kind in KINDS:
        numbered = {**before[kind].numbered, **after[kind].numbered}
        batches = [
            {n: counted_in(table, kind) for n, table in runs[kind].numbered.items()}
            for runs in (before, after)
        ]
        assert counted_in(pa.concat_tables(numbered.values()), kind) == wanted(kind), (kind, batches)
    assert accounts_of(second) == {kind: account(kind) for kind in KINDS}
    assert len(second.recentProgress[0]["sources"]) == 1
    # What no stream can read is sent on once.
    assert len(letters(kafka, f"{topic}.dead-letters", 1)) == 1


class Filling(list[dict[int, int]]):
    """A sink that is given windows that fill: of each batch those, by their first second."""

    provisional = True

    def __call__(self, table: Any, batch: Batch) -> None:
        if table.is_final:
            return
        answers = table.answers()
        self.append(
            dict(zip((answers["window_start"].dt.epoch("s") - DAY).to_list(), answers["n"].to_list()))
        )


@pytest.mark.slow
@pytest.mark.kafka
@pytest.mark.spark
@pytest.mark.parametrize("emit", ["both", "close"])
def test_windows_that_fill_are_given_out_whole_at_each_batch(
    emit: Any, spark: Any, kafka: Any, tmp_path: Path
) -> None:
    topic = f"filling-{uuid.uuid4().hex[:8]}"
    kafka.create_topic(topic, 1)
    producer = Producer(
        {"bootstrap.servers": kafka.bootstrap_servers, "enable.idempotence": True, "log_level": 0}
    )
    for second in (1, 12, 21, 50, 61):
        row = {"at": (DAY + second) * 1_000_000, "case": 0, "key": "a", "kind": "x"}
        producer.produce(topic, json.dumps(row).encode())
    assert producer.flush(120) == 0
    value, time = json_value({**SCHEMA, "kind": pl.String}), pl.from_epoch("at", time_unit="us")
    rows = Stream.from_kafka(topic, value=value, time=time, bootstrap_servers=kafka.bootstrap_servers)
    streams = {kind: windowed(kind, rows).agg(n=count()) for kind in ("tumbling", "hopping", "session")}
    filling = {kind: Filling() for kind in streams}
    running = write_together(
        streams,
        spark,
        tmp_path,
        {kind: [sink] for kind, sink in filling.items()},
        available_now=True,
        max_per_trigger=2,
        close_at_end=False,
        emit=emit,
    )
    assert running.awaitTermination(600)
    if emit == "close":
        assert not any(filling.values())
        return
    # Of a row at 21 the watermark is 16; of one at 61 it is 56, which closes all that ends before.
    assert filling["tumbling"][:3] == [{0: 2}, {0: 3, 30: 1}, {30: 1, 60: 1}]
    assert filling["hopping"][0] == {-20: 1, -10: 2, 0: 2, 10: 1}
    assert filling["session"][0] == {1: 1, 12: 1}
    assert filling["session"][-1] == {50: 1, 61: 1} or filling["session"][-1] == {61: 1}


def posts(topic: str = "posts", servers: str = "localhost:9092") -> Stream:
    value = json_value({"id": pl.Int64, "lang": pl.String})
    return Stream.from_kafka(topic, value=value, bootstrap_servers=servers)


MINUTES = posts().tumbling("1m").agg(n=count())
REFUSED = {
    "another topic": (posts("likes").tumbling("1m").agg(n=count()), "read other topics, posts and likes"),
    "another broker": (
        posts(servers="far:1").tumbling("1m").agg(n=count()),
        "different brokers or with different",
    ),
    "a join": (
        posts().join(posts("likes"), on="id", within="1m").tumbling("1m").agg(n=count()),
        "joins two streams runs in a query of its own",
    ),
    "rows sent on": (posts().rows_to_kafka("good"), "sends its rows on runs in a query of its own"),
}


@pytest.mark.spark
@pytest.mark.parametrize("what", REFUSED)
def test_what_no_reading_can_be_shared_with_is_refused(what: str, spark: Any, tmp_path: Path) -> None:
    stream, message = REFUSED[what]
    with pytest.raises(ValueError, match=message):
        write_together({"one": MINUTES, "two": stream}, spark, tmp_path, {}, close_at_end=True)


@pytest.mark.spark
def test_options_that_fit_no_stream_are_refused(spark: Any, tmp_path: Path) -> None:
    def error(streams: Any, sinks: Any, **options: Any) -> str:
        with pytest.raises((TypeError, ValueError)) as problem:
            write_together(streams, spark, tmp_path, sinks, **options)
        return str(problem.value)

    assert "must map names to streams" in error({}, {})
    assert "'a b' is not a name" in error({"a b": MINUTES}, {})
    assert "not a stream; there are 'one'" in error({"one": MINUTES}, {"two": [print]})
    assert "is not a sink for Spark" in error({"one": MINUTES}, {"one": ["windows"]})
    assert "groupIdPrefix" in error({"one": MINUTES}, {}, options={"kafka.group.id": "mine"})
    many = {f"stream-{at}": MINUTES for at in range(40)}
    assert "40 are too many to run together" in error(many, {})


@pytest.mark.slow
@pytest.mark.kafka
@pytest.mark.spark
def test_other_streams_are_refused_by_name(spark: Any, kafka: Any, tmp_path: Path) -> None:
    topic = f"together-{uuid.uuid4().hex[:8]}"
    kafka.create_topic(topic, 1)
    rows = posts(topic, kafka.bootstrap_servers)
    own = rows.tumbling("1m").agg(n=count())
    changed = rows.tumbling("1h").agg(n=count())

    def run(**streams: Stream) -> None:
        query = write_together(
            streams, spark, tmp_path, {}, available_now=True, dead_letters=None, close_at_end=True
        )
        assert query.awaitTermination(600)

    producer = Producer(
        {"bootstrap.servers": kafka.bootstrap_servers, "enable.idempotence": True, "log_level": 0}
    )
    producer.produce(topic, b'{"id": 1}')
    assert producer.flush(120) == 0
    run(one=own, two=own)
    with pytest.raises(Exception, match="made by the streams 'one', 'two', and there are 'one' now"):
        run(one=own)
    with pytest.raises(Exception, match="another definition"):
        run(one=own, two=changed)
    run(one=own, two=own)
