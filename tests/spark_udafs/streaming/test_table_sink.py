"""A Spark table holds each micro-batch once; upserts and update mode go where they can be kept."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from pyspark.sql import functions as F
from pyspark.sql.classic.dataframe import DataFrame

from streamgauge.operators.definition import aggregates as ask
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.table.query import query
from streamgauge.operators.table.schema import read_parquet
from streamgauge.operators.testing import StreamTester
from streamgauge.sketches.core.protocol import SketchError
from streamgauge.spark_udafs.frames.frames import sketch
from streamgauge.spark_udafs.frames.rollup import rollup
from streamgauge.spark_udafs.frames.tables import as_table
from streamgauge.spark_udafs.streaming import table_sink
from streamgauge.spark_udafs.streaming.run import write
from streamgauge.spark_udafs.streaming.sinks import Batch, SketchesToParquet
from streamgauge.spark_udafs.streaming.table_sink import SketchesToTable

pytestmark = pytest.mark.spark

COLUMNS = {"at": pl.Int64, "site": pl.String, "user": pl.Int64}

MADE = (
    "window_start timestamp, window_end timestamp, site string, rows bigint, users binary, "
    "streamgauge_batch string"
)
"""The columns of the sink's table, for one that is made by hand."""


def windows(*more: str, **windows: ask.Aggregate) -> pa.Table:
    """Three minutes of three sites, one without a name; `more` are keys besides."""
    stream = Stream.from_schema(COLUMNS, time=pl.from_epoch("at")).group_by("site", *more).tumbling("1m")
    tester = StreamTester(stream.agg(**(windows or {"rows": ask.count(), "users": ask.distinct("user")})))
    rows = [{"at": 1_767_225_600 + n, "site": ("a", "b", None)[n % 3], "user": n % 40} for n in range(180)]
    tester.feed(rows)
    return tester.finish().tables().to_arrow()


@pytest.fixture
def table(spark: Any, tmp_path: Any) -> Iterator[str]:
    """The name of a Parquet table that doesn't exist yet."""
    spark.sql(f"CREATE DATABASE sinks LOCATION '{tmp_path}'")
    yield "sinks.minutes"
    spark.sql("DROP DATABASE sinks CASCADE")


@pytest.mark.slow
def test_a_batch_is_there_once_also_after_it_was_written_in_part(spark: Any, table: str) -> None:
    result, sink = windows(), SketchesToTable(table)
    for query_, number, again in (("one", 0, True), ("one", 1, False), ("other", 1, True)):
        sink(result, Batch(query_, number, again))
    assert spark.table(table).count() == 3 * result.num_rows == 27
    # A driver that was killed may have left any part of its last batch.
    sink(result.slice(0, 4), Batch("one", 2))
    for _ in range(2):
        SketchesToTable(table)(result, Batch("one", 2))
    stored = spark.table(table)
    assert stored.count() == 36 and stored.groupBy("streamgauge_batch").count().count() == 4
    hours = query(as_table(rollup(stored, every="1 hour", by=[])))
    assert hours["rows"].to_list() == [4 * 180]
    assert query(as_table(stored))["rows"].sum() == 4 * 180
    folder = next(iter(stored.inputFiles())).removeprefix("file:").rpartition("/")[0]
    assert sum(read_parquet(folder)["rows"].to_pylist()) == 4 * 180


def test_tables_of_something_else_are_refused(spark: Any, table: str) -> None:
    SketchesToTable(table)(windows(), Batch("one", 0))
    with pytest.raises(
        SketchError, match=r'"users" changed from distinct\("user", lg_k=12\) of long items to'
    ):
        SketchesToTable(table)(
            windows(rows=ask.count(), users=ask.distinct("user", lg_k=10)), Batch("one", 1)
        )
    with pytest.raises(SketchError, match="was made for batches that come once"):
        SketchesToTable(table, upsert=True)(windows(), Batch("one", 1))
    spark.sql("CREATE TABLE sinks.others (id long) USING parquet")
    with pytest.raises(SketchError, match="not a table of sketches"):
        SketchesToTable("sinks.others")(windows(), Batch("one", 1))
    assert spark.table(table).count() == 9


@pytest.mark.slow
def test_definitions_are_comments_where_a_table_has_no_metadata(spark: Any, table: str) -> None:
    spark.sql(f"CREATE TABLE {table} ({MADE}, user bigint) USING parquet PARTITIONED BY (site)")
    result = windows("user")
    for number in (0, 1):
        SketchesToTable(table)(result, Batch("one", number, again=False))
    stored = spark.table(table)
    assert "streamgauge" not in stored.schema["users"].metadata
    order = [(name, "ascending") for name in ("window_start", "site", "user")]
    again = as_table(stored.filter("streamgauge_batch = 'one/1'"))
    # The partition's column is the last one there.
    assert again.column_names != result.column_names
    assert again.to_arrow().select(result.column_names).sort_by(order).equals(result.sort_by(order))
    assert query(as_table(rollup(stored, every="1 hour", by=[])))["rows"].to_list() == [360]
    column = result.column_names.index("site")
    nameless = result.set_column(column, result.schema.field("site"), pa.array([""] * result.num_rows))
    with pytest.raises(ValueError, match=r"is partitioned by site, which has an empty string; Spark stores"):
        SketchesToTable(table)(nameless, Batch("one", 2))
    other = windows("user", rows=ask.count(), users=ask.distinct("user", lg_k=10))
    with pytest.raises(
        SketchError, match=r'"users" changed from distinct\("user", lg_k=12\) of long items to'
    ):
        SketchesToTable(table)(other, Batch("one", 2))
    spark.sql(f"ALTER TABLE {table} ALTER COLUMN users COMMENT 'whose are these?'")
    with pytest.raises(SketchError, match="have different definitions"):
        SketchesToTable(table)(result, Batch("one", 2))


