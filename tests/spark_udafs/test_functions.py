"""Sketches by name in SQL and in ``groupBy().agg()``."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pyspark.sql import functions as F

from streamgauge.sketches.bloom import Bloom
from streamgauge.sketches.count_min import CountMin
from streamgauge.sketches.frequent_items import FrequentItems
from streamgauge.sketches.hll import HLL
from streamgauge.sketches.registry import FAMILIES
from streamgauge.spark_udafs import functions as sg

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def rows(spark: Any) -> Any:
    """Ten thousand ids, each item of ten as often as any other, in two groups."""
    sg.register(spark)
    frame = spark.range(10_000).selectExpr("id", "cast(id % 10 as string) item", "id % 2 half")
    frame.createOrReplaceTempView("sketched_rows")
    return frame


def test_every_sketch_has_its_functions_in_sql(spark: Any, rows: Any) -> None:
    given = {"": "", "time": ", timestamp_micros(id)", "weight": ", id", "key": ", item", "value": ", id"}
    asked = []
    for name in sg.SKETCHES:
        sketched = f"sketch_{name}(id{given[''.join(FAMILIES[name].inputs)]})"
        asked.append(f"answer_{name}{'_long' if name in sg._KINDS else ''}({sketched}) {name}")
    told = spark.sql(f"SELECT {', '.join(asked)} FROM sketched_rows").first().asDict()
    assert set(told) == set(sg.SKETCHES)
    assert all(json.loads(answer) for answer in told.values())
    assert json.loads(told["decayed_count"])["n"] == 10_000
    assert json.loads(told["tuple"])["totals"][0]["lower"] < sum(range(10_000))


def test_sketches_by_group_hold_what_ours_hold(rows: Any) -> None:
    found = rows.groupBy("half").agg(F.call_function("sketch_distinct", F.col("id")))
    for half, image in found.collect():
        expected = HLL().update(list(range(half, 10_000, 2)))
        assert HLL.from_bytes(bytes(image)).estimate() == pytest.approx(expected.estimate(), rel=1e-9)


def test_merging_in_sql_what_spark_itself_cannot(spark: Any, rows: Any) -> None:
    parts = "SELECT sketch_frequency(item) f, sketch_membership(item) m FROM sketched_rows GROUP BY half"
    merged = f"SELECT merge_frequency(f) f, merge_membership(m) m FROM ({parts})"
    asked = "frequency_of(f, '3') n, might_contain(m, '3') yes, might_contain(m, 'x') no, f, m"
    row = spark.sql(f"SELECT {asked} FROM ({merged})").first()
    assert (row["n"], row["yes"], row["no"]) == (1_000, True, False)
    assert CountMin.from_bytes(bytes(row["f"])).estimate("7") == 1_000
    assert "7" in Bloom.from_bytes(bytes(row["m"]))


def test_what_pyspark_leaves_out_of_spark(rows: Any) -> None:
    state = rows.groupBy("half").agg(sg.approx_top_k_accumulate("item", 48).alias("state"))
    merged = state.agg(sg.approx_top_k_combine("state").alias("state"))
    (top,) = merged.select(sg.approx_top_k_estimate("state", 3)).first()
    assert [row["count"] for row in top] == [1_000] * 3
    (direct,) = rows.agg(sg.approx_top_k("item", 3)).first()
    assert [row["count"] for row in direct] == [1_000] * 3
    (image,) = merged.selectExpr("substring(state.sketch, 1, length(state.sketch) - 8)").first()
    assert FrequentItems.from_bytes(bytes(image)).estimate("4") == 1_000


def test_nulls_and_bytes_that_are_no_sketch(spark: Any, rows: Any) -> None:
    assert spark.sql("SELECT answer_distinct(NULL), merge_frequency(NULL)").first()[0] is None
    with pytest.raises(Exception, match="HLL"):
        spark.sql("SELECT answer_distinct(cast('no sketch' AS binary))").collect()
