"""What is requested of a DataFrame is resolved as by Spark, and answered as Spark answers it."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from pyspark.logger import PySparkLogger
from pyspark.sql import functions as F

from streamgauge.operators.definition import aggregates as ask
from streamgauge.operators.table.query import query
from streamgauge.operators.table.schema import aggregates_of
from streamgauge.spark_udafs.frames.frames import sketch
from streamgauge.spark_udafs.frames.tables import as_table

pytestmark = pytest.mark.spark

ROWS = """
    SELECT id % 3 Lang, id % 2 = 0 `on.line`, named_struct('name', concat('u', id % 40)) user,
           cast(id AS decimal(10, 2)) / 4 paid, IF(id % 7 = 0, NULL, id) n, id / 3 price, array(id, id) pair,
           id `back``tick`, date_add(DATE'2026-01-01', cast(id % 5 AS int)) day
    FROM range(120)
"""


@pytest.fixture(scope="module")
def rows(spark: Any) -> Any:
    return spark.sql(ROWS)


@pytest.mark.slow
def test_columns_are_found_by_the_names_that_spark_takes(rows: Any) -> None:
    keys = ("LANG", "`on.line`", "user.name", F.upper("user.name").alias("Who"))
    result = (
        sketch(rows)
        .groupBy(*keys)
        .agg(**{"a.b": ask.distinct("user.name"), "c`d": ask.sum("back`tick"), "n": ask.count("N")})
    )
    own = rows.groupBy(*keys).agg(F.sum("`back``tick`"), F.count("n"))
    assert result.columns[:-1] == ["LANG", "on.line", "name", "Who", "a.b", "c`d", "n"]
    assert result.schema[4:][0].metadata.keys() == {"streamgauge", "streamgauge.windows"}
    table = query(as_table(result))
    assert table["a.b"].struct.field("estimate").round(3).unique().to_list() == [1.0]
    reported = table.select("LANG", "on.line", "name", "Who", "c`d", "n").rows()
    assert sorted(reported) == sorted(tuple(row) for row in own.collect())


@pytest.mark.slow
def test_exact_aggregates_of_spark_s_are_the_same_beside_sketches(rows: Any) -> None:
    requested = {
        "rows": F.count("*"),
        "ones": F.count(F.lit(1)),
        "known": F.count("n"),
        "pairs": F.count("pair"),
        "total": F.sum("n"),
        "turnover": F.sum(F.col("price") * 2),
        "mean": F.avg("price"),
        "least": F.min("day"),
        "most": F.max("user.name"),
        "spread": F.variance("price"),
        "deviation": F.stddev("price"),
        "each": F.sum(F.lit(1)),
        "any_": F.bool_or("`on.line`"),
        "all_": F.bool_and(F.col("n") > 5),
        "many": F.count_if(F.col("n") > 60),
    }
    exact = rows.groupBy("Lang").agg(*(requested_.alias(name) for name, requested_ in requested.items()))
    own = {row["Lang"]: row for row in exact.collect()}
    for more in ({"users": ask.distinct("user.name")}, {"prices": ask.quantiles("price")}):
        answers = query(as_table(sketch(rows).groupBy("Lang").agg(**requested, **more)))
        assert answers.height == len(own)
        for row in answers.iter_rows(named=True):
            wanted = own[row["Lang"]]
            for name in requested:
                rounded = name in ("mean", "turnover", "spread", "deviation")
                assert row[name] == (pytest.approx(wanted[name]) if rounded else wanted[name]), name


@pytest.mark.slow
def test_keys_may_be_a_list_and_structs_and_arrays(spark: Any, rows: Any) -> None:
    nested = rows.withColumn("where", F.struct("Lang", "day")).select(
        "where", F.array("Lang").alias("langs"), "n"
    )
    for more in ({"users": ask.distinct("n")}, {"spread": ask.quantiles("n")}):
        table = query(as_table(sketch(nested).groupBy(["where", "langs"]).agg(rows=F.count("*"), **more)))
        own = nested.groupBy("where", "langs").agg(F.count("*"))
        wanted = [
            (f'{{"Lang":{w.Lang},"day":"{w.day}"}}', f"[{langs[0]}]", rows_)
            for w, langs, rows_ in own.collect()
        ]
        assert sorted(table.select("where", "langs", "rows").rows()) == sorted(wanted)
    counted = sketch(nested).groupBy(F.col("langs").alias("key")).agg(n=ask.top_k("langs", k=1))
    assert {row["n"][0]["item"] for row in query(as_table(counted)).to_dicts()} == {0, 1, 2}
    with pytest.raises(
        ValueError, match=r"'langs' is to_json\(langs\) for one purpose and langs for another"
    ):
        sketch(nested).groupBy("langs").agg(n=ask.distinct("langs"))
    for inexact, what in ((F.struct(F.lit(0.0)), "a double"), (F.array(F.create_map("n", "n")), "a map")):
        with pytest.raises(TypeError, match=f"a key can hold {what} only by itself"):
            sketch(nested).groupBy(inexact.alias("key")).agg(n=ask.count())


def test_points_in_time_in_structs_are_keys_to_the_microsecond(spark: Any) -> None:
    at = "timestamp_micros(1767225600000000 + id % 2)"
    rows = spark.range(8).selectExpr(f"struct({at} AS at, cast({at} AS timestamp_ntz) AS clock) AS moment")
    assert query(as_table(sketch(rows).groupBy("moment").agg(n=F.count("*"))))["n"].to_list() == [4, 4]


@pytest.mark.slow
def test_windows_may_be_over_expressions_in_a_batch(spark: Any) -> None:
    rows = spark.range(600).selectExpr("id", "id % 7 AS page")
    at = F.timestamp_seconds(F.col("id") * 2)
    named = rows.withColumn("at", at)
    for over in (F.window, F.session_window):
        requested = {"n": F.count("*"), "pages": ask.distinct("page")}
        of_both = [
            query(as_table(sketch(frame).groupBy(over(time, "90 seconds")).agg(**requested)))
            for frame, time in ((rows, at), (named, F.col("at")))
        ]
        assert of_both[0].sort("window_start").equals(of_both[1].sort("window_start"))
    latest = (
        sketch(named)
        .groupBy(F.window("at", "5 minutes"))
        .agg(last=F.max_by("id", "at"), first=F.min_by("id", F.col("at")))
    )
    assert sorted(query(as_table(latest)).select("first", "last").rows()) == [
        (0, 149), (150, 299), (300, 449), (450, 599)
    ]  # fmt: skip
    stream = spark.readStream.format("rate").load()
    windows = sketch(stream).groupBy(F.window(F.timestamp_seconds("value"), "1 minute"))
    with pytest.raises(ValueError, match=r"the window's time is timestamp_seconds\(value\), and a watermark"):
        windows.agg(n=F.count("*"))


def test_spark_s_own_agg_says_what_to_write_for_our_aggregates(rows: Any) -> None:
    import streamgauge.spark  # noqa: F401 - which teaches Spark's agg

    written = r"streamgauge.spark.sketch\(df\).groupBy\(...\).agg\(name=distinct\(\"n\"\)\)"
    for groups in (rows.groupBy(), rows.groupBy("Lang"), rows):
        with pytest.raises(TypeError, match=written):
            groups.agg(F.count("*"), ask.distinct("n"))
    assert rows.groupBy().agg(F.count("*")).first()[0] == rows.agg({"*": "count"}).first()[0] == 120


def test_decimals_are_counted_as_their_text(rows: Any) -> None:
    result = sketch(rows).agg(
        paid=ask.distinct("paid"),
        most=ask.top_k("paid", k=1),
        spread=ask.quantiles("paid"),
        some=ask.sample("paid", k=2),
    )
    (row,) = query(as_table(result)).iter_rows(named=True)
    assert row["paid"]["lower"] <= 120 <= row["paid"]["upper"]
    assert row["most"][0]["item"].count(".") == 1
    assert row["spread"]["n"] == 120 and len(row["some"]["values"]) == 2


def test_small_decimals_have_one_text_in_any_mode(spark: Any, request: pytest.FixtureRequest) -> None:
    kind = "decimal(38, 18)"
    rows = spark.sql(f"SELECT cast('-0.0000001' AS {kind}) d, array(cast(0 AS {kind}), NULL) l")
    request.addfinalizer(lambda: spark.conf.unset("spark.sql.ansi.enabled"))
    spark.conf.set("spark.sql.ansi.enabled", "false")
    (row,) = query(as_table(sketch(rows).agg(d=ask.top_k("d"), l=ask.top_k("l")))).iter_rows(named=True)
    assert [row[name][0]["item"] for name in "dl"] == ["-0.000000100000000000", "0.000000000000000000"]


@pytest.mark.parametrize(
    ("requested", "error", "reported"),
    [
        ({"n": F.count_distinct}, TypeError, r"count\(distinct n\).* use streamgauge.distinct\(n\)"),
        (
            {"n": F.collect_list},
            TypeError,
            r"collect_list\(n\), which can't be stored in a table of sketches",
        ),
        ({"n": F.median}, TypeError, r"use streamgauge.quantiles\(n\)"),
        ({"n": F.mode}, TypeError, r"use streamgauge.top_k\(n\)"),
        ({"n": F.stddev_pop}, TypeError, "use F.stddev, the standard deviation of a sample"),
        ({"n": lambda _: F.max_by("day", "n")}, TypeError, "order by the time of the window"),
        ({"n": F.bool_or}, TypeError, r"bool_or\(n\) of a bigint; it takes a condition"),
        ({"n": lambda _: F.max("pair")}, TypeError, "of lists; explode 'pair' first"),
        (
            {"n": lambda _: F.sum("nowhere")},
            ValueError,
            "no column 'nowhere'; the DataFrame has Lang",
        ),
        ({"n": lambda _: ask.distinct("user.nowhere")}, ValueError, "no column 'user.nowhere'"),
        ({"LANG": lambda _: ask.count()}, ValueError, "Spark treats 'LANG' and 'Lang' as the same name"),
        ({"Window_Start": lambda _: ask.count()}, ValueError, "as the same name"),
        ({"__lag": lambda _: ask.count()}, ValueError, "'__lag' is reserved for a column"),
        ({"n": lambda _: "n"}, TypeError, "agg: 'n' is 'n', which is not an aggregate"),
        ({"n": lambda _: ask.distinct}, TypeError, "'n' is the function distinct, which is not an"),
        (
            {"n": F.col},
            TypeError,
            r"'n' is the column n; write an aggregate of it, such as distinct\(\"n\"\)",
        ),
        ({"n": lambda _: F.expr("sum(n)")}, TypeError, r"'n' is the text \"sum\(n\)\"; write it with"),
    ],
)
def test_what_cannot_be_is_said(
    rows: Any, requested: dict[str, Any], error: type[Exception], reported: str
) -> None:
    ((name, make),) = requested.items()
    with pytest.raises(error, match=reported):
        sketch(rows).groupBy("Lang").agg(**{name: make("n")})


class Kept(logging.Handler):
    """Keeps records; a handler of one's own, as PySpark formats those of its logger its own way."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)


