"""Sketches that Spark's own functions made, read and merged by ours, and ours by Spark's."""

from __future__ import annotations

from typing import Any

import pytest

import streamgauge.spark.functions as S
from streamgauge.sketches.bloom import Bloom
from streamgauge.sketches.count_min import CountMin
from streamgauge.sketches.frequent_items import FrequentItems
from streamgauge.spark import register

pytestmark = pytest.mark.spark

N = 10_000
OURS = {
    "hll": "sketch_distinct(id)",
    "theta": "sketch_distinct_set(id)",
    "kll": "sketch_kll_quantiles(id)",
    "spread": "sketch_kll_quantiles(id / 2)",
    "top": "sketch_top_k(item, 64)",
    "pairs": "sketch_tuple(id, id % 5)",
    "counts": "sketch_frequency(item, 0.01, 0.9, 7)",
}
THEIRS = {
    "hll": "hll_sketch_agg(id)",
    "theta": "theta_sketch_agg(id)",
    "kll": "kll_sketch_agg_bigint(id)",
    "spread": "kll_sketch_agg_double(id / 2)",
    "top": "approx_top_k_accumulate(item, 48)",
    "pairs": "tuple_sketch_agg_double(id, double(id % 5))",
    "counts": "count_min_sketch(item, 0.01D, 0.9D, 7)",
}


@pytest.fixture(scope="module")
def made(spark: Any) -> Any:
    """Two rows, of even and odd ids, with each sketch as we and as Spark make it; also the view `made`."""
    register(spark)
    rows = spark.range(N).selectExpr("id", "cast(id % 10 as string) item", "id % 2 half")
    rows.createOrReplaceTempView("made_of")
    parts = []
    for at, by in (("our", OURS), ("their", THEIRS)):
        requested = ", ".join(f"{how} {at}_{name}" for name, how in by.items())
        parts.append(spark.sql(f"SELECT half, {requested} FROM made_of GROUP BY half"))
    joined = parts[0].join(parts[1], "half").orderBy("half")
    frame = spark.createDataFrame(joined.collect(), joined.schema)
    frame.createOrReplaceTempView("made")
    return frame


def test_each_reads_the_others(made: Any) -> None:
    requested = made.selectExpr(
        "half",
        "hll_sketch_estimate(our_hll) hll",
        "answer_distinct(their_hll) their_hll",
        "hll_sketch_estimate(hll_union(our_hll, their_hll)) hll_united",
        "theta_sketch_estimate(our_theta) theta",
        "theta_sketch_estimate(theta_intersection(our_theta, their_theta)) theta_common",
        "theta_sketch_estimate(theta_difference(our_theta, their_theta)) theta_rest",
        "compare_distinct_set(our_theta, their_theta) compared",
        "kll_sketch_get_n_bigint(our_kll) n",
        "kll_sketch_get_quantile_bigint(our_kll, 0.5D) middle",
        "kll_sketch_get_rank_double(our_spread, 2500D) rank",
        "answer_kll_quantiles_long(their_kll, 0.5).quantiles[0] their_middle",
        "rank_kll_quantiles_double(their_spread, 2500) their_rank",
        "approx_top_k_estimate(to_spark_top_k_string(our_top), 3) top",
        "answer_top_k_string(from_spark_top_k(their_top), 3) their_top",
        "tuple_sketch_estimate_double(our_pairs) pairs",
        "answer_tuple(their_pairs) their_pairs",
        "to_spark_frequency(our_counts) = their_counts same_counts",
        "count_frequency(their_counts, string(half)).estimate their_count",
    )
    for row in requested.collect():
        assert row.their_hll.lower <= N / 2 <= row.their_hll.upper
        # Spark's estimate of its own goes by the order of the rows, which a union forgets.
        for estimate in (row.hll, row.hll_united):
            assert row.their_hll.lower <= estimate <= row.their_hll.upper
        assert row.theta == row.theta_common and row.theta_rest == 0 and row.compared.jaccard.estimate == 1
        assert row.n == N / 2 and row.middle == pytest.approx(N / 2, abs=0.03 * N)
        assert (
            row.rank == pytest.approx(0.5, abs=0.03) and row.their_rank.lower <= 0.5 <= row.their_rank.upper
        )
        assert row.their_middle.lower <= N / 2 <= row.their_middle.upper
        assert [(item["count"], int(item["item"]) % 2) for item in row.top] == [(1_000, row.half)] * 3
        assert [(item.estimate, int(item["item"]) % 2) for item in row.their_top] == [(1_000, row.half)] * 3
        assert row.their_pairs.lower <= N / 2 <= row.their_pairs.upper
        assert row.pairs == pytest.approx(row.their_pairs.estimate)
        assert row.same_counts and row.their_count == 1_000


