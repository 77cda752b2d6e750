"""A stream on Spark gives what it gives straight off Kafka: the same windows, sketches and account."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

from streamgauge.operators.consumer.options import RunOptions
from streamgauge.operators.consumer.runner import run
from streamgauge.operators.definition import aggregates as ask
from streamgauge.operators.definition.aggregate import Aggregate
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.sinks.sketches_to_parquet import SketchesToParquet as ToFiles
from streamgauge.operators.sketching.account import Account
from streamgauge.operators.table.schema import END, START, read_parquet
from streamgauge.operators.table.sketch_table import merge
from streamgauge.spark_udafs.streaming.run import account_of, on_spark, write
from streamgauge.spark_udafs.streaming.sinks import SketchesToKafka, SketchesToParquet

from ..queries import read_topic

pytestmark = [pytest.mark.kafka, pytest.mark.spark]


BAD = [b"oops", None, b'{"at":7}', b'{"user":"nobody"}']


@pytest.fixture(scope="module")
def messages(frame_of: Callable[..., pl.DataFrame], json_of: Callable[[pl.DataFrame], list[bytes]]) -> Any:
    """Three partitions' messages: some filtered, some late, some bad; the third ends a minute earlier."""
    collected = []
    for partition in range(3):
        frame = frame_of(partition, rows=1_500, minutes=3 if partition < 2 else 2)
        if partition == 1:
            dropped = pl.when(pl.col("lang") == "").then(pl.lit("xx")).otherwise("lang")
            frame = frame.with_columns(lang=dropped)
        values = json_of(frame)
        collected.append([*values[:700], *BAD, *values[700:], *values[:5]])
    return collected


@pytest.fixture
def filled(topic: Callable[..., str], send: Callable[..., None], messages: Any) -> str:
    name = topic(3)
    for partition, values in enumerate(messages):
        send(name, values, partition=partition)
    return name


@pytest.fixture
def few(request: pytest.FixtureRequest) -> dict[str, Aggregate]:
    """Little enough to be quick, merged the one way or the other."""
    aggregates = {"rows": ask.count(), "users": ask.distinct("user"), "some": ask.sample("user", k=7)}
    return aggregates if request.param == "Catalyst" else {**aggregates, "prices": ask.quantiles("price")}


def mostly(way: str) -> pytest.MarkDecorator:
    """Merged this way, and in campaigns the other as well."""
    other = "Catalyst" if way == "buckets" else "buckets"
    return pytest.mark.parametrize("few", [way, pytest.param(other, marks=pytest.mark.soak)], indirect=True)


def run_to_the_end(table: Any, checkpoint: Path, *sinks: Any) -> Any:
    """The query, when all that is there has been read."""
    query = write(table, checkpoint, *sinks, available_now=True)
    assert query.awaitTermination(600)
    return query


def windows_of(folder: Path) -> pa.Table:
    """What a Parquet sink wrote; each window and group once."""
    tables = [read_parquet(path) for path in sorted(folder.glob("*.parquet"))]
    whole = pa.concat_tables(tables)
    assert whole.select([START, END, "lang"]).group_by([START, END, "lang"]).aggregate([]).num_rows == len(
        whole
    )
    return merge(tables)


def test_the_same_windows_sketches_and_account_as_straight_off_kafka(
    spark: Any,
    kafka: Any,
    filled: str,
    everything_from: Callable[..., Stream],
    requested_aggregates: dict[str, Aggregate],
    same_tables: Callable[..., None],
    tmp_path: Path,
) -> None:
    stream = everything_from(filled, requested_aggregates)
    kafka.create_topic(f"{filled}.windows", 2)
    table = on_spark(stream, spark, max_per_trigger=1_700, close_at_end=True)
    written = SketchesToKafka(f"{filled}.windows", kafka.bootstrap_servers)
    query = run_to_the_end(table, tmp_path / "checkpoint", SketchesToParquet(tmp_path / "windows"), written)
    assert len(query.recentProgress) >= 4
    summary = run(stream, RunOptions(until="latest"))
    assert account_of(query) == summary.account
    assert summary.account.balanced
    assert summary.account.late == 15
    assert summary.account.filtered > 0
    # Tombstones and broken rows of the topic are in its dead-letter topic twice now: once from each engine.
    assert summary.account.dead_lettered == 3 * len(BAD)
    by_spark = windows_of(tmp_path / "windows")
    same_tables(by_spark, merge(summary.table), draws=False)
    same_tables(merge(read_topic(kafka, f"{filled}.windows")), by_spark)
    # A Spark-written table merges with a consumer-written one.
    both = merge([by_spark, summary.table])
    assert both.num_rows == by_spark.num_rows
    assert sum(both["rows"].to_pylist()) == 2 * summary.account.counted


@pytest.mark.slow
def test_a_bounded_read_merges_in_one_go(
    spark: Any,
    filled: str,
    everything_from: Callable[..., Stream],
    requested_aggregates: dict[str, Aggregate],
    same_tables: Callable[..., None],
) -> None:
    from streamgauge.spark_udafs.frames.tables import as_table

    stream = everything_from(filled, requested_aggregates)
    table = as_table(on_spark(stream, spark, streaming=False, dead_letters=None))
    same_tables(table, merge(run(stream, RunOptions(until="latest", dead_letters=None)).table), draws=False)