def test_a_catalog_that_takes_no_comments_is_refused(
    spark: Any, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    spark.sql(f"CREATE TABLE {table} ({MADE}) USING parquet")
    monkeypatch.setattr(table_sink, "comments_of", lambda schema: {"none": "Spark refuses this"})
    with pytest.raises(
        ValueError, match=r"the catalog of sinks\.minutes stores neither metadata nor comments"
    ):
        SketchesToTable(table)(windows(), Batch("one", 0))


def test_upserts_need_a_format_that_merges(spark: Any, table: str) -> None:
    with pytest.raises(ValueError, match="is in a format that has no MERGE, which upserts need"):
        SketchesToTable(table, upsert=True)(windows(), Batch("one", 0))


def test_only_the_files_of_a_batchs_time_are_looked_at_for_its_rows(
    spark: Any, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Spark's own tables have no MERGE, but their files can be skipped in the same way.
    collected, requested = windows(), []

    def merging(rows: Any, name: str, condition: Any) -> Any:
        requested.append(spark.table(name).join(rows, condition))
        raise NotImplementedError

    spark.sql(f"CREATE TABLE {table} ({MADE.rpartition(',')[0]}) USING parquet")
    monkeypatch.setattr(DataFrame, "mergeInto", merging)
    with pytest.raises(NotImplementedError):
        SketchesToTable(table, upsert=True)(collected, Batch("one", 0))
    SketchesToTable(table, upsert=True)(collected.slice(0, 0), Batch("one", 1))
    (pairs,) = requested
    scanned = pairs._jdf.queryExecution().executedPlan().toString().partition("FileScan")[2]
    pushed = scanned.partition("PushedFilters: ")[2]
    assert "GreaterThanOrEqual(window_start,2026-01-01 00:00:00" in pushed and "LessThanOrEqual" in pushed


@pytest.mark.slow
def test_windows_that_change_reach_sinks_that_replace_them_alone(spark: Any, tmp_path: Any) -> None:
    rows = spark.range(200).selectExpr("id", "id % 3 AS side", "timestamp_seconds(id) AS at")
    rows.write.parquet(str(tmp_path / "rows"))
    streamed = spark.readStream.schema(rows.schema).parquet(str(tmp_path / "rows"))
    changing = sketch(streamed).outputMode("update").withWatermark("at", "1 second")
    minutes = changing.groupBy("side", F.window("at", "1 minute")).agg(n=F.count("*"), ids=ask.distinct("id"))
    with pytest.raises(ValueError, match="SketchesToParquet stores every window, but in update mode"):
        write(minutes, tmp_path / "checkpoint", SketchesToParquet(tmp_path / "windows"))
    latest: dict[tuple[Any, Any], int] = {}

    def replacing(result: pa.Table, batch: Batch) -> None:
        for row in query(result).iter_rows(named=True):
            latest[row["window_start"], row["side"]] = row["n"]

    assert write(minutes, tmp_path / "checkpoint", replacing, available_now=True).awaitTermination(300)
    assert sorted(latest.values()) == [6, 7, 7, *[20] * 9]


MERGING = """
import sys
from pathlib import Path
import polars as pl
from streamgauge import Stream, StreamTester, count, distinct, query
from streamgauge.spark import SketchesToTable, as_table, session
from streamgauge.spark_udafs.streaming.sinks import Batch

catalog = "org.apache.spark.sql.connector.catalog.InMemoryRowLevelOperationTableCatalog"
spark = session("merging", "local[2]", {
    "spark.ui.enabled": "false", "spark.jars": sys.argv[1], "spark.sql.catalog.merging": catalog,
})
spark.sql("CREATE NAMESPACE merging.sinks")
columns = {"at": pl.Int64, "site": pl.String, "user": pl.Int64}
stream = Stream.from_schema(columns, time=pl.from_epoch("at")).group_by("site").tumbling("1m")

def windows(rows):
    tester = StreamTester(stream.agg(rows=count(), users=distinct("user")))
    tester.feed([{"at": n, "site": ("a", "b", None)[n % 3], "user": n % 40} for n in range(rows)])
    return tester.finish().tables()

for upsert in (True, False):
    sink = SketchesToTable(f"merging.sinks.upsert_{upsert}", upsert)
    for rows, number in ((90, 0), (180, 1), (180, 1)):
        sink(windows(rows), Batch("one", number))
    stored = as_table(spark.table(f"merging.sinks.upsert_{upsert}"))
    print(stored.num_rows, query(stored)["rows"].sum(), flush=True)
spark.stop()
"""


@pytest.mark.soak
def test_upserts_and_batches_in_a_format_that_merges() -> None:
    """Spark's own catalog for its tests of MERGE, whose jar is fetched from the Java registry."""
    name = "spark-catalyst_2.13"
    jar = f"https://repo1.maven.org/maven2/org/apache/spark/{name}/4.2.0/{name}-4.2.0-tests.jar"
    done = subprocess.run([sys.executable, "-c", MERGING, jar], capture_output=True, text=True, timeout=600)
    assert done.stdout == "9 180\n15 270\n", done.stderr[-3000:]