def test_each_merges_the_others(spark: Any, made: Any) -> None:
    by_spark = spark.sql(
        """SELECT hll_sketch_estimate(hll_union_agg(our_hll)) hll,
                  theta_sketch_estimate(theta_union_agg(our_theta)) theta,
                  kll_sketch_get_n_bigint(kll_merge_agg_bigint(our_kll)) n,
                  kll_sketch_get_quantile_double(kll_merge_agg_double(our_spread), 0.5D) middle,
                  approx_top_k_estimate(approx_top_k_combine(to_spark_top_k_string(our_top)), 10) top,
                  tuple_sketch_estimate_double(tuple_union_agg_double(our_pairs)) pairs FROM made"""
    ).first()
    ours = spark.sql(
        """SELECT answer_distinct(merge_distinct(their_hll)) hll,
                  answer_distinct_set(merge_distinct_set(their_theta)) theta,
                  answer_kll_quantiles_long(merge_kll_quantiles_long(their_kll), 0.5) kll,
                  answer_kll_quantiles_double(merge_kll_quantiles_double(their_spread), 0.5) spread,
                  answer_top_k_string(merge_top_k_string(from_spark_top_k(their_top)), 10) top,
                  answer_tuple(merge_tuple(their_pairs)) pairs,
                  to_spark_frequency(merge_frequency(their_counts)) counts FROM made"""
    ).first()
    whole = spark.sql("SELECT count_min_sketch(item, 0.01D, 0.9D, 7) FROM made_of").first()[0]
    assert bytes(ours.counts) == bytes(whole)
    for bounded in (ours.hll, ours.theta, ours.pairs):
        assert bounded.lower <= N <= bounded.upper
    assert by_spark.hll == pytest.approx(ours.hll.estimate, abs=1)
    assert by_spark.theta == pytest.approx(ours.theta.estimate, abs=1)
    assert by_spark.pairs == pytest.approx(ours.pairs.estimate)
    assert by_spark.n == ours.kll.n == ours.spread.n == N
    assert by_spark.middle == pytest.approx(N / 4, abs=0.03 * N)
    for answer, middle in ((ours.kll, N / 2), (ours.spread, N / 4)):
        assert answer.quantiles[0].lower <= middle <= answer.quantiles[0].upper
    assert {item["item"]: item["count"] for item in by_spark.top} == {str(n): 1_000 for n in range(10)}
    assert {item["item"]: item.estimate for item in ours.top} == {str(n): 1_000 for n in range(10)}


def test_sparks_bloom_filter_and_count_min_in_sql_and_python(spark: Any, made: Any) -> None:
    jvm = spark.sparkContext._jvm
    rows, images = spark.table("made_of"), []
    for half in (0, 1):
        filter = rows.where(f"half = {half}")._jdf.stat().bloomFilter("id", N, 0.01)
        out = jvm.java.io.ByteArrayOutputStream()
        filter.writeTo(out)
        images.append(bytearray(out.toByteArray()))
    spark.createDataFrame([(image,) for image in images], "filter binary").createOrReplaceTempView("filters")
    requested = "contains_membership(merged, 4) yes, contains_membership(merged, -1) no"
    row = spark.sql(f"SELECT {requested} FROM (SELECT merge_membership(filter) merged FROM filters)").first()
    assert (row.yes, row.no) == (True, False)
    even, odd = (Bloom.from_bytes(bytes(image)) for image in images)
    assert (
        4 in even
        and 5 in odd
        and (even | odd).contains(range(N)).all()
        and even.contains(range(1, N, 2)).mean() < 0.02
    )
    counts = [CountMin.from_bytes(bytes(row[0])) for row in made.select("their_counts").collect()]
    assert [(counts[0] | counts[1]).estimate(str(n)) for n in range(10)] == [1_000] * 10


def test_what_pyspark_leaves_out_of_spark(made: Any) -> None:
    rows = made.sparkSession.table("made_of")
    state = rows.groupBy("half").agg(S.approx_top_k_accumulate("item", 48).alias("state"))
    merged = state.agg(S.approx_top_k_combine("state").alias("state"))
    row = merged.select(S.approx_top_k_estimate("state", 3).alias("top"), S.from_spark_top_k("state")).first()
    assert [item["count"] for item in row.top] == [1_000] * 3
    assert FrequentItems.from_bytes(bytes(row[1]), "string").estimate("4") == 1_000
    (direct,) = rows.agg(S.approx_top_k("item", 3)).first()
    assert [item["count"] for item in direct] == [1_000] * 3
    with pytest.raises(Exception, match="this sketch counts strings, Spark's struct has 'item INT NOT NULL'"):
        rows.agg(S.approx_top_k_accumulate((rows.id % 3).cast("int")).alias("s")).select(
            S.from_spark_top_k("s")
        ).collect()
