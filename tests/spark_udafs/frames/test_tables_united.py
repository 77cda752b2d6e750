"""Tables of different definitions that meet in Spark, where only the metadata of one stays, are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PythonException
from pyspark.sql import functions as F

from streamgauge.operators.definition import aggregates as ask
from streamgauge.operators.table.query import query
from streamgauge.operators.table.schema import read_parquet
from streamgauge.operators.table.spark_footer import DEFINED
from streamgauge.operators.table.stored import read_table
from streamgauge.sketches.core.protocol import SketchError
from streamgauge.spark_udafs.frames.frames import sketch
from streamgauge.spark_udafs.frames.rollup import rollup
from streamgauge.spark_udafs.frames.tables import as_table, with_definitions
from streamgauge.spark_udafs.frames.windows import window
from streamgauge.spark_udafs.streaming.sinks import Batch, SketchesToParquet

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def rows(spark: Any) -> Any:
    return spark.range(40).selectExpr(
        "id", "id / 2 price", "id user", "id + 7 address", "id % 2 side", "timestamp_seconds(id) at"
    )


def table_of(rows: Any, column: str = "id", **requested: Any) -> Any:
    made = requested or {"x": ask.kll_quantiles(column)}
    return sketch(rows).groupBy("side", window("at", "1 minute")).agg(**made)


@pytest.mark.slow
def test_what_was_united_is_refused_with_both_definitions(rows: Any) -> None:
    united = {
        ("BIGINT", "DOUBLE"): table_of(rows).unionByName(table_of(rows, "price")),
        ("user", "address"): table_of(rows, x=ask.distinct("user")).union(
            table_of(rows, x=ask.distinct("address"))
        ),
    }
    for both, reported in (
        (united["BIGINT", "DOUBLE"], r"kll_quantiles\(.*long.*; others have .*kll_quantiles\(.*double"),
        (united["user", "address"], r'distinct\("user".*; others have .*distinct\("address"'),
    ):
        with pytest.raises(SketchError, match=reported):
            as_table(both)
        with pytest.raises(SketchError, match=reported):
            as_table(both.drop("side").withColumnRenamed("x", "y"))
        with pytest.raises(PythonException, match=reported):
            as_table(rollup(both, every="1 hour"))


@pytest.mark.slow
def test_what_is_of_one_definition_is_united_renamed_and_filtered(rows: Any) -> None:
    one = table_of(rows, n=ask.count(), users=ask.distinct("user"))
    other = table_of(rows, users=ask.distinct("user"), n=ask.count())
    both = one.unionByName(other).withColumnRenamed("n", "m").drop("users").where("side = 1")
    assert sum(query(as_table(both))["m"].to_list()) == 40
    # What comes from before there was the column has null there, or nothing.
    old = one.unionByName(other.drop(DEFINED), allowMissingColumns=True)
    assert sum(query(as_table(old))["n"].to_list()) == 80
    assert sum(query(as_table(rollup(old, every="1 hour", by=[])))["n"].to_list()) == 80
    again = as_table(with_definitions(one.select([F.col(name) for name in one.columns]), like=one))
    assert sum(query(again)["n"].to_list()) == 40


@pytest.mark.slow
def test_appended_files_and_tables_are_refused(rows: Any, spark: Any, tmp_path: Path) -> None:
    folder = str(tmp_path / "both")
    table_of(rows).write.parquet(folder)
    table_of(rows, "price").write.mode("append").parquet(folder)
    for read in (read_parquet, read_table, lambda path: as_table(spark.read.parquet(path))):
        with pytest.raises(SketchError, match="different definitions"):
            read(folder)
    united = str(tmp_path / "united")
    table_of(rows).union(table_of(rows, "price")).write.parquet(united)
    for read in (read_parquet, read_table, lambda path: as_table(spark.read.parquet(path))):
        with pytest.raises(SketchError, match="different definitions"):
            read(united)


def test_a_folder_takes_windows_of_one_definition(rows: Any, tmp_path: Path) -> None:
    one, other = as_table(table_of(rows)), as_table(table_of(rows, "price"))
    SketchesToParquet(tmp_path)(one, Batch("a", 0))
    with pytest.raises(SketchError, match="kll_quantiles"):
        SketchesToParquet(tmp_path)(other, Batch("b", 0))
    SketchesToParquet(tmp_path)(one, Batch("b", 0))
    assert read_parquet(tmp_path).num_rows == 2 * one.num_rows