def test_columns_are_looked_for_without_errors_in_the_log(rows: Any) -> None:
    log, kept = PySparkLogger.getLogger("DataFrameQueryContextLogger"), Kept()
    log.addHandler(kept)
    try:
        dotted = rows.select(F.col("n").alias("a.n"))
        assert query(as_table(sketch(dotted).agg(most=ask.max("a.n"))))["most"].to_list() == [118]
        with pytest.raises(ValueError, match="no column 'nowhere'"):
            sketch(rows).agg(n=ask.distinct("nowhere"))
    finally:
        log.removeHandler(kept)
    assert not kept.records and not log.disabled


ANSWERED_BY_SPARK = [
    "user",
    "current_user",
    "session_user",
    "current_date",
    "current_timestamp",
    "LocalTimestamp",
]
"""Names that Spark answers without parentheses where no column has them."""


@pytest.mark.parametrize("name", ANSWERED_BY_SPARK)
def test_a_name_that_spark_would_answer_by_itself_is_no_column(spark: Any, name: str) -> None:
    rows = spark.range(3).withColumn("at", F.current_timestamp())
    message = f"no column '{name}'; the DataFrame has id, at"
    for ask_for in (
        lambda: sketch(rows).agg(n=ask.distinct(name)),
        lambda: sketch(rows).agg(n=ask.weighted_sample("id", weight=name)),
        lambda: sketch(rows).agg(n=F.count(name)),
        lambda: sketch(rows).agg(n=F.max(F.upper(F.col(name)))),
        lambda: sketch(rows).groupBy(name).agg(n=ask.count()),
        lambda: sketch(rows).groupBy(F.upper(name).alias("who")).agg(n=ask.count()),
        lambda: sketch(rows).groupBy(F.window(name, "1 minute")).agg(n=ask.count()),
        lambda: sketch(rows).groupBy(F.expr(f"concat(`{name}`, 'x')").alias("who")).agg(n=ask.count()),
        lambda: sketch(rows).agg(n=F.max(F.when(F.col("id") > 1, F.expr(name)))),
    ):
        with pytest.raises(ValueError, match=message):
            ask_for()
    (row,) = query(as_table(sketch(rows.withColumn(name, F.col("id"))).agg(n=ask.distinct(name)))).to_dicts()
    assert row["n"]["estimate"] == pytest.approx(3)


