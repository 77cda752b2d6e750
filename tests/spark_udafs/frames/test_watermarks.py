"""Sketches follow the watermark of their DataFrame, and roll-ups that of the table, in one query."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import functions as F

from streamgauge.operators.definition import aggregates as ask
from streamgauge.spark_udafs.frames.frames import sketch
from streamgauge.spark_udafs.frames.rollup import rollup
from streamgauge.spark_udafs.frames.watermarks import has_watermark
from streamgauge.spark_udafs.streaming.run import write

pytestmark = pytest.mark.spark

ROWS = """
    SELECT id % 300 AS user, id % 3 AS site, timestamp_seconds(1767225601 + id % 300 * 2) AS at
    FROM range(600)
"""
"""300 rows in ten minutes, each twice."""


@pytest.mark.slow
def test_rows_are_deduplicated_before_sketches_and_these_rolled_up_behind(spark: Any, tmp_path: Path) -> None:
    folder = str(tmp_path / "rows")
    spark.sql(ROWS).coalesce(1).write.parquet(folder)
    spark.sql("SELECT -1L user, 0L site, timestamp'2026-01-01 01:00:00 UTC' at").write.mode("append").parquet(
        folder
    )
    schema = spark.read.parquet(folder).schema
    stream = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(folder)
    unique = stream.withWatermark("at", "10 minutes").dropDuplicatesWithinWatermark(["user"])
    minutes = (
        sketch(unique)
        .groupBy("site", F.window("at", "1 minute"))
        .agg(n=F.count("*"), users=ask.distinct("user"))
    )
    tables: list[Any] = []
    hours = rollup(minutes, every="5 minutes", by=[])
    for _ in range(2):  # the second time from its checkpoint
        query = write(
            hours, tmp_path / "checkpoint", lambda table, _: tables.append(table), available_now=True
        )
        assert query.awaitTermination(600)
    answers = [row for table in tables for row in table.answers().to_dicts()]
    assert [row["n"] for row in answers] == [150, 150]
    assert [round(row["users"]["estimate"]) for row in answers] == [150, 150]


@pytest.mark.slow
def test_streams_are_joined_before_sketches_in_two_scheduled_runs(spark: Any, tmp_path: Path) -> None:
    """Hopping windows, whose sketches our own merge holds; the runs count as one that never stops."""
    rows = spark.sql(ROWS).distinct()
    folders = {name: str(tmp_path / name) for name in ("views", "clicks")}
    tables: list[Any] = []

    def stream(name: str) -> Any:
        return spark.readStream.schema(rows.schema).parquet(folders[name]).withWatermark("at", "1 minute")

    for low, high in ((0, 150), (150, 301)):
        part = rows.where(f"user >= {low} AND user < {high}")
        if high > 300:  # a pair by whose time all windows before it are over
            part = part.unionAll(spark.sql("SELECT -1L, 0L, timestamp'2026-01-01 01:00:00 UTC'"))
        part.coalesce(1).write.mode("append").parquet(folders["views"])
        part.where("user % 2 = 0 OR user < 0").coalesce(1).write.mode("append").parquet(folders["clicks"])
        clicks = stream("clicks").selectExpr("user AS who", "at AS clicked")
        within = F.expr("user = who AND clicked >= at AND clicked <= at + INTERVAL 1 SECOND")
        joined = stream("views").join(clicks, within)
        over = F.window("at", "4 minutes", "2 minutes")
        windows = sketch(joined).groupBy(over).agg(n=F.count("*"), spread=ask.quantiles("user"))
        query = write(
            windows, tmp_path / "checkpoint", lambda table, _: tables.append(table), available_now=True
        )
        assert query.awaitTermination(600)
    closed = sorted(
        (row["window_start"], row["n"], row["spread"]["n"])
        for table in tables
        for row in table.answers().to_dicts()
    )
    # A pair every four seconds of ten minutes, from the first second on.
    assert [row[1:] for row in closed] == [(30, 30), (60, 60), (60, 60), (60, 60), (60, 60), (30, 30)]
    assert len({row[0] for row in closed}) == len(closed)


def test_the_mark_of_a_stored_schema_is_no_watermark(spark: Any, tmp_path: Path) -> None:
    rows = spark.sql(ROWS)
    rows.write.parquet(str(tmp_path / "rows"))
    marked = rows.withMetadata("at", {"spark.watermarkDelayMs": 1_000}).schema
    stream = spark.readStream.schema(marked).parquet(str(tmp_path / "rows"))
    assert not has_watermark(stream) and has_watermark(stream.withWatermark("at", "1 second"))
    with pytest.raises(ValueError, match=r"sketch\(df\).withWatermark\(\"at\""):
        sketch(stream).groupBy(F.window("at", "1 minute")).agg(n=F.count("*"))
