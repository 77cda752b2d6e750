"""Sketches by name in SQL: one query that uses everything, and what Spark says of them and refuses."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import Row, Window
from pyspark.sql import functions as F

import streamgauge.spark.functions as S
from streamgauge.operators.definition.aggregates import kll_quantiles, top_k
from streamgauge.operators.families import FAMILIES
from streamgauge.sketches.hll import HLL
from streamgauge.spark import register
from streamgauge.spark_udafs.frames.frames import sketch

pytestmark = pytest.mark.spark

N = 10_000
GIVEN = {"time": "timestamp_micros(id)", "weight": "id", "key": "item", "value": "id"}


@pytest.fixture(scope="module")
def rows(spark: Any) -> Any:
    """Ten thousand ids, each item of ten as often as any other, in two groups."""
    names = register(spark)
    assert len(set(names)) == len(names) > 150
    frame = spark.range(N).selectExpr("id", "cast(id % 10 as string) item", "id % 2 half")
    frame.createOrReplaceTempView("sketched_rows")
    return frame


@pytest.fixture(scope="module")
def sql_answers(spark: Any, rows: Any) -> Row:
    """One row that has every sketch's answer, and those to questions of one's choice."""
    collected, sketched = [], []
    for name, line in FAMILIES.items():
        if not line.exact:
            given = ", ".join(["id", *(GIVEN[one] for one in line.inputs)])
            sketched.append(f"sketch_{name}({given}) {name}")
            kind = "_long" if line.aggregate.must_name_kind else ""
            collected += [f"answer_{name}{kind}({name}) {name}", f"print_{name}{kind}({name}) told_{name}"]
    inner = [
        "sketch_distinct(id, 10) small",
        "sketch_quantiles(id, relative_accuracy => 0.005) fine",
        "sketch_frequency(item, 0.01, confidence => 0.9) items",
        "sketch_membership(item, 100) seen",
        "sketch_top_k(item, max_size => 64) words",
        "sketch_decayed_count(item, timestamp_seconds(id), interval 10 minutes) decayed",
        "sketch_distinct_set(CASE WHEN id < 600 THEN id END) a",
        "sketch_distinct_set(CASE WHEN id >= 400 AND id < 1000 THEN id END) b",
        "sketch_sample(id, k => 3) few",
    ]
    outer = [
        "print_distinct(small) small",
        "answer_quantiles(fine, 0.99) one",
        "answer_quantiles(fine, array(0.5, 0.9)) two",
        "rank_quantiles(fine, 2500) rank",
        "count_frequency(items, '3') three",
        "contains_membership(seen, '3') yes",
        "contains_membership(seen, 'x') no",
        "answer_top_k_string(words, 2) most",
        "count_top_k_string(words, '3') top_three",
        "answer_decayed_count(decayed) faded",
        "compare_distinct_set(a, b) compared",
        "answer_distinct_set(union_distinct_set(a, b, 14)) united",
        "answer_sample_long(few).values drawn",
        "answer_distinct(CAST(NULL AS BINARY)) nothing",
    ]
    row = spark.sql(
        f"SELECT {', '.join(collected + outer)} "
        f"FROM (SELECT {', '.join(sketched + inner)} FROM sketched_rows)"
    ).first()
    assert row is not None
    return row


def test_every_sketch_has_its_functions_in_sql(sql_answers: Row) -> None:
    for name, line in FAMILIES.items():
        if not line.exact:
            assert sql_answers[name] and line.class_name in sql_answers[f"told_{name}"]
    for name in ("distinct", "distinct_set", "cpc", "tuple", "sliding_distinct"):
        assert sql_answers[name].lower <= N <= sql_answers[name].upper
    for name in ("quantiles", "kll_quantiles", "classic_quantiles", "tail_quantiles"):
        middle = sql_answers[name].quantiles[1]
        assert middle.q == 0.5 and middle.lower <= N / 2 <= middle.upper and sql_answers[name].n == N
    assert sql_answers.kll_quantiles.quantiles[1].value.__class__ is int
    assert sql_answers.decayed_count.n == N and sql_answers.tuple.totals[0].lower < sum(range(N))
    assert sql_answers.weighted_sample.error is None and 0 < sql_answers["sample"].error < 1
    assert {stratum.key for stratum in sql_answers.stratified_sample.strata} == {str(n) for n in range(10)}
    assert sql_answers.var_opt.values[0].weight > 0 and sql_answers.top_k[0].upper >= 1


def test_parameters_and_questions_of_ones_choice(sql_answers: Row) -> None:
    assert "lg_k=10" in sql_answers.small
    assert [row.q for row in sql_answers.two.quantiles] == [0.5, 0.9] and len(sql_answers.one.quantiles) == 1
    assert sql_answers.one.quantiles[0].value == pytest.approx(9_899, rel=0.006)
    assert sql_answers.rank.lower <= 0.25 <= sql_answers.rank.upper
    assert sql_answers.three == Row(estimate=1_000, lower=sql_answers.three.lower, upper=1_000)
    assert (sql_answers.yes, sql_answers.no) == (True, False)
    assert [item.estimate for item in sql_answers.most] == [
        1_000
    ] * 2 and sql_answers.top_three.estimate == 1_000
    assert sql_answers.faded.estimate == pytest.approx(1 / (1 - 0.5 ** (1 / 600)), rel=1e-3)
    estimates = {name: bounded.estimate for name, bounded in sql_answers.compared.asDict().items()}
    assert estimates == {"union": 1_000, "intersection": 200, "difference": 400, "jaccard": 0.2}
    assert (
        sql_answers.united.estimate == 1_000
        and len(set(sql_answers.drawn)) == 3
        and sql_answers.nothing is None
    )


def test_functions_of_columns_need_no_names(rows: Any) -> None:
    assert {"sketch_distinct", "approx_top_k"} <= set(dir(S)) and "lg_k=12" in S.sketch_distinct.__doc__
    parts = rows.groupBy("half", (F.col("id") % 7).alias("part")).agg(
        S.sketch_distinct("id", lg_k=11).alias("users"),
        S.sketch_sample("id", 20).alias("some"),
        S.sketch_top_k(F.col("item")).alias("items"),
    )
    merged = parts.groupBy("half").agg(
        S.merge_distinct("users").alias("users"),
        S.merge_sample("some").alias("some"),
        S.merge_top_k_string("items").alias("items"),
    )
    requested = merged.select(
        "half",
        "users",
        S.answer_distinct(S.union_distinct("users", "users")).estimate.alias("twice"),
        S.answer_sample_long("some").alias("some"),
        S.answer_top_k_string("items", k=5).alias("items"),
    )
    for row in requested.collect():
        users = HLL.from_bytes(bytes(row.users))
        lower, upper = users.bounds()
        assert users.lg_k == 11 and lower <= N // 2 <= upper and row.twice == pytest.approx(users.estimate())
        assert row.some.n == N // 2 and len(set(row.some["values"])) == 20
        assert all(value % 2 == row.half for value in row.some["values"])
        assert [(item.estimate, int(item.item) % 2) for item in row["items"]] == [(1_000, row.half)] * 5
    with pytest.raises(AttributeError, match="no function sketch_distinkt; names are like sketch_distinct"):
        _ = S.sketch_distinkt
    with pytest.raises(TypeError, match=r"sketch_distinct\(column, lg_k=12\): got an unexpected"):
        S.sketch_distinct("id", lgk=11)


def test_parts_without_groups_meet_in_one_query(spark: Any, rows: Any) -> None:
    parts = [f"SELECT sketch_distinct(id) s FROM sketched_rows WHERE id % 4 = {n}" for n in (0, 1)]
    native = "SELECT hll_sketch_agg(id) s FROM sketched_rows WHERE id % 4 = 2"
    united = f"SELECT merge_distinct(s) FROM ({' UNION ALL '.join([*parts, native])})"
    (merged,) = spark.sql(united).first()
    assert (
        HLL.from_bytes(bytes(merged)).bounds()[0] <= N * 3 // 4 <= HLL.from_bytes(bytes(merged)).bounds()[1]
    )
    one, other = spark.sql(
        "SELECT (SELECT sketch_distinct(id) FROM sketched_rows), (SELECT max(id) FROM sketched_rows)"
    ).first()
    assert HLL.from_bytes(bytes(one)).estimate() == pytest.approx(N, rel=0.1) and other == N - 1


def test_aggregates_of_columns_meet_without_names_too(spark: Any, rows: Any) -> None:
    excluding = "spark.sql.optimizer.excludedRules"
    before = spark.conf.get(excluding)
    spark.conf.unset(excluding)
    S.answer_distinct("id")
    assert spark.conf.get(excluding, None) is None
    S.sketch_distinct("id")
    assert spark.conf.get(excluding) == before


def test_over_windows_of_rows_and_over_sketches_of_frames(spark: Any, rows: Any) -> None:
    last = Window.partitionBy("half").orderBy("id").rowsBetween(-4, 0)
    over = rows.where("id < 40").select("id", S.sketch_distinct("item", 8).over(last).alias("users"))
    counted = {row.id: row[1] for row in over.select("id", S.answer_distinct("users").estimate).collect()}
    assert [round(counted[n]) for n in (0, 2, 8, 9, 38)] == [1, 2, 5, 5, 5]
    table = sketch(rows).groupBy("half").agg(p=kll_quantiles("id"), top=top_k("id"), words=top_k("item"))
    requested = (
        "answer_kll_quantiles_long(p).n",
        "answer_top_k_long(top)[0].item",
        "answer_top_k_string(words)",
    )
    for n, item, words in table.selectExpr(*requested).collect():
        assert n == N // 2 and isinstance(item, int) and words[0].estimate == 1_000


def test_what_describe_and_show_say(spark: Any, rows: Any) -> None:
    listed = {row[0] for row in spark.sql("SHOW USER FUNCTIONS LIKE '*_distinct'").collect()}
    assert {"sketch_distinct", "merge_distinct", "answer_distinct", "print_distinct"} <= listed
    reported = "\n".join(row[0] for row in spark.sql("DESCRIBE FUNCTION EXTENDED sketch_distinct").collect())
    assert "Usage: sketch_distinct(column, lg_k=12) - aggregates a column into a sketch" in reported
    assert "lg_k => 12" in reported and "use streamgauge.spark.sketch(df)" in reported
    reported = "\n".join(row[0] for row in spark.sql("DESCRIBE FUNCTION EXTENDED answer_distinct").collect())
    assert "struct<estimate:double,lower:double,upper:double>" in reported


@pytest.mark.parametrize(
    ("query", "reported"),
    [
        (
            "SELECT answer_top_k(sketch_top_k(id)) FROM sketched_rows",
            "write answer_top_k_string, answer_top_k_",
        ),
        (
            "SELECT sketch_distinct(id, id) FROM sketched_rows",
            "lg_k must be one constant for all rows of a group",
        ),
        ("SELECT answer_distinct(CAST('no sketch' AS BINARY))", "HLL"),
        # What Spark itself refuses of a Python aggregate, with our note.
        ("SELECT count(*), sketch_distinct(id) FROM sketched_rows", r"Use streamgauge.spark.sketch\(df\)"),
        (
            "SELECT max(id), merge_distinct(b) FROM (SELECT id, X'' b FROM sketched_rows)",
            "streamgauge.spark.rollup",
        ),
        (
            "SELECT sketch_distinct(id) FILTER (WHERE id > 1) FROM sketched_rows",
            "sketch_distinct takes no FILTER CLAUSE. Instead .* CASE WHEN x THEN",
        ),
    ],
)
def test_what_is_refused(spark: Any, rows: Any, query: str, reported: str) -> None:
    with pytest.raises(Exception, match=reported):
        spark.sql(query).collect()


def test_refused_streams_are_pointed_to_sketch(spark: Any, rows: Any) -> None:
    counted = spark.readStream.format("rate").load().groupBy().agg(S.sketch_distinct("value").alias("n"))
    running = counted.writeStream.format("memory").queryName("refused").outputMode("complete").start()
    with pytest.raises(StreamingQueryException, match=r"stream. Use streamgauge.spark.sketch\(df\)"):
        running.awaitTermination(600)


def test_items_are_asked_for_as_what_was_sketched(spark: Any, rows: Any) -> None:
    sketched = """
        (SELECT sketch_membership(CAST(id AS DOUBLE), 100) doubles, sketch_frequency(id, 0.01) longs,
        sketch_frequency(id) many, sketch_membership(DATE_ADD(DATE '2026-01-01', int(id)), 100) days
        FROM sketched_rows WHERE id < {})"""
    row = spark.sql(
        "SELECT contains_membership(doubles, 3) a, contains_membership(doubles, 3.0) b, "
        "contains_membership(days, DATE '2026-01-04') c, "
        "contains_membership(days, TIMESTAMP_NTZ '2026-01-04') d, "
        f"count_frequency(longs, 3.0).lower e, count_frequency(many, 3D).estimate f FROM {sketched.format(9)}"
    ).first()
    assert tuple(row) == (True, True, True, True, 1, 1)
    for question in (
        "contains_membership(doubles, '3')",
        "contains_membership(days, '2026-01-04')",
        "contains_membership(days, 20457)",
        "count_frequency(longs, '3')",
        "count_frequency(many, '3')",
    ):
        with pytest.raises(PySparkException, match="can't be equal"):
            spark.sql(f"SELECT {question} FROM {sketched.format(5_000)}").collect()