DRIVER = """
import pickle, sys, time
from pathlib import Path
from streamgauge.spark_udafs.streaming.run import account_of, on_spark, source_of, write
from streamgauge.spark_udafs.session.session import session
from streamgauge.spark_udafs.streaming.sinks import SketchesToParquet

folder = Path(sys.argv[1])
stream = pickle.loads((folder / "stream").read_bytes())
spark = session("killed", "local[2]", {"spark.ui.enabled": "false"})
table = on_spark(stream, spark, max_per_trigger=900, dead_letters=None)

def callback(windows, batch):
    # The worst moment: read, merged and written, and not committed.
    print(batch.number, flush=True)
    time.sleep(600)

write(table, folder / "checkpoint", SketchesToParquet(folder / "windows"), callback).awaitTermination()
"""


@pytest.mark.soak
@pytest.mark.parametrize("few", ["buckets", "Catalyst"], indirect=True)
def test_a_killed_query_goes_on_without_loss_or_double_counting(
    spark: Any,
    filled: str,
    everything_from: Callable[..., Stream],
    few: dict[str, Aggregate],
    same_tables: Callable[..., None],
    tmp_path: Path,
) -> None:
    stream = everything_from(filled, few)
    (tmp_path / "stream").write_bytes(pickle.dumps(stream))
    driver = subprocess.Popen(
        [sys.executable, "-c", DRIVER, str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    try:
        assert driver.stdout is not None
        last = int(driver.stdout.readline())
    finally:
        # Python, the JVM and the workers, wherever they are.
        os.killpg(driver.pid, signal.SIGKILL)
        driver.wait()
    assert not (tmp_path / "checkpoint" / "commits" / str(last)).exists()
    assert len(list((tmp_path / "windows").glob("*.parquet"))) == 1
    table = on_spark(stream, spark, max_per_trigger=2_000, dead_letters=None, close_at_end=True)
    query = run_to_the_end(table, tmp_path / "checkpoint", SketchesToParquet(tmp_path / "windows"))
    assert query.recentProgress[0]["batchId"] == last
    summary = run(stream, RunOptions(until="latest", dead_letters=None))
    assert account_of(query) == summary.account
    same_tables(windows_of(tmp_path / "windows"), merge(summary.table), draws=False)


@pytest.mark.slow
@mostly("Catalyst")
def test_an_idle_stream_closes_its_windows_by_the_clock(
    spark: Any,
    topic: Callable[..., str],
    send: Callable[..., None],
    everything_from: Callable[..., Stream],
    few: dict[str, Aggregate],
    frame_of: Callable[..., pl.DataFrame],
    json_of: Callable[[pl.DataFrame], list[bytes]],
    tmp_path: Path,
) -> None:
    name = topic(2)
    # The window's end is less than a second away, and its delay five.
    frame = frame_of(8, rows=9_000, minutes=1).tail(30)
    send(name, json_of(frame))
    collected: list[pa.Table] = []
    table = on_spark(everything_from(name, few), spark, idle_seconds=0.5, close_at_end=True)
    query = write(table, tmp_path / "checkpoint", lambda windows, batch: collected.append(windows))
    deadline = time.monotonic() + 600
    while not collected and time.monotonic() < deadline and query.isActive:
        time.sleep(0.1)
    assert account_of(query) == Account(read=30, counted=30)
    query.stop()
    assert sum(collected[0]["rows"].to_pylist()) == 30


def test_a_sink_of_the_other_engine_is_refused_with_what_to_write() -> None:
    with pytest.raises(TypeError, match=r"not a sink for Spark; .*streamgauge\.spark\.SketchesToParquet"):
        write(None, "checkpoint", ToFiles("windows"))


def test_a_topic_that_does_not_exist_fails_the_query_with_its_name(
    spark: Any, everything_from: Callable[[str], Stream], tmp_path: Path
) -> None:
    query = write(
        on_spark(everything_from("nowhere"), spark, dead_letters=None, close_at_end=True),
        tmp_path / "checkpoint",
    )
    with pytest.raises(Exception, match=r"topic 'nowhere' doesn't exist at 127\.0\.0\.1"):
        query.awaitTermination(60)


@pytest.mark.slow
def test_an_empty_topic_gives_no_windows_and_what_comes_later_is_read(
    spark: Any,
    topic: Callable[..., str],
    send: Callable[..., None],
    everything_from: Callable[[str], Stream],
    frame_of: Callable[..., pl.DataFrame],
    json_of: Callable[[pl.DataFrame], list[bytes]],
    tmp_path: Path,
) -> None:
    name = topic(2)
    table = on_spark(everything_from(name), spark, dead_letters=None, close_at_end=True)
    query = run_to_the_end(table, tmp_path / "checkpoint", SketchesToParquet(tmp_path / "windows"))
    assert account_of(query) == Account()
    assert not (tmp_path / "windows").exists()
    send(name, json_of(frame_of(9, rows=100)))
    query = run_to_the_end(table, tmp_path / "checkpoint", SketchesToParquet(tmp_path / "windows"))
    assert account_of(query) == Account(read=100, counted=100)
    assert sum(windows_of(tmp_path / "windows")["rows"].to_pylist()) == 100
