"""Columns of lists on Spark, over whose gaps other values lie: each row keeps its own."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F

from streamgauge.operators.definition import aggregates as ask
from streamgauge.operators.table.query import query
from streamgauge.spark_udafs.frames.frames import sketch
from streamgauge.spark_udafs.frames.tables import as_table
from streamgauge.spark_udafs.parquet.sketching import sketch_parquet

pytestmark = pytest.mark.spark

USERS = ["ann", "bob", "cat"]
POSTS: list[dict[str, Any]] = [
    {
        "user": USERS[i % 3],
        "tags": None if i % 11 == 3 else [f"{USERS[i % 3]}{j}" for j in range(i % 4)],
        "stars": [i, i + 1][: i % 4],
        "shown": i % 5 != 2,
    }
    for i in range(60)
]
AGGREGATES = {
    "tags": ask.top_k("tags"),
    "users": ask.distinct_set("tags"),
    "kept": ask.sample("tags"),
    "n": ask.count("tags"),
    "ranks": ask.kll_quantiles("stars"),
    "total": ask.sum("stars"),
}
PLANS = {"Catalyst": {}, "buckets": {"sizes": ask.quantiles("stars")}}
"""What, requested besides, makes Spark merge the one way or the other."""


def arrow_rows() -> pa.Table:
    """The posts with their lists hidden where they aren't shown, as Polars hides them: over their values."""
    frame = pl.DataFrame(POSTS, schema_overrides={"tags": pl.List(pl.String), "stars": pl.List(pl.Int64)})
    when = pl.when("shown")
    hidden = frame.with_columns(when.then("tags").alias("tags"), when.then("stars").alias("stars"))
    return hidden.to_arrow(compat_level=pl.CompatLevel.oldest())


def check(answers: pl.DataFrame) -> None:
    assert answers["user"].sort().to_list() == USERS
    for row in answers.iter_rows(named=True):
        own = [post for post in POSTS if post["user"] == row["user"] and post["shown"]]
        tags = Counter(tag for post in own for tag in post["tags"] or [])
        stars = [star for post in own for star in post["stars"]]
        assert {one["item"]: one["estimate"] for one in row["tags"]} == tags
        assert (row["n"], row["total"]) == (tags.total(), sum(stars)) and row["ranks"]["n"] == len(stars)
        assert row["users"]["estimate"] == len(tags) and Counter(row["kept"]["values"]) == tags


@pytest.mark.slow
@pytest.mark.parametrize("plan", PLANS)
def test_each_user_has_their_own_values(spark: Any, plan: str) -> None:
    rows = spark.createDataFrame(POSTS, "user string, tags array<string>, stars array<bigint>, shown boolean")
    hidden = rows.withColumn("post", F.when(F.col("shown"), F.struct("tags", "stars"))).select(
        "user", F.col("post.tags").alias("tags"), F.when(F.col("shown"), F.col("stars")).alias("stars")
    )
    for given in (hidden.repartition(3), spark.createDataFrame(arrow_rows())):
        check(query(as_table(sketch(given).groupBy("user").agg(**AGGREGATES, **PLANS[plan]))))


def test_files_are_read_alike(spark: Any, tmp_path: Path) -> None:
    pq.write_table(arrow_rows(), tmp_path / "posts.parquet", row_group_size=7)
    check(query(as_table(sketch_parquet(tmp_path, spark=spark).groupBy("user").agg(**AGGREGATES))))
