"""What kinds of windows, and rules, cost on Spark, in seconds of the processor.

400,000 JSON messages of ten minutes in 4 partitions, read in 4 micro-batches. Each of 100,000 users comes for
some seconds only, so that each has one session and sessions close all the time. Counted is what the JVM and
its Python workers use, and the driver, but not the broker, of a query
from its start to its end. Medians of several turns, in which the queries take turns, and of their ratios.

The peer of sessions is Spark's own `session_window` with its own HyperLogLog, of rows that our source gives.
"""

from __future__ import annotations

import os
import statistics
import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
from confluent_kafka import Producer
from pyspark.sql import functions as F

from streamgauge import Stream, count, distinct, quantiles, rules
from streamgauge import json as json_value
from streamgauge.apps.dev.kafka.broker import EmbeddedKafka
from streamgauge.spark_udafs.session.session import session
from streamgauge.spark_udafs.streaming.alerts import AlertingSink
from streamgauge.spark_udafs.streaming.run import on_spark, source_of, write

from .measure import line, spent_with
from .topic import PARTITIONS

MESSAGES = int(os.environ.get("MESSAGES", 400_000))
USERS, SECONDS, BATCHES = 100_000, 600, 4
TURNS = int(os.environ.get("TURNS", 3))
"""Fewer only to try the script."""
ONLY = os.environ.get("ONLY", "").split()
"""The names of some queries, to compare the first with the last of them."""
START = 1_700_000_040


def messages() -> list[str]:
    """In the order of their times; a user's lie within some three seconds."""
    random = np.random.default_rng(1)
    at = np.arange(MESSAGES) / MESSAGES
    user = (at * USERS).astype(np.int64) + random.integers(0, USERS // 200, MESSAGES)
    parts = [
        '{"user":"u',
        user,
        '","place":',
        user % 100,
        ',"price":',
        random.lognormal(3, 1, MESSAGES).round(2),
    ]
    parts += [
        ',"page":',
        random.integers(0, 1_000, MESSAGES),
        ',"ms":',
        (1_000 * (START + at * SECONDS)).astype(np.int64),
    ]
    texts = [pl.lit(part) if isinstance(part, str) else pl.Series(part) for part in [*parts, "}"]]
    return pl.select(pl.concat_str(texts)).to_series().to_list()


def fill(broker: EmbeddedKafka, topic: str) -> None:
    broker.create_topic(topic, PARTITIONS)
    settings = {"linger.ms": 50, "queue.buffering.max.messages": 2 * MESSAGES, "compression.type": "lz4"}
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, **settings})
    for number, text in enumerate(messages()):
        producer.produce(topic, text, partition=number % PARTITIONS)
    assert producer.flush(300) == 0


def main() -> list[dict[str, Any]]:
    """A row a claim."""
    with EmbeddedKafka() as broker, tempfile.TemporaryDirectory() as scratch:
        fill(broker, "visits")
        spark = session("bench", "local[2]", {"spark.ui.enabled": "false"})
        jvm = spark.sparkContext._gateway.proc.pid  # type: ignore[union-attr]
        schema = {"user": pl.String, "place": pl.Int64, "price": pl.Float64, "page": pl.Int64, "ms": pl.Int64}
        time = pl.from_epoch("ms", time_unit="ms")
        visits = Stream.from_kafka(
            "visits", value=json_value(schema), time=time, bootstrap_servers=broker.bootstrap_servers
        )
        requested = {"n": count(), "pages": distinct("page"), "prices": quantiles("price")}
        by_place = visits.group_by("place")
        minutes = by_place.tumbling("60s").agg(**requested)
        sessions = visits.group_by("user").session("30s").agg(n=count(), pages=distinct("page"))
        folders = iter(range(1_000_000))

        def ended(query: Any) -> None:
            assert query.awaitTermination(1_800)

        def ours(stream: Stream, *sinks: Any) -> Callable[[], None]:
            def run() -> None:
                table = on_spark(
                    stream, spark, max_per_trigger=MESSAGES // BATCHES, dead_letters=None, close_at_end=True
                )
                closed = [0]

                def see(windows: Any, _: Any) -> None:
                    closed[0] += windows.num_rows

                folder = f"{scratch}/{next(folders)}"
                ended(write(table, folder, see, *(make(folder) for make in sinks), available_now=True))
                assert closed[0]

            return run

        def native() -> None:
            settings = {"emit": "rows", "startingOffsets": "earliest"}
            settings["maxOffsetsPerTrigger"] = str(MESSAGES // BATCHES)
            stream = visits.tumbling("60s").agg(n=count())
            rows = spark.readStream.format(source_of(stream, spark)).options(**settings).load()
            rows = rows.withColumn("at", F.timestamp_millis("ms")).withWatermark("at", "10 seconds")
            table = rows.groupBy("user", F.session_window("at", "30 seconds")).agg(
                F.count("*").alias("n"), F.expr("hll_sketch_agg(page, 12)").alias("pages")
            )
            closed = [0]

            def see(frame: Any, _: int) -> None:
                closed[0] += frame.toArrow().num_rows

            writer = table.writeStream.outputMode("append").trigger(availableNow=True)
            ended(writer.option("checkpointLocation", f"{scratch}/{next(folders)}").foreachBatch(see).start())
            assert closed[0]

        alerting = rules.Alerting(
            [rules.Threshold("busy", value="n", above=10**9), rules.Absence("gone", longer="5m")]
        )
        queries: dict[str, Callable[[], None]] = {
            "tumbling": ours(minutes),
            "hopping": ours(by_place.hopping("60s", every="10s").agg(**requested)),
            "with rules": ours(minutes, lambda folder: AlertingSink(minutes, alerting, f"{folder}/rules")),
            "sessions": ours(sessions),
            "session_window": native,
        }
        queries = {name: query for name, query in queries.items() if name in (ONLY or queries)}
        spent: dict[str, list[float]] = {name: [] for name in queries}
        for _ in range(TURNS + 1):
            for name, query in queries.items():
                before = spent_with(jvm)
                query()
                spent[name].append(spent_with(jvm) - before)
                print(name, spent[name][-1], flush=True)
        spark.stop()
    # The first turn loads what all others use.
    turns = {name: seconds[1:] for name, seconds in spent.items()}
    if ONLY:
        return [_row("only some", names[0], names[-1], turns, "") for names in [list(turns)]]
    return [
        _row(
            "hopping 60 s by 10 s on Spark, against tumbling 60 s, in buckets",
            "hopping",
            "tumbling",
            turns,
            "≤ 2",
        ),
        _row("rules on Spark, against the query without", "with rules", "tumbling", turns, "≤ 1.1"),
        _row(f"sessions of {USERS:,} users on Spark", "sessions", "session_window", turns, "≤ 1"),
    ]


def _row(claim: str, name: str, peer: str, turns: dict[str, list[float]], target: str) -> dict[str, Any]:
    ours, theirs = (statistics.median(turns[one]) for one in (name, peer))
    ratio = statistics.median(one / other for one, other in zip(turns[name], turns[peer], strict=True))
    return line(claim, f"{ours:.1f} s", f"{peer} {theirs:.1f} s", ratio, target)


if __name__ == "__main__":
    for row in main():
        print(row)
