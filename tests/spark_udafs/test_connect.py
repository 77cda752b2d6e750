"""The same over Spark Connect, in a process of its own: a process has one kind of session."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

CLIENT = """
import os, sys
os.environ["PYSPARK_PYTHON"] = sys.executable
os.environ["SPARK_TESTING"] = "1"  # the server takes a port that is free
import polars as pl
from pyspark.sql import SparkSession

import streamgauge.functions as S
from streamgauge import Stream, count, distinct, json, quantiles, query, register, sample, top_k
from streamgauge.spark_udafs.frames import sketch, window
from streamgauge.spark_udafs.run import on_spark
from streamgauge.spark_udafs.tables import as_table

spark = SparkSession.builder.remote("local[2]").config("spark.ui.enabled", "false").getOrCreate()
rows = spark.range(1000).selectExpr("id", "timestamp_seconds(id) at", "cast(id % 7 as string) tag")
asked = sketch(rows).groupBy(window("at", "10 minutes"))
found = asked.agg(n=count(), ids=distinct("id"), tags=top_k("tag", k=1), some=sample("id", k=2))
table = query(as_table(found))
print(table.sort("window_start")["n"].to_list(), table["tags"].list.len().to_list())
table = query(as_table(asked.agg(n=count(), ids=quantiles("id"))))
print(sorted(table["n"].to_list()), sorted(spread["n"] for spread in table["ids"]))

register(spark)
rows.createOrReplaceTempView("numbers")
asked = "answer_top_k_string(sketch_top_k(tag, max_size => 64), 1).upper"
(most,) = spark.sql(f"SELECT {asked} FROM numbers").first()
users = rows.agg(S.sketch_distinct("id", lg_k=14).alias("ids"))
twice = S.answer_distinct(S.union_distinct("ids", "ids"))
(row,) = users.select(twice.alias("ids"), S.print_distinct("ids").alias("told")).collect()
print(most, row.ids.lower <= 1000 <= row.ids.upper, "lg_k=14" in row.told)

stream = Stream.from_kafka(
    sys.argv[2], value=json({"at": pl.Datetime("us")}), time="at", bootstrap_servers=sys.argv[1]
).tumbling("1m").agg(n=count())
print(as_table(on_spark(stream, spark, streaming=False, dead_letters=None))["n"].to_pylist())
spark.stop()
"""


def test_frames_and_kafka_over_connect(kafka: Any, topic: Any, send: Any) -> None:
    pytest.importorskip("grpc")
    name = topic()
    send(name, [b'{"at":"2026-01-01T00:00:01"}', b'{"at":"2026-01-01T00:00:02"}'])
    done = subprocess.run(
        [sys.executable, "-c", CLIENT, kafka.bootstrap_servers, name],
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.stdout.splitlines() == [
        "[600, 400] [1, 1]",
        "[400, 600] [400, 600]",
        "[143] True True",
        "[2]",
    ], done.stderr[-3000:]
