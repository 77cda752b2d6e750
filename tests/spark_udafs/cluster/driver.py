"""A driver of a cluster in client mode: run by itself, it prints what its jobs gave, a line of JSON each.

    python driver.py '{"master": "spark://…", "servers": "localhost:9092", "folder": "…", "jobs": ["stream"]}'

With `connect` its session is that of a Connect server of its own, in a JVM that it starts. With `strike` a
step of the stream, in the middle of a micro-batch, strikes whenever that file is there: it removes the file
and kills what `victim`, or the file, names.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import streamgauge as sg
from streamgauge.rules import Alerting, AlertsToFile, Threshold

TRADE = {"symbol": pl.String, "user": pl.Int64, "price": pl.Float64, "at": pl.Datetime("us")}
AGGREGATES = {
    "Catalyst": lambda: {"n": sg.count(), "users": sg.distinct("user"), "units": sg.sum("user")},
    "buckets": lambda: {"n": sg.count(), "users": sg.distinct("user"), "prices": sg.quantiles("price")},
}

CONNECT = {
    "spark.api.mode": "connect",
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
}


def report(name: str, value: Any) -> None:
    """Print what a job gave."""
    print(json.dumps({name: value}, default=str), flush=True)


def rows_of(table: Any) -> list[list[Any]]:
    """A table's answers, in order: exact ones and estimates of the same rows are equal, however merged."""
    answers = sg.query(table)
    names = [name for name in ("window_start", "symbol", "n", "users", "units", "prices") if name in answers]
    return sorted([str(value) for value in row] for row in answers.select(names).rows())


def striking(strike: str, victim: str) -> Callable[[pl.DataFrame], pl.DataFrame]:
    """A step that strikes once for each such file, in the middle of a task, wherever that runs."""

    def step(frame: pl.DataFrame) -> pl.DataFrame:
        try:
            with open(strike) as file:  # noqa: PTH123
                named = file.read()
            os.unlink(strike)  # noqa: PTH108
        except FileNotFoundError:
            return frame
        struck = named or victim
        if struck == "slow":
            time.sleep(120)
            return frame

        def parent(process: int) -> int:
            with open(f"/proc/{process}/stat") as file:  # noqa: PTH123
                return int(file.read().rpartition(")")[2].split()[1])

        daemon = parent(os.getpid())
        executor = parent(daemon)
        victims = {"python": [daemon, os.getpid()], "executor": [executor]}
        victims["worker"] = [parent(executor), executor]
        for process in victims[struck]:
            os.kill(process, signal.SIGKILL)
        time.sleep(60)
        return frame

    return step


def stream_of(servers: str, topic: str, way: str, strike: str = "", victim: str = "") -> sg.Stream:
    """Trades by symbol and minute."""
    rows = sg.Stream.from_kafka(topic, value=sg.json(TRADE), time="at", bootstrap_servers=servers)
    if strike:
        rows = rows.map_batches(striking(strike, victim), schema=TRADE)
    return rows.group_by("symbol").tumbling("1m", delay="1s").agg(**AGGREGATES[way]())


def main(given: dict[str, Any]) -> None:
    """Run the jobs."""
    folder, servers, topic = Path(given["folder"]), given["servers"], given.get("topic", "trades")
    started = time.monotonic()
    if given.get("connect"):
        builder = SparkSession.builder.appName("cluster").master(given["master"])
        for name, value in {**given.get("config", {}), **CONNECT}.items():
            builder = builder.config(name, value)
        spark = builder.getOrCreate()
    else:
        spark = sg.spark.session(
            "cluster", given["master"], given.get("config", {}), archive=given.get("archive")
        )
    report("session", time.monotonic() - started)
    strike, victim = given.get("strike", ""), given.get("victim", "")

    def stream(way: str) -> None:
        own = folder / f"stream-{way}"
        table = stream_of(servers, topic, way, strike, victim).on_spark(
            spark, max_per_trigger=given.get("most"), close_at_end=True
        )
        held = given.get("die_at")

        def hold(table: Any, batch: Any) -> None:
            if held is not None and batch.number >= held:
                os.kill(os.getpid(), signal.SIGKILL)

        query = sg.spark.write(
            table, own / "checkpoint", sg.spark.SketchesToParquet(own / "windows"), hold, available_now=True
        )
        query.awaitTermination()
        report(f"stream {way}", rows_of(sg.read_table(own / "windows")))
        report(f"account {way}", sg.spark.account_of(query).counted)
        report(f"batches {way}", [p["durationMs"]["triggerExecution"] for p in query.recentProgress])

    def batch() -> None:
        table = stream_of(servers, topic, "buckets").on_spark(spark, streaming=False)
        report("batch", rows_of(sg.spark.as_table(table)))

    def frames() -> None:
        rows = spark.read.parquet(str(folder / "rows"))
        for way in ("Catalyst", "buckets"):
            by_minute = sg.spark.sketch(rows).groupBy("symbol", F.window("at", "1 minute"))
            report(f"frame {way}", rows_of(sg.spark.as_table(by_minute.agg(**AGGREGATES[way]()))))

    def frame_stream() -> None:
        read = spark.readStream.schema(spark.read.parquet(str(folder / "rows")).schema)
        rows = read.option("maxFilesPerTrigger", 1).parquet(str(folder / "rows"))
        sketching = sg.spark.sketch(rows).withWatermark("at", "1 hour").outputMode("complete")
        latest: dict[Any, list[str]] = {}

        def keep(table: Any, batch: Any) -> None:
            for row in rows_of(table):
                latest[tuple(row[:2])] = row

        by_minute = sketching.groupBy("symbol", F.window("at", "1 minute"))
        complete = by_minute.agg(**AGGREGATES["Catalyst"]())
        sg.spark.write(complete, folder / "frames", keep, available_now=True).awaitTermination()
        report("frame stream", sorted(latest.values()))

    def parquet() -> None:
        table = sg.spark.sketch_parquet(folder / "rows", spark=spark).groupBy("symbol")
        whole = table.agg(n=sg.count(), users=sg.distinct("user"))
        report("parquet", rows_of(sg.spark.as_table(whole)))

    def rules() -> None:
        definition, file = stream_of(servers, topic, "Catalyst"), folder / "alerts.jsonl"
        alerting = Alerting([Threshold("busy", value="n", at_least=given["busy"])], to=[AlertsToFile(file)])
        sink = sg.spark.AlertingSink(definition, alerting, folder / "memory")
        table = definition.on_spark(spark, close_at_end=True)
        sg.spark.write(table, folder / "rules", sink, available_now=True).awaitTermination()
        alerts = map(json.loads, file.read_text().splitlines())
        report("rules", sorted([str(alert["key"]), alert["state"]] for alert in alerts))

    known: dict[str, Callable[[], None]] = {
        "stream": lambda: stream("Catalyst"),
        "buckets": lambda: stream("buckets"),
        **{one.__name__: one for one in (batch, frames, frame_stream, parquet, rules)},
    }
    for job in given["jobs"]:
        known[job]()
    spark.stop()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
