"""How long micro-batches take at a steady rate, ours and those of Spark's own connector and sketches.

A producer writes 100,000 messages a second; a query of 1,000 groups and three sketches (HLL, KLL, frequent
items) in windows of a minute reads them, each micro-batch begun as soon as the last one is done. Reported are
the median and the 99th percentile of the micro-batches of a minute, once ten are done: the first ones start
workers, compile, and take what has come in meanwhile.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import threading
import time
from typing import Any

import numpy as np
from confluent_kafka import Producer

from streamgauge import Stream, distinct, kll_quantiles, top_k
from streamgauge import json as json_value
from streamgauge.apps.dev.kafka.broker import EmbeddedKafka
from streamgauge.spark_udafs.session.session import session
from streamgauge.spark_udafs.streaming.run import on_spark

from .connector import connected, connector_jars, native_sketches
from .measure import line
from .topic import PARTITIONS, SCHEMA

RATE = int(os.environ.get("RATE", 100_000))
SECONDS = float(os.environ.get("SECONDS", 60))
"""Lower only to try the script."""
WARM_BATCHES, WARM_SECONDS, GROUPS = 10, 300, 1_000


class Steady:
    """A thread that sends `RATE` messages a second to a topic, a tenth of them every tenth of a second."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        random = np.random.default_rng(1)
        self._lines = [
            f'{{"user":"u{user}","tag":"g{tag}","price":{price:.2f},"ts":%d}}'
            for user, tag, price in zip(
                random.integers(100_000, 600_000, RATE // 10),
                random.integers(0, GROUPS, RATE // 10),
                random.lognormal(3, 1, RATE // 10),
            )
        ]
        settings = {"bootstrap.servers": bootstrap, "linger.ms": 5, "compression.type": "lz4"}
        self._producer = Producer({**settings, "queue.buffering.max.messages": 1_000_000})
        self._topic = topic
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._send)

    def __enter__(self) -> Steady:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _send(self) -> None:
        due = time.monotonic()
        while not self._over.is_set():
            now = int(time.time() * 1000)
            for number, text in enumerate(self._lines):
                self._producer.produce(self._topic, text % now, partition=number % PARTITIONS)
            self._producer.poll(0)
            due += 0.1
            time.sleep(max(0.0, due - time.monotonic()))
        self._producer.flush(30)


def ours(spark: Any, bootstrap: str, topic: str) -> Any:
    """Our source's table of sketches."""
    rows = Stream.from_kafka(topic, value=json_value(SCHEMA), bootstrap_servers=bootstrap).group_by("tag")
    aggregates = {"users": distinct("user"), "prices": kll_quantiles("price"), "tags": top_k("tag")}
    return on_spark(
        rows.tumbling("1m").agg(**aggregates), spark, start="latest", dead_letters=None, close_at_end=True
    )


def native(spark: Any, bootstrap: str, topic: str) -> Any:
    """The same by Spark's own connector and aggregates."""
    rows = connected(spark.readStream, bootstrap, topic, startingOffsets="latest")
    return native_sketches(rows.withWatermark("at", "0 seconds"), "tag")


def batches(table: Any) -> list[float]:
    """The milliseconds of micro-batches at a steady rate. Raises `RuntimeError` if it is never reached."""
    with tempfile.TemporaryDirectory() as folder:
        writer = table.writeStream.format("noop").outputMode("append")
        query = writer.option("checkpointLocation", folder).start()
        latest = time.monotonic() + WARM_SECONDS
        while len(warm := _read(query)) < WARM_BATCHES:
            if time.monotonic() > latest:
                raise RuntimeError(f"{len(warm)} micro-batches in {WARM_SECONDS} s; see the query's errors")
            query.awaitTermination(1)
        query.awaitTermination(SECONDS)
        result = [elapsed for number, elapsed in _read(query).items() if number not in warm]
        query.stop()
    return result


def _read(query: Any) -> dict[int, float]:
    """The milliseconds of the micro-batches that had rows, by their number."""
    return {
        progress["batchId"]: progress["durationMs"]["triggerExecution"]
        for progress in query.recentProgress
        if progress["numInputRows"] > 1
    }


def main() -> list[dict[str, Any]]:
    """One row."""
    jars = connector_jars()
    settings = {"spark.ui.enabled": "false", "spark.sql.streaming.numRecentProgressUpdates": "10000"}
    with EmbeddedKafka() as broker:
        broker.create_topic("steady", PARTITIONS)
        spark = session("bench", "local[2]", {**settings, **({"spark.jars": jars} if jars else {})})
        at = broker.bootstrap_servers
        with Steady(at, "steady"):
            mine = batches(ours(spark, at, "steady"))
            theirs = batches(native(spark, at, "steady")) if jars else []
        spark.stop()
    return [
        line(
            f"micro-batches at {RATE:,} messages a second, {GROUPS:,} groups, three sketches",
            _summary(mine),
            f"Spark's connector {_summary(theirs)}" if theirs else "Spark's connector can't be had here",
            statistics.median(theirs) / statistics.median(mine) if theirs else "",
            "ours: median under 1 s",
        )
    ]


def _summary(result: list[float]) -> str:
    return f"p50 {statistics.median(result):,.0f} ms, p99 {np.percentile(result, 99):,.0f} ms"


if __name__ == "__main__":
    for row in main():
        print(row)
