"""Messages a second of two topics joined on Spark and sketched: ours, against Spark's own connector and join.

420,000 JSON messages with a key in 2 × 4 partitions: ads, 500 a second of event time, and the clicks on two
of five of them within a minute; the pairs of each page and minute into a count, a HyperLogLog of ads and a
KLL of how long it took. Both sides read by Trigger.AvailableNow in micro-batches of a quarter, two threads,
state in RocksDB, and give the same pairs. Ours joins in the Python workers that read; the peer is Spark's
connector, `from_json`, Spark's join of two streams and native sketches. Wall time with the query's start,
and the processor's time of driver, JVM and Python workers; the sides take turns, and the first turn is not
counted.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import polars as pl
from pyspark.sql import functions as F

from streamgauge import Stream, count, distinct, kll_quantiles
from streamgauge import json as json_value
from streamgauge.apps.dev.kafka.broker import EmbeddedKafka
from streamgauge.spark_udafs.session.session import session
from streamgauge.spark_udafs.streaming.run import on_spark, write

from .connector import connector_jars
from .measure import line, spent_with
from .stream_join import WITHIN_MS, Filled, filled

ADS = 300_000
RUNS = 3
PARTS = 4


class Spent(NamedTuple):
    """Seconds of a query, by the clock and of the processor."""

    wall: float
    processor: float


def ours(spark: Any, bootstrap: str, topics: Filled, folder: str) -> int:
    """Our join; gives the pairs."""
    ads, clicks = (
        Stream.from_kafka(
            topic,
            value=json_value(schema),
            message={"ad": "key", stamp: "timestamp"},
            bootstrap_servers=bootstrap,
        )
        for topic, schema, stamp in (
            (topics.ads, {"page": pl.String}, "shown"),
            (topics.clicks, {"button": pl.Int64}, "clicked"),
        )
    )
    waited = (pl.col("clicked") - pl.col("shown")).dt.total_milliseconds().cast(pl.Float64)
    pairs = ads.join(clicks, on="ad", within=f"{WITHIN_MS // 1_000}s").with_columns(waited=waited)
    requested = (
        pairs.group_by("page")
        .tumbling("1m")
        .agg(pairs=count(), ads=distinct("ad"), waited=kll_quantiles("waited"))
    )
    table = on_spark(
        requested, spark, max_per_trigger=topics.messages // PARTS, dead_letters=None, close_at_end=True
    )
    joined: list[int] = []
    query = write(
        table, folder, lambda part, _: joined.append(part.answers()["pairs"].sum()), available_now=True
    )
    assert query.awaitTermination(1200)
    return sum(joined)


def peer(spark: Any, bootstrap: str, topics: Filled, folder: str) -> int:
    """Spark's own; the last windows stay open there."""

    def read(topic: str, fields: str, names: tuple[str, str, str]) -> Any:
        ad, at, column = names
        rows = (
            spark.readStream.format("kafka")
            .option("kafka.bootstrap.servers", bootstrap)
            .option("subscribe", topic)
            .option("startingOffsets", "earliest")
            .option("maxOffsetsPerTrigger", str(topics.messages // PARTS // 2))
            .load()
        )
        value = F.from_json(F.col("value").cast("string"), fields)
        rows = rows.select(
            F.col("key").cast("string").alias(ad), F.col("timestamp").alias(at), value.alias("v")
        )
        return rows.select(ad, at, f"v.{column}").withWatermark(at, "10 seconds")

    ads = read(topics.ads, "page STRING", ("ad", "shown", "page"))
    clicks = read(topics.clicks, "button BIGINT", ("clicked_ad", "clicked", "button"))
    reach = F.expr(f"INTERVAL {WITHIN_MS // 1_000} SECONDS")
    near = F.col("clicked").between(F.col("shown") - reach, F.col("shown") + reach)
    pairs = ads.join(clicks, (F.col("ad") == F.col("clicked_ad")) & near)
    waited = F.unix_millis("clicked") - F.unix_millis("shown")
    table = pairs.groupBy(F.window("clicked", "1 minute"), "page").agg(
        F.count("*").alias("pairs"),
        F.expr("hll_sketch_agg(ad, 12)").alias("ads"),
        F.kll_sketch_agg_double(waited.cast("double")).alias("waited"),
    )
    joined: list[int] = []

    def collect(frame: Any, number: int) -> None:
        joined.append(sum(row["pairs"] for row in frame.collect()))

    writer = table.writeStream.outputMode("append").option("checkpointLocation", folder)
    query = writer.trigger(availableNow=True).foreachBatch(collect).start()
    assert query.awaitTermination(1200)
    return sum(joined)


def spent(call: Callable[[str], int], jvm: int, pairs: int, most_open: int) -> Spent:
    """What one run takes; `most_open` pairs may be in windows that it leaves open."""
    with tempfile.TemporaryDirectory() as folder:
        began, before = time.perf_counter(), spent_with(jvm)
        joined = call(folder)
        seconds = Spent(time.perf_counter() - began, spent_with(jvm) - before)
    assert pairs - most_open <= joined <= pairs, (joined, pairs)
    return seconds


def main() -> list[dict[str, Any]]:
    jars = connector_jars()
    assert jars, "the peer needs Spark's own Kafka connector"
    with EmbeddedKafka() as broker:
        at, topics = broker.bootstrap_servers, filled(broker, "join", ADS)
        spark = session("bench", "local[2]", {"spark.ui.enabled": "false", "spark.jars": jars})
        try:
            jvm = spark.sparkContext._gateway.proc.pid
            turns = [
                (
                    spent(lambda folder: ours(spark, at, topics, folder), jvm, topics.pairs, 0),
                    spent(
                        lambda folder: peer(spark, at, topics, folder), jvm, topics.pairs, topics.pairs // 3
                    ),
                )
                for _ in range(RUNS + 1)
            ][1:]
        finally:
            spark.stop()
    rows = []
    for which, name in enumerate(("wall time", "processor time")):
        mine, theirs = (statistics.median(turn[side][which] for turn in turns) for side in (0, 1))
        ratio = statistics.median(turn[1][which] / turn[0][which] for turn in turns)
        shown = [f"{topics.messages / seconds / 1e6:.3f} M/s" for seconds in (mine, theirs)]
        rows.append(line(f"two topics joined on Spark and sketched, {name}", *shown, ratio, "≥ 2"))
    return rows


if __name__ == "__main__":
    for row in main():
        print(row)
