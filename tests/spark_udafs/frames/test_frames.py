"""DataFrames of any origin become tables of sketches, equal to those made without Spark."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from pyspark.sql import functions as F

from streamgauge.operators.definition import aggregates as ask
from streamgauge.operators.definition.aggregate import Aggregate
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.sketching.sketcher import Sketcher
from streamgauge.operators.table.query import query
from streamgauge.operators.table.schema import read_parquet
from streamgauge.operators.table.sketch_table import merge
from streamgauge.operators.watermarks.partition_watermark import PartitionTime
from streamgauge.sketches.core.protocol import SketchError
from streamgauge.sketches.ddsketch import DDSketch
from streamgauge.sketches.kll import KLL
from streamgauge.spark import functions as S
from streamgauge.spark_udafs.frames.frames import sketch
from streamgauge.spark_udafs.frames.rollup import rollup
from streamgauge.spark_udafs.frames.tables import as_frame, as_table
from streamgauge.spark_udafs.frames.windows import window
from streamgauge.spark_udafs.functions.registering import register

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def frame(frame_of: Callable[..., pl.DataFrame]) -> pl.DataFrame:
    return frame_of(11, rows=2_000)


@pytest.fixture
def rows(spark: Any, frame: pl.DataFrame) -> Any:
    """The frame in Spark, in three partitions."""
    return spark.createDataFrame(frame.to_arrow()).repartition(3)


def test_every_aggregate_as_without_spark(
    everything: Stream,
    requested_aggregates: dict[str, Aggregate],
    frame: pl.DataFrame,
    rows: Any,
    same_tables: Callable[..., None],
) -> None:
    sketcher = Sketcher(everything)
    sketcher.add(frame, PartitionTime())
    table = sketch(rows).groupBy("lang", window("at", "1 minute")).agg(**requested_aggregates)
    same_tables(as_table(table), merge(sketcher.drain()), draws=False)


PLANS = {"Catalyst": {}, "buckets": {"seen": ask.membership("user", capacity=5_000)}}
"""What, requested besides, makes Spark merge the one way or the other."""
either_way = pytest.mark.parametrize("more", PLANS.values(), ids=PLANS)


@either_way
def test_sums_beyond_int64(spark: Any, more: dict[str, Aggregate]) -> None:
    rows = spark.createDataFrame([(2**63 - 1, n) for n in range(4)], "x long, user long").repartition(2)
    table = as_table(sketch(rows).groupBy().agg(total=ask.sum("x"), **more))
    assert table.column("total").to_pylist() == [4 * (2**63 - 1)]


@pytest.mark.slow
@either_way
def test_sliding_windows_share_panes(frame: pl.DataFrame, rows: Any, more: dict[str, Aggregate]) -> None:
    grouped = sketch(rows).groupBy(window("at", "2 minutes", "30 seconds", "10 seconds"))
    table = grouped.agg(rows=ask.count(), **more)
    answers = {row["window_start"]: row["rows"] for row in query(as_table(table)).iter_rows(named=True)}
    at = frame["at"].dt.replace_time_zone("UTC")
    expected: dict[datetime, int] = {}
    for second in at.dt.epoch("s").to_list():
        last = (second - 10) // 30 * 30 + 10
        for start in (last, last - 30, last - 60, last - 90):
            key = datetime.fromtimestamp(start, UTC)
            expected[key] = expected.get(key, 0) + 1
    assert answers == expected


@pytest.mark.slow
@either_way
def test_sliding_windows_rolled_up_count_each_row_once(
    spark: Any, frame: pl.DataFrame, rows: Any, more: dict[str, Aggregate], tmp_path: Path
) -> None:
    grouped = sketch(rows).groupBy("lang", window("at", "2 minutes", "1 minute"))
    table = as_table(grouped.agg(rows=ask.count(), **more))
    table_again = as_frame(table, spark)
    table_again.write.parquet(str(tmp_path / "sliding"))
    kept = spark.read.parquet(str(tmp_path / "sliding")).filter("rows > 0")
    for known in (table, as_table(kept), read_parquet(tmp_path / "sliding")):
        assert sum(merge(known, by=[], every="2h").column("rows").to_pylist()) == frame.height
    with pytest.raises(SketchError, match="of one group overlap"):
        merge(table.to_arrow().replace_schema_metadata(None), every="2h")


@either_way
def test_a_table_without_windows_shows_none(
    frame: pl.DataFrame, rows: Any, more: dict[str, Aggregate]
) -> None:
    requested_aggregates = {"rows": ask.count(), "users": ask.distinct("user"), **more}
    table = sketch(rows).groupBy("lang").agg(**requested_aggregates)
    collected = as_table(table)
    answers = query(collected)
    shown = ["lang", *requested_aggregates]
    assert table.columns == [*shown, "streamgauge_definition"]
    assert answers.columns == collected.column_names == shown
    counts = {row["lang"]: row["rows"] for row in answers.iter_rows(named=True)}
    assert counts == dict(frame.group_by("lang").len().iter_rows())
    users = dict(frame.group_by("lang").agg(pl.col("user").drop_nulls().n_unique()).iter_rows())
    for row in answers.iter_rows(named=True):
        assert row["users"]["lower"] <= users[row["lang"]] <= row["users"]["upper"]


@either_way
def test_of_no_rows_there_is_the_row_that_spark_has(rows: Any, more: dict[str, Aggregate]) -> None:
    requested_aggregates = {
        "rows": ask.count(),
        "users": ask.distinct("user"),
        "most": ask.max("price"),
        **more,
    }
    (row,) = query(as_table(sketch(rows.limit(0)).agg(**requested_aggregates))).iter_rows(named=True)
    assert (row["rows"], row["users"]["estimate"], row["most"]) == (0, 0, None)
    assert as_table(sketch(rows.limit(0)).groupBy("lang").agg(**requested_aggregates)).num_rows == 0


@pytest.mark.slow
@either_way
def test_text_that_is_not_utf_8_is_kept_as_spark_shows_it(spark: Any, more: dict[str, Aggregate]) -> None:
    values = "(X'636166e9', 1), (X'636166e9', 2), (X'636166e8', 3), (X'cf80', 4), (NULL, 5)"
    lines = spark.sql(f"SELECT CAST(bytes AS STRING) line, user FROM VALUES {values} t(bytes, user)")
    kept = {"top": ask.top_k("line"), "some": ask.sample("line"), "least": ask.min("line"), **more}
    (row,) = query(as_table(sketch(lines).agg(**kept))).iter_rows(named=True)
    assert {one["item"]: one["estimate"] for one in row["top"]} == {"caf\ufffd": 3, "π": 1}
    assert sorted(row["some"]["values"]) == ["caf\ufffd"] * 3 + ["π"]
    assert row["least"] == "caf\ufffd"
    hashed = {"lines": ask.distinct("line"), "rows": ask.count(), **more}
    (row,) = query(as_table(sketch(lines).agg(**hashed))).iter_rows(named=True)
    (native,) = lines.agg(F.hll_sketch_estimate(F.hll_sketch_agg("line"))).first()
    assert round(row["lines"]["estimate"]) == native == 3
    answers = query(as_table(sketch(lines).groupBy("line").agg(**hashed)))
    assert answers.group_by("line").agg(pl.col("rows").sum()).sort("line", nulls_last=True).rows() == [
        ("caf\ufffd", 3), ("π", 1), (None, 1)
    ]  # fmt: skip


def test_each_table_draws_samples_of_its_own(rows: Any) -> None:
    tables = [sketch(rows).agg(some=ask.sample("user", k=20)) for _ in range(2)]
    one, other = (query(as_table(table))["some"].to_list() for table in tables)
    assert one != other


@pytest.mark.parametrize(
    ("ask_it", "error", "complaint"),
    [
        (lambda f: sketch(f).groupBy("nowhere").agg(n=ask.count()), ValueError, "no column 'nowhere'"),
        (lambda f: sketch(f).agg(), ValueError, "no aggregate was given"),
        (lambda f: sketch(f).agg(ask.count()), TypeError, "name the column of each aggregate"),
        (lambda f: sketch(f.groupBy("lang")), TypeError, r"Spark DataFrame, got .*sketch\(df\).groupBy"),
        (lambda f: sketch("posts"), TypeError, "Spark DataFrame, got 'posts'; spark.table"),
        (lambda f: sketch(f).agg(n=ask.sum("user")), TypeError, "sum"),
        (
            lambda f: sketch(f).groupBy(window("at", "1m"), window("at", "2m")),
            ValueError,
            "one kind of window",
        ),
        (lambda f: sketch(f).groupBy(window("at", "1 fortnight")), ValueError, "is not a duration"),
    ],
)
def test_what_is_wrong_is_said(rows: Any, ask_it: Any, error: Any, complaint: str) -> None:
    with pytest.raises(error, match=complaint):
        ask_it(rows)


def test_strings_that_spark_compares_by_a_collation_are_refused(rows: Any) -> None:
    collated = "collate(user, 'UTF8_LCASE')"
    frame = rows.selectExpr(
        f"{collated} name", f"array({collated}) names", "collate(lang, 'UTF8_BINARY') lang"
    )
    for wrong in (
        lambda: sketch(frame).groupBy("name").agg(n=ask.count()),
        lambda: sketch(frame).agg(names=ask.distinct("name")),
        lambda: sketch(frame).agg(names=ask.top_k("names")),
    ):
        with pytest.raises(TypeError, match=r"has the collation UTF8_LCASE.* lower\(...\) of it"):
            wrong()
    assert sketch(frame).groupBy("lang").agg(n=ask.count("name")).columns[:-1] == ["lang", "n"]


def test_decimals_and_times_are_grouped_and_asked_as_what_they_are(
    spark: Any, rows: Any, request: pytest.FixtureRequest
) -> None:
    requested_aggregates = (
        "cast(item % 3 as decimal(20, 2)) paid",
        "make_time(1, cast(item % 3 as int), 2.5) at_time",
        "DATE'1969-12-31' - cast(item % 3 as int) AS day",
    )
    spark.conf.set("spark.sql.timeType.enabled", "true")
    request.addfinalizer(lambda: spark.conf.unset("spark.sql.timeType.enabled"))
    frame = rows.selectExpr(*requested_aggregates).filter("paid is not null")
    requested = {"latest": ask.max("at_time"), "often": ask.top_k("at_time"), "days": ask.top_k("day")}
    table = as_table(sketch(frame).groupBy("paid").agg(n=ask.count(), **requested))
    for row in query(table).iter_rows(named=True):
        at = time(1, int(row["paid"]), 2, 500_000)
        assert row["paid"] == Decimal(f"{at.minute}.00") and row["latest"] == at
        assert [(item["item"], item["lower"]) for item in row["often"]] == [(at, row["n"])]
        assert [item["item"] for item in row["days"]] == [date(1969, 12, 31 - at.minute)]


@pytest.mark.slow
@either_way
def test_decimals_are_ordered_as_decimals(spark: Any, more: dict[str, Aggregate]) -> None:
    digits = [-9, 10**30, 3, -(10**30) - 1, 12]
    values = ", ".join(f"({at}, CAST('{n}.5' AS decimal(38, 4)), {at})" for at, n in enumerate(digits))
    rows = spark.sql(f"SELECT timestamp_seconds(at) at, paid, user FROM VALUES {values} t(at, paid, user)")
    first = {"least": F.min("paid"), "most": ask.max("paid")}
    requested_aggregates = {**first, "opening": ask.first("paid"), "closing": ask.last("paid"), **more}
    table = as_table(
        sketch(rows.repartition(3)).groupBy(window("at", "1 minute")).agg(**requested_aggregates)
    )
    again = as_table(rollup(as_frame(table, spark), every="1 hour"))
    for one in (table, again, merge([table, table])):
        (answers,) = query(one).iter_rows(named=True)
        ordered = [Decimal(f"{n}.5000") for n in (min(digits), max(digits), digits[0], digits[-1])]
        assert [answers[name] for name in ("least", "most", "opening", "closing")] == ordered


def test_a_time_that_no_table_can_hold_is_an_error(spark: Any) -> None:
    rows = spark.sql("SELECT timestamp_micros(x) at FROM VALUES (0), (253402300800000000) t(x)")
    table = sketch(rows).groupBy(window("at", "1 minute")).agg(n=ask.count())
    with pytest.raises(Exception, match=r"'at' is outside the years 1 to 9999 in a row: 2534"):
        table.collect()
    kept = sketch(rows.filter("year(at) BETWEEN 1 AND 9999")).groupBy(window("at", "1 minute"))
    assert as_table(kept.agg(n=ask.count()))["n"].to_pylist() == [1]


def test_a_streaming_frame_without_watermark_is_refused(spark: Any) -> None:
    stream = spark.readStream.format("rate").load()
    with pytest.raises(ValueError, match=r'sketch\(df\)\.withWatermark\("timestamp", "10 seconds"\)'):
        sketch(stream).groupBy(window("timestamp", "1 minute")).agg(n=ask.count())


@pytest.mark.slow
def test_quantiles_take_a_column_of_weights(spark: Any) -> None:
    rows = spark.createDataFrame([(10.0, 3), (20.0, None), (30.0, 0), (40.0, 1)], "ms double, seen int")
    requested = {
        "spread": ask.quantiles("ms", weight="seen"),
        "ranks": ask.kll_quantiles("ms", weight="seen"),
    }
    (answer,) = as_table(sketch(rows).agg(**requested)).answers().to_dicts()
    assert [answer[name]["n"] for name in requested] == [4, 4]
    register(spark)
    rows.createOrReplaceTempView("weighted_rows")
    sql = spark.sql(
        "SELECT sketch_kll_quantiles(ms, weight => seen), sketch_quantiles(ms, 0.01, seen) FROM weighted_rows"
    )
    columns = rows.agg(
        S.sketch_kll_quantiles("ms", weight="seen"), S.sketch_quantiles("ms", weight=F.col("seen"))
    )
    for images in (sql.first(), columns.first()):
        assert KLL.from_bytes(bytes(images[0]), "double").quantiles([0.5, 1]) == [10.0, 40.0]
        assert DDSketch.from_bytes(bytes(images[1])).n == 4
    wrong = rows.withColumn("seen", F.lit(-2))
    with pytest.raises(Exception, match=r"weight='seen'.*whole numbers from 0.*got -2"):
        as_table(sketch(wrong).agg(ranks=ask.kll_quantiles("ms", weight="seen")))
