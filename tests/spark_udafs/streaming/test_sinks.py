"""Sinks hold each micro-batch once, however often it is written, and wait for a broker that is away."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from pyspark.sql import functions as F

from streamgauge.operators.definition import aggregates as ask
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.sketching.account import Account
from streamgauge.operators.table.query import query
from streamgauge.operators.table.schema import END, START
from streamgauge.spark_udafs.frames.frames import sketch
from streamgauge.spark_udafs.kafka.source import KafkaSketchSource
from streamgauge.spark_udafs.streaming.run import account_of, on_spark, write
from streamgauge.spark_udafs.streaming.sinks import Batch, SketchesToKafka

from ..queries import read_topic

pytestmark = [pytest.mark.kafka, pytest.mark.spark]


@pytest.mark.slow
def test_a_batch_is_in_a_topic_once_however_often_it_is_written(
    kafka: Any, topic: Callable[..., str], everything_from: Callable[[str], Stream]
) -> None:
    import numpy as np

    from streamgauge.operators.table.schema import schema_of

    name = topic(2)
    schema = schema_of(everything_from("anything"))
    at = pa.array(np.array([0, 60_000_000])).cast(pa.timestamp("us", "UTC"))
    columns = {START: at, END: at, "lang": pa.array(["de", "en"])}
    table = pa.table([columns.get(f.name, pa.nulls(2, f.type)) for f in schema], schema=schema)
    batch = Batch("q" + name, 7)
    for _ in range(2):
        SketchesToKafka(name, kafka.bootstrap_servers)(table, batch)
    sink = SketchesToKafka(name, kafka.bootstrap_servers)
    sink(table, batch)
    sink(table, Batch(batch.query, 8))
    sink(table, Batch(batch.query, 8))
    assert sum(part.num_rows for part in read_topic(kafka, name)) == 2 * table.num_rows
    # Another query's batches of the same numbers are others, in the same sink too; and one query may write to
    # two topics in turn.
    beside = SketchesToKafka(topic(2), kafka.bootstrap_servers, prefix="mine")
    for number in (7, 8, 8):
        sink(table, Batch("other" + name, number))
        beside(table, Batch(batch.query, number))
        sink(table, Batch(batch.query, number))
    assert sum(part.num_rows for part in read_topic(kafka, name)) == 4 * table.num_rows
    assert sum(part.num_rows for part in read_topic(kafka, beside._topic)) == 2 * table.num_rows


@pytest.mark.soak
def test_a_broker_that_goes_away_is_waited_for(
    spark: Any,
    tmp_path: Path,
    frame_of: Callable[..., pl.DataFrame],
    json_of: Callable[[pl.DataFrame], list[bytes]],
    everything_from: Callable[[str], Stream],
) -> None:
    from dataclasses import replace

    from confluent_kafka import Producer

    from streamgauge.apps.dev.kafka.broker import EmbeddedKafka

    broker = EmbeddedKafka(data=tmp_path / "kafka").start()
    try:
        broker.create_topic("posts", 2)
        broker.create_topic("plain", 2)
        producer = Producer(
            {"bootstrap.servers": broker.bootstrap_servers, "enable.idempotence": True, "log_level": 0}
        )

        def sending(values: list[bytes], *topics: str) -> None:
            for number, value in enumerate(values):
                for name in topics:
                    producer.produce(name, value, partition=number % 2)
            assert producer.flush(120) == 0

        frame = frame_of(3, rows=600)
        values = json_of(frame)
        sending(values[:300], "posts", "plain")
        stream = everything_from("posts")
        here = replace(stream, source=replace(stream.source, bootstrap_servers=broker.bootstrap_servers))
        running = write(on_spark(here, spark, dead_letters=None, close_at_end=True), tmp_path / "checkpoint")
        minutes: list[pa.Table] = []
        table = sketched_messages(spark, broker.bootstrap_servers)
        plain = write(table, tmp_path / "plain", lambda windows, batch: minutes.append(windows.to_arrow()))
        counted_to(running, 300)
        read_to(plain, 300)
        broker.stop()
        request(broker.port, 20)
        broker.start()
        sending(values[300:], "posts", "plain")
        counted_to(running, 600)
        read_to(plain, 600)
        running.stop()
        # Rows of an hour later, by which all windows are complete.
        sending([b'{"at":"2023-11-14T23:59:00"}'] * 2, "plain")
        whole = frame.group_by("lang", pl.col("at").dt.truncate("1m")).agg(
            pl.len(), pl.col("user").drop_nulls().n_unique()
        )
        wanted = {(lang, at): (rows, users) for lang, at, rows, users in whole.iter_rows()}
        waited_for(plain, lambda: sum(part.num_rows for part in minutes) >= len(wanted))
        plain.stop()
    finally:
        broker.stop()
    for row in query(pa.concat_tables(minutes)).iter_rows(named=True):
        rows, users = wanted.pop((row["lang"], row["window_start"].replace(tzinfo=None)))
        assert row["n"] == row["prices"]["n"] + row["without"] == rows
        assert row["users"]["lower"] <= users <= row["users"]["upper"]
    assert not wanted


def request(port: int, times: int) -> None:
    """Wait until clients have come so often, and in vain, to the address of a broker that is away."""
    with socket.create_server(("127.0.0.1", port)) as door:
        door.settimeout(300)
        for _ in range(times):
            door.accept()[0].close()


def sketched_messages(spark: Any, servers: str) -> Any:
    """Plain messages, decoded by Spark and sketched by `sketch(df)`."""
    spark.dataSource.register(KafkaSketchSource)
    options = {"kafka.bootstrap.servers": servers, "subscribe": "plain", "startingOffsets": "earliest"}
    messages = spark.readStream.format("streamgauge-kafka").options(**options).load()
    row = F.from_json(F.col("value").cast("string"), "at timestamp, lang string, user string, price double")
    rows = messages.select(row.alias("row")).select("row.*").withColumn("without", F.expr("price IS NULL"))
    grouped = sketch(rows).withWatermark("at", "5 minutes").groupBy("lang", F.window("at", "1 minute"))
    without = F.sum(F.col("without").cast("long"))
    users, prices = ask.distinct("user"), ask.quantiles("price")
    return grouped.agg(n=F.count("*"), without=without, users=users, prices=prices)


def counted_to(running: Any, count: int) -> None:
    """Wait until a query has counted so many messages."""
    waited_for(running, lambda: account_of(running).counted >= count)
    assert account_of(running) == Account(read=count, counted=count)


def read_to(running: Any, count: int) -> None:
    """Wait until a query has read so many rows."""
    waited_for(running, lambda: sum(batch["numInputRows"] for batch in running.recentProgress) >= count)


def waited_for(running: Any, done: Callable[[], bool]) -> None:
    """Wait until something is done by a query."""
    deadline = time.monotonic() + 600
    while not done():
        assert time.monotonic() < deadline, f"only {account_of(running)} after ten minutes"
        assert running.isActive, running.exception()
        time.sleep(0.2)
