"""Rows reach Python workers as they are, by whichever way; and no way runs a job before it is to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from py4j.protocol import Py4JError
from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import LongType, StructField, StructType

from streamgauge import count, distinct, kll_quantiles, query, top_k
from streamgauge.spark import as_table, sketch
from streamgauge.spark_udafs.frames import frames
from streamgauge.spark_udafs.session import map_in_arrow
from streamgauge.spark_udafs.session.map_in_arrow import quicker_in_python, through_workers

pytestmark = pytest.mark.spark

_EACH_KIND = [
    "id",
    "cast(id % 100 AS tinyint) AS small",
    "id % 3 = 0 AS flag",
    "cast(id AS float) / 7 AS real",
    "if(id % 11 = 0, null, if(id % 5 = 0, double('NaN'), id / 3)) AS price",
    "cast(id AS decimal(30, 4)) / 8 AS amount",
    "if(id % 4 = 0, null, concat('user ', id, repeat('ü', cast(id % 9 AS int)))) AS user",
    "date_add(date'1890-01-01', cast(id AS int)) AS day",
    "timestamp_millis(id * 86400000 * 9) AS at",
    "cast(timestamp_millis(id * 86400000) AS timestamp_ntz) AS wall",
]


def _as_they_are(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches


def _same(rows: DataFrame) -> DataFrame:
    return through_workers(rows, _as_they_are, to_arrow_schema(rows.schema, timezone="UTC"))


def _whole(frame: DataFrame) -> bool:
    """Whether the rows pass in batches that were written whole."""
    return "ExistingRDD" in _same(frame)._jdf.queryExecution().executedPlan().toString()


@pytest.mark.slow
def test_rows_of_each_kind_come_as_they_are(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(map_in_arrow, "_ROWS", 128)
    monkeypatch.setattr(map_in_arrow, "_ROWS_OF_TEXT", 37)
    rows = spark.range(1_000, numPartitions=3).selectExpr(*_EACH_KIND)
    texts, numbers = rows, rows.drop("user")
    for one in (texts, numbers, texts.where("id < 0"), texts.cache()):
        assert _whole(one)
        result, there = (pl.from_arrow(rows.orderBy("id").toArrow()) for rows in (_same(one), one))
        assert isinstance(result, pl.DataFrame) and result.equals(there)
    texts.unpersist()


def test_short_batches_are_joined(spark: Any) -> None:
    rows = spark.range(40_000, numPartitions=1).selectExpr("cast(id AS string) AS user")

    def lengths(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"rows": [batch.num_rows for batch in batches]})

    result = through_workers(rows, lengths, pa.schema([("rows", pa.int64())])).toArrow()
    assert result.column("rows").to_pylist() == [32_768, 7_232]


def test_only_what_needs_no_job_is_written_whole(spark: Any) -> None:
    rows = spark.range(1_000).withColumn("key", F.expr("id % 7"))
    counted = rows.groupBy("key").count()
    joined = rows.join(F.broadcast(counted), "key")
    lists = rows.select(F.array("id").alias("ids"), F.encode(F.lit("x"), "UTF-8").alias("raw"))
    observed = rows.observe(Observation(), F.count("*").alias("n"))
    requested = rows.where(F.col("key") < counted.agg(F.max("key")).scalar())
    jobs = set(spark.sparkContext.statusTracker().getJobIdsForGroup(None))
    for one in (counted, joined, lists, observed, requested, counted.cache()):
        assert not _whole(one)
    assert _whole(rows.where("key = 3"))
    assert set(spark.sparkContext.statusTracker().getJobIdsForGroup(None)) == jobs
    assert counted.count() == 7
    assert _whole(counted)
    assert sorted(row.key for row in _same(counted).collect()) == list(range(7))
    counted.unpersist()


def test_an_observation_beside_sketches_is_reported(spark: Any) -> None:
    seen = Observation()
    rows = spark.range(100).observe(seen, F.count("*").alias("n"))
    table = sketch(rows).groupBy(F.expr("id % 2").alias("odd")).agg(ids=distinct("id"), rows=count())
    assert query(as_table(table))["rows"].to_list() == [50, 50]
    assert seen.get == {"n": 100}


def test_python_is_chosen_for_many_rows_in_memory_in_some_groups(
    spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(map_in_arrow, "_ROWS_OF_GROUP", 10)
    rows = spark.range(20_000, numPartitions=2).selectExpr("id", "id % 300 AS some", "id % 20 AS few")
    assert not quicker_in_python(rows.select("some"))
    rows = rows.cache()
    assert not quicker_in_python(rows.select("some"))
    assert rows.count() == 20_000
    assert quicker_in_python(rows.select("some"))
    assert quicker_in_python(rows.where("id > 5").select(F.concat("some", F.lit("!"))))
    assert not quicker_in_python(rows.select("few"))
    assert not quicker_in_python(rows.select("id"))
    assert not quicker_in_python(rows.groupBy("some").count().select("some"))
    rows.unpersist()


def test_whoever_sketches_the_answers_agree(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = spark.range(30_000, numPartitions=3).selectExpr(
        "if(id % 300 = 0, null, id % 300) AS key", "id % 7000 AS user", "id % 11 AS tag", "id / 7 AS price"
    )
    aggregates = {
        "users": distinct("user"),
        "tags": top_k("tag"),
        "prices": kll_quantiles("price"),
        "n": count(),
    }
    collected = []
    for python in (False, True):
        monkeypatch.setattr(frames, "quicker_in_python", lambda keys, python=python: python)
        table = as_table(sketch(rows).groupBy("key").agg(**aggregates))
        assert python == (
            "__read" in sketch(rows).groupBy("key").agg(**aggregates)._jdf.queryExecution().toString()
        )
        collected.append(query(table).sort("key"))
    catalyst, workers = collected
    assert catalyst.select("key", "users", "tags", "n").equals(workers.select("key", "users", "tags", "n"))
    assert isinstance(workers, pl.DataFrame)
    assert len(workers) == 300


def test_another_version_s_method_of_other_arguments_is_left_alone() -> None:
    class Rows:
        schema = StructType([StructField("id", LongType())])

        def __init__(self, error: Exception) -> None:
            self._jdf, self._error = self, error

        def toArrowBatchRdd(self, *given: Any) -> None:
            raise self._error

    missing: Any = Rows(Py4JError("Method toArrowBatchRdd([class java.lang.Integer]) does not exist"))
    assert map_in_arrow._batches_of(missing) is None
    other: Any = Rows(ValueError("Spark's own"))
    with pytest.raises(ValueError, match="Spark's own"):
        map_in_arrow._batches_of(other)
