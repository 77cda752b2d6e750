"""Sketches by name in SQL and in ``groupBy().agg()``."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pyspark.sql import functions as F

from streamgauge.operators.definition.aggregates import kll_quantiles, top_k
from streamgauge.operators.families import FAMILIES
from streamgauge.sketches.bloom import Bloom
from streamgauge.sketches.count_min import CountMin
from streamgauge.sketches.frequent_items import FrequentItems
from streamgauge.sketches.hll import HLL
from streamgauge.spark_udafs import functions as sg
from streamgauge.spark_udafs.frames import sketch

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
    for name in sg.sketches():
        sketched = f"sketch_{name}(id{given[''.join(FAMILIES[name].inputs)]})"
        asked.append(f"answer_{name}{'_long' if FAMILIES[name].asked.kinds else ''}({sketched}) {name}")
    told = spark.sql(f"SELECT {', '.join(asked)} FROM sketched_rows").first().asDict()
    assert set(told) == set(sg.sketches())
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


def test_sketches_of_whole_numbers_and_dates_are_asked_by_their_kind(spark: Any, rows: Any) -> None:
    day = 86_400_000_000
    for column in ("id", "date_from_unix_date(cast(id as int))", "timestamp_micros(id)", "id / 2"):
        kind, own, number = ("double", "double", "id / 2") if "/" in column else ("long", "bigint", "id")
        sketched = f"sketch_kll_quantiles({column}) ours, kll_sketch_agg_{own}({number}) theirs"
        found = spark.sql(f"SELECT {sketched} FROM sketched_rows")
        for of in ("ours", "theirs"):
            answer = json.loads(found.selectExpr(f"answer_kll_quantiles_{kind}({of})").first()[0])
            middle = answer["quantiles"][1]
            assert answer["n"] == 10_000
            expected = (2_500 if kind == "double" else 5_000) * (
                day if "date" in column and of == "ours" else 1
            )
            assert middle["lower"] <= expected <= middle["upper"]
            with pytest.raises(Exception, match=r"answer_kll_quantiles_double, answer_kll_quantiles_long"):
                found.selectExpr(f"answer_kll_quantiles({of})").collect()
    table = sketch(rows).groupBy("half").agg(p=kll_quantiles("id"), top=top_k("id"), words=top_k("item"))
    asked = "answer_kll_quantiles_long(p) p", "answer_top_k_long(top) top", "answer_top_k_string(words) words"
    for row in table.selectExpr(*asked).collect():
        assert json.loads(row["p"])["n"] == 5_000
        assert isinstance(json.loads(row["top"])[0]["item"], int)
        assert json.loads(row["words"])[0]["estimate"] == 1_000
    with pytest.raises(Exception, match="write answer_top_k_string, answer_top_k_long"):
        spark.sql("SELECT answer_top_k(sketch_top_k(id)) FROM sketched_rows").collect()


def test_many_count_min_sketches_merge_and_go_to_spark(spark: Any, rows: Any) -> None:
    parts = "SELECT sketch_frequency(item) f FROM sketched_rows GROUP BY id div 5"
    assert spark.sql(f"SELECT sum(length(f)) FROM ({parts})").first()[0] < 2_000 * 500
    merging = f"SELECT merge_frequency(f) f FROM ({parts})"
    (merged,) = spark.sql(f"SELECT frequency_to_spark(f) FROM ({merging})").first()
    whole = spark.sql("SELECT count_min_sketch(item, 0.001D, 0.99D, 0) FROM sketched_rows").first()[0]
    assert bytes(merged) == bytes(whole)


def test_what_pyspark_leaves_out_of_spark(rows: Any) -> None:
    state = rows.groupBy("half").agg(sg.approx_top_k_accumulate("item", 48).alias("state"))
    merged = state.agg(sg.approx_top_k_combine("state").alias("state"))
    (top,) = merged.select(sg.approx_top_k_estimate("state", 3)).first()
    assert [row["count"] for row in top] == [1_000] * 3
    (direct,) = rows.agg(sg.approx_top_k("item", 3)).first()
    assert [row["count"] for row in direct] == [1_000] * 3
    (image,) = merged.selectExpr("substring(state.sketch, 1, length(state.sketch) - 8)").first()
    assert FrequentItems.from_bytes(bytes(image), "string").estimate("4") == 1_000


def test_nulls_and_bytes_that_are_no_sketch(spark: Any, rows: Any) -> None:
    assert spark.sql("SELECT answer_distinct(NULL), merge_frequency(NULL)").first()[0] is None
    with pytest.raises(Exception, match="HLL"):
        spark.sql("SELECT answer_distinct(cast('no sketch' AS binary))").collect()