def test_names_that_could_mean_two_columns_are_refused(rows: Any) -> None:
    both = rows.withColumn("user.name", F.lit(1))
    with pytest.raises(ValueError, match=r"'user.name' is ambiguous: it is a column, and a field"):
        sketch(both).agg(users=ask.distinct("user.name"))
    (row,) = query(as_table(sketch(both).agg(n=ask.max("`user.name`")))).iter_rows(named=True)
    assert row["n"] == 1
    with pytest.raises(ValueError, match="groupBy: Spark treats 'LANG' and 'Lang' as the same name"):
        sketch(rows).groupby("Lang", F.col("Lang").alias("LANG")).agg(n=ask.count())
    with pytest.raises(ValueError, match="groupBy: no column 'nowhere'"):
        sketch(rows).groupBy("nowhere").agg(n=ask.count())
    with pytest.raises(
        ValueError, match=r"column 'window_end' of its own; group by F.col\('window_end'\).alias"
    ):
        sketch(rows.withColumn("window_end", F.lit(1))).groupBy("window_end").agg(n=ask.count())
    with pytest.raises(ValueError, match="'__event' is reserved for a column"):
        sketch(rows.withColumn("__event", F.lit(1))).agg(n=ask.max("__event"))
    with pytest.raises(ValueError, match=r"'n' is .* for one purpose and n for another"):
        sketch(rows).groupBy((F.col("n") % 2).alias("n")).agg(total=ask.sum("n"))


