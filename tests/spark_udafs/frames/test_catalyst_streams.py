"""Where Catalyst has a sketch, it makes it of a DataFrame's rows in windows and streams, without Python."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from streamgauge.operators.definition import aggregates as ask
from streamgauge.spark_udafs.frames.frames import sketch
from streamgauge.spark_udafs.frames.tables import as_table
from streamgauge.spark_udafs.streaming.run import write

from ..conftest import skip_if_one_batch

pytestmark = pytest.mark.spark

ROWS = """
    SELECT id % 300 AS user, id % 7 AS site, 'tag' || id % 11 AS tag, id % 5 = 0 AS paid,
      timestamp_micros(1767225600000000 + id * 700000) AS at
    FROM range(1000)
"""
REQUESTED = {
    "n": ask.count(),
    "users": ask.distinct("user"),
    "set": ask.distinct_set("tag"),
    "spread": ask.kll_quantiles("user"),
    "tags": ask.top_k("tag"),
    "paid": ask.mean("paid"),
    "least": ask.min("user"),
}


def sketched_by_catalyst(table: Any) -> bool:
    return "hll_sketch_agg(" in table._jdf.queryExecution().analyzed().toString()


def test_windows_of_a_batch_are_made_in_the_jvm_and_equal_those_of_python(spark: Any) -> None:
    rows = spark.sql(ROWS)
    over = F.window("at", "1 minute")
    table = sketch(rows).groupBy(over, "site").agg(**REQUESTED)
    assert sketched_by_catalyst(table)
    by_python = sketch(rows).groupBy(over, "site").agg(**REQUESTED, other=ask.variance("user"))
    assert not sketched_by_catalyst(by_python)
    keys = ["window_start", "site"]
    answers = [as_table(one).answers().sort(keys) for one in (table, by_python)]
    for name in ("window_start", "window_end", "site", "n", "paid", "least", "tags"):
        assert answers[0][name].to_list() == answers[1][name].to_list(), name
    # Exact counts below the sketches' sizes.
    for name in ("users", "set"):
        estimates = [one[name].struct.field("estimate").round(3).to_list() for one in answers]
        assert estimates[0] == estimates[1]


def test_windows_of_a_stream_are_merged_in_sparks_state(spark: Any, tmp_path: Path) -> None:
    skip_if_one_batch(spark)
    folder = str(tmp_path / "rows")
    spark.sql(ROWS).repartition(3).write.parquet(folder)
    schema = spark.read.parquet(folder).schema
    stream = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(folder)
    late = sketch(stream).withWatermark("at", "20 minutes").groupBy(F.window("at", "1 minute"), "site")
    minutes = late.agg(**REQUESTED)
    assert sketched_by_catalyst(minutes)
    tables: list[Any] = []
    query = write(minutes, tmp_path / "checkpoint", lambda table, _: tables.append(table), available_now=True)
    assert query.awaitTermination(600)
    assert not tables or sum(len(one.answers()) for one in tables) == 0  # no window is over yet
    spark.sql(
        "SELECT -1L user, 0L site, 'x' tag, false paid, timestamp'2026-01-01 09:00:00 UTC' at"
    ).write.mode("append").parquet(folder)
    query = write(minutes, tmp_path / "checkpoint", lambda table, _: tables.append(table), available_now=True)
    assert query.awaitTermination(600)
    streamed = sorted(
        (row for table in tables for row in table.answers().to_dicts()),
        key=lambda row: (row["window_start"], row["site"]),
    )
    batch = as_table(sketch(spark.sql(ROWS)).groupBy(F.window("at", "1 minute"), "site").agg(**REQUESTED))
    expected = batch.answers().sort("window_start", "site").to_dicts()
    exact = ("window_start", "site", "n", "paid", "least", "tags")
    assert [[row[name] for name in exact] for row in streamed] == [
        [row[name] for name in exact] for row in expected
    ]


def test_a_declared_schema_gives_the_same_table_or_names_what_it_cannot(spark: Any) -> None:
    rows = spark.sql(ROWS)
    schema: StructType = rows.schema
    over = F.window("at", "1 minute")
    declared = as_table(sketch(rows, schema=schema).groupBy(over, "site").agg(**REQUESTED))
    known = as_table(sketch(rows).groupBy(over, "site").agg(**REQUESTED))
    assert declared == known
    with pytest.raises(ValueError, match="isn't in the declared schema"):
        sketch(rows, schema=schema).groupBy((F.col("user") + 1).alias("u")).agg(n=ask.count())
    with pytest.raises(ValueError, match=r"no column 'price'; the DataFrame has user, site"):
        sketch(rows, schema=schema).agg(n=ask.distinct("price"))
    with pytest.raises(ValueError, match="must make the sketches"):
        sketch(rows, schema=schema).groupBy(F.window("at", "2 minutes", "1 minute")).agg(n=ask.count())
    with pytest.raises(ValueError, match="must make the sketches"):
        sketch(rows, schema=schema).agg(v=ask.variance("user"))
    with pytest.raises(TypeError, match="schema must be a StructType"):
        sketch(rows, schema="user long")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="streaming=True is only for a declared schema"):
        sketch(rows, streaming=True)


def test_a_time_that_no_table_can_hold_ends_the_query(spark: Any) -> None:
    rows = spark.sql("SELECT timestamp_seconds(1767225600000) AS at, 1 AS n")
    with pytest.raises(Exception, match="'at' is outside the years 1 to 9999"):
        as_table(sketch(rows).groupBy(F.window("at", "1 minute")).agg(n=ask.count()))
