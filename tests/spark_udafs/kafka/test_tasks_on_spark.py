"""What a task gives Spark: messages in the columns of Spark's own source, or decoded rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from streamgauge.operators.definition.stream import Stream
from streamgauge.spark_udafs.streaming.run import source_of

pytestmark = [pytest.mark.kafka, pytest.mark.spark]


def test_messages_come_in_the_columns_of_spark_s_own_source(
    spark: Any, kafka: Any, topic: Callable[..., str], send: Callable[..., None]
) -> None:
    name = topic(2)
    send(name, [b"a", None], key=b"k", timestamp=1_700_000_000_123, headers=[("h", b"1")])
    send(name, [b"b"], partition=1)
    on_spark_registered(spark)
    frame = (
        spark.read.format("streamgauge-kafka")
        .option("kafka.bootstrap.servers", kafka.bootstrap_servers)
        .option("subscribe", name)
        .option("includeHeaders", "true")
        .load()
    )
    assert frame.dtypes == [
        ("key", "binary"),
        ("value", "binary"),
        ("topic", "string"),
        ("partition", "int"),
        ("offset", "bigint"),
        ("timestamp", "timestamp"),
        ("timestampType", "int"),
        ("headers", "array<struct<key:string,value:binary>>"),
    ]
    rows = frame.selectExpr("key", "value", "partition", "offset", "unix_millis(timestamp) t", "headers")
    result = sorted(map(tuple, rows.collect()), key=lambda row: row[2:4])
    assert result[0] == (b"k", b"a", 0, 0, 1_700_000_000_123, [("h", b"1")])
    assert result[1][:4] == (b"k", None, 0, 1)
    assert result[2][:4] == (None, b"b", 1, 0) and result[2][5] is None


def on_spark_registered(spark: Any) -> None:
    from streamgauge.spark_udafs.kafka.source import KafkaSketchSource

    spark.dataSource.register(KafkaSketchSource)


def test_decoded_rows_are_given_where_they_are_asked_for(
    spark: Any, topic: Callable[..., str], send: Callable[..., None], everything_from: Callable[[str], Stream]
) -> None:
    name = topic()
    send(name, [b'{"user":"u","lang":"de","tags":["a"]}', b"oops", b'{"lang":"xx"}'])
    rows = spark.read.format(source_of(everything_from(name), spark)).option("emit", "rows").load()
    rows = rows.select("user", "tags").collect()
    assert [tuple(row) for row in rows] == [("u", ["a"])]