def test_expressions_of_one_text_each_have_their_own_answer(spark: Any) -> None:
    rows = spark.sql(
        "SELECT 'x' a, 'y' b, array(1) ar, 1BD d, 5 `concat(a, b)` UNION ALL SELECT 'x', 'b', NULL, 2BD, 6"
    )
    requested = {
        "literal": F.max(F.concat("a", F.lit("b"))),
        "column": F.max(F.concat("a", "b")),
        "named": F.max("`concat(a, b)`"),
        "lists": F.count("ar"),
        "known": F.count(F.isnotnull("ar")),
        "lambda_": F.max(F.udf(lambda x: x + "1")("a")),
        "other_lambda": F.max(F.udf(lambda x: x + "2")("a")),
        "of_frame": F.max(rows["a"]),
        "text": F.max(F.expr("a")),
    }
    exact = rows.agg(*(one.alias(name) for name, one in requested.items())).first()
    table = as_table(sketch(rows).agg(**requested, decimals=ask.distinct("d")))
    assert query(table).drop("decimals").row(0) == tuple(exact)
    own = {name: one.column for name, one in aggregates_of(table.schema).items()}
    assert own["of_frame"] == own["text"] == "a" and own["decimals"] == "string(d)"
    with pytest.raises(ValueError, match=r"'concat\(a, b\)' is concat\(a, 'b'\) for one purpose"):
        sketch(rows.drop("concat(a, b)")).groupBy(F.concat("a", F.lit("b")), F.concat("a", "b")).agg(
            n=ask.count()
        )


def test_columns_of_one_name_of_two_tables_are_two(spark: Any) -> None:
    one, other = spark.range(1).selectExpr("id", "1 x"), spark.range(1).selectExpr("id", "2 x")
    both = one.join(other, "id")
    row = query(as_table(sketch(both).agg(x=F.max(one["x"]), y=F.max(other["x"])))).row(0)
    assert row == (1, 2)
