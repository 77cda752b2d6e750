"""Sinks hold each micro-batch once, however often it is written, and wait for a broker that is away."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.sketching.accounting import Account
from streamgauge.operators.table.schema import END, START
from streamgauge.spark_udafs.run import account_of, on_spark, write
from streamgauge.spark_udafs.sinks import Batch, KafkaSink

from .queries import read_topic

pytestmark = [pytest.mark.kafka, pytest.mark.spark]


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
        KafkaSink(name, kafka.bootstrap_servers)(table, batch)
    sink = KafkaSink(name, kafka.bootstrap_servers)
    sink(table, batch)
    sink(table, Batch(batch.query, 8))
    sink(table, Batch(batch.query, 8))
    assert sum(part.num_rows for part in read_topic(kafka, name)) == 2 * table.num_rows
    # Another query's batches of the same numbers are others, in the same sink too; and one query may write to
    # two topics in turn.
    beside = KafkaSink(topic(2), kafka.bootstrap_servers, prefix="mine")
    for number in (7, 8, 8):
        sink(table, Batch("other" + name, number))
        beside(table, Batch(batch.query, number))
        sink(table, Batch(batch.query, number))
    assert sum(part.num_rows for part in read_topic(kafka, name)) == 4 * table.num_rows
    assert sum(part.num_rows for part in read_topic(kafka, beside._topic)) == 2 * table.num_rows


def test_a_broker_that_goes_away_is_waited_for(
    spark: Any,
    tmp_path: Path,
    frame_of: Callable[..., pl.DataFrame],
    json_of: Callable[[pl.DataFrame], list[bytes]],
    everything_from: Callable[[str], Stream],
) -> None:
    from dataclasses import replace

    from confluent_kafka import Producer

    from streamgauge.apps.kafka.broker import EmbeddedKafka

    broker = EmbeddedKafka(data=tmp_path / "kafka").start()
    try:
        broker.create_topic("posts", 2)
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "log_level": 0})

        def sending(values: list[bytes]) -> None:
            for number, value in enumerate(values):
                producer.produce("posts", value, partition=number % 2)
            assert producer.flush(60) == 0

        values = json_of(frame_of(3, rows=600))
        sending(values[:300])
        stream = everything_from("posts")
        here = replace(stream, source=replace(stream.source, bootstrap_servers=broker.bootstrap_servers))
        query = write(on_spark(here, spark, dead_letters=None), tmp_path / "checkpoint")
        counted_to(query, 300)
        broker.stop()
        time.sleep(3)
        broker.start()
        sending(values[300:])
        counted_to(query, 600)
        query.stop()
    finally:
        broker.stop()


def counted_to(query: Any, count: int) -> None:
    """Wait until a query has counted so many messages."""
    deadline = time.monotonic() + 120
    while account_of(query).counted < count:
        assert time.monotonic() < deadline, f"only {account_of(query)} after two minutes"
        assert query.isActive, query.exception()
        time.sleep(0.2)
    assert account_of(query) == Account(read=count, counted=count)
