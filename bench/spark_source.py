"""Messages a second from Kafka to three sketches inside Spark: our source, with Catalyst merging.

3 M JSON messages, 72 bytes a record, lz4, in 4 partitions into a HyperLogLog of users, a KLL of prices and
the frequent tags; the broker and Spark share the machine. Warm: the second and later bounded reads of a
session. Steady: micro-batches of 3 M after the first, each from the trigger to its commit. Medians of three.
Peers in
the same run are Spark's own Kafka connector with `from_json` and native sketches, and our source reading
message by message, by `consume()`.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from typing import Any

from streamgauge import Stream
from streamgauge.apps.dev.kafka.broker import EmbeddedKafka
from streamgauge.spark_udafs.frames.tables import as_table
from streamgauge.spark_udafs.session.session import session
from streamgauge.spark_udafs.streaming.run import on_spark, write

from .connector import connected, connector_jars, native_sketches
from .measure import line
from .topic import BY_CONSUME, MESSAGES, filled, sketched

RUNS = 3


def warm(spark: Any, stream: Stream) -> float:
    """Messages a second of a bounded read, from the call to the merged table."""
    start = time.perf_counter()
    table = as_table(on_spark(stream, spark, streaming=False, dead_letters=None))
    assert table.num_rows
    return MESSAGES / (time.perf_counter() - start)


def native(spark: Any, bootstrap: str, topic: str) -> float:
    """The same by Spark's own connector and aggregates."""
    start = time.perf_counter()
    assert native_sketches(connected(spark.read, bootstrap, topic)).collect()
    return MESSAGES / (time.perf_counter() - start)


def native_steady(spark: Any, bootstrap: str, topic: str) -> list[float]:
    """Messages a second of the connector's micro-batches after the first."""
    rows = connected(spark.readStream, bootstrap, topic, maxOffsetsPerTrigger=str(MESSAGES))
    table = native_sketches(rows.withWatermark("at", "0 seconds"))
    with tempfile.TemporaryDirectory() as folder:
        writer = table.writeStream.format("noop").outputMode("append").trigger(availableNow=True)
        query = writer.option("checkpointLocation", folder).start()
        assert query.awaitTermination(600)
        full = [p for p in query.recentProgress if p["numInputRows"] >= MESSAGES // 2]
        return [p["numInputRows"] / p["durationMs"]["triggerExecution"] * 1e3 for p in full[1:]]


def steady(spark: Any, bootstrap: str, stream: Stream) -> tuple[list[float], dict[str, int]]:
    """Messages a second of micro-batches after the first, and the last one's milliseconds by phase."""
    again = {"max_per_trigger": MESSAGES, "dead_letters": None}
    with tempfile.TemporaryDirectory() as folder:
        query = write(on_spark(stream, spark, **again, close_at_end=True), folder, available_now=True)
        assert query.awaitTermination(600)
        full = [p for p in query.recentProgress if _read(p) >= MESSAGES // 2]
        phases = dict(full[-1]["durationMs"])
        return [_read(p) / p["durationMs"]["triggerExecution"] * 1e3 for p in full[1:]], phases


def _read(progress: Any) -> int:
    """The messages of a micro-batch."""
    import json

    end = json.loads(progress["sources"][0]["endOffset"])
    places = [(topic, p) for topic, ps in end["offsets"].items() for p in ps]
    return sum(end["offsets"][t][p] - end["begin"][t][p] for t, p in places)


def main() -> list[dict[str, Any]]:
    jars = connector_jars()
    settings = {"spark.ui.enabled": "false", **({"spark.jars": jars} if jars else {})}
    with EmbeddedKafka() as broker:
        at = broker.bootstrap_servers
        topic = filled(broker, "posts", MESSAGES)
        spark = session("bench", "local[2]", settings)
        try:
            stream = sketched(at, topic)
            by_consume = sketched(at, topic, BY_CONSUME)
            turns = [
                (warm(spark, stream), warm(spark, by_consume), native(spark, at, topic) if jars else None)
                for _ in range(RUNS + 1)
            ][1:]
            bounded, plain = (statistics.median(turn[which] for turn in turns) for which in (0, 1))
            by_spark = statistics.median(turn[2] for turn in turns) if jars else None
            many = filled(broker, "many", (RUNS + 1) * MESSAGES)
            batches, phases = steady(spark, at, sketched(at, many))
            of_spark = statistics.median(native_steady(spark, at, many)) if jars else None
        finally:
            spark.stop()
    reported = ", ".join(f"{name} {ms}" for name, ms in sorted(phases.items(), key=lambda item: -item[1])[:4])
    return [
        _row("Spark source, a warm bounded read", bounded, by_spark),
        line("the same, against consume()", _rate(bounded), _rate(plain), bounded / plain, "≥ 1.5"),
        _row(f"Spark source, a steady micro-batch (ms: {reported})", statistics.median(batches), of_spark),
    ]


def _rate(rate: float) -> str:
    return f"{rate / 1e6:.2f} M/s"


def _row(claim: str, rate: float, peer: float | None) -> dict[str, Any]:
    if peer is None:
        return line(claim, _rate(rate), "Spark's connector can't be had here", "", "≥ 5")
    return line(claim, _rate(rate), f"Spark's connector {_rate(peer)}", rate / peer, "≥ 5")
