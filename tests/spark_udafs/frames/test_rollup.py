"""Roll-ups in Spark say what `merge` says of the same tables; what doesn't fit is named."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from pyspark.sql import functions as F

from streamgauge import StreamTester, count, distinct
from streamgauge.operators.definition import aggregates as ask
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.sketching.sketcher import Sketcher
from streamgauge.operators.table.query import query
from streamgauge.operators.table.schema import schema_of, write_parquet
from streamgauge.operators.table.sketch_table import merge
from streamgauge.operators.watermarks.partition_watermark import PartitionTime
from streamgauge.sketches.core.protocol import SketchError
from streamgauge.spark_udafs.frames.frames import sketch
from streamgauge.spark_udafs.frames.rollup import rollup
from streamgauge.spark_udafs.frames.tables import as_frame, as_table, with_definitions
from streamgauge.spark_udafs.frames.windows import window
from streamgauge.spark_udafs.streaming.query_handle import Running

pytestmark = pytest.mark.spark

COLUMNS = {"at": pl.Datetime("us"), "user": pl.String, "lang": pl.String}
FIVE = 300_000_000


def minutes_of(stream: Stream, frame: pl.DataFrame) -> pa.Table:
    """The table of sketches that one worker makes of rows."""
    sketcher = Sketcher(stream)
    sketcher.add(frame, PartitionTime())
    return sketcher.drain()


@pytest.mark.slow
def test_every_aggregate_is_rolled_up_as_by_merge(
    spark: Any, everything: Stream, frame_of: Callable[..., pl.DataFrame], same_tables: Callable[..., None]
) -> None:
    tables = [minutes_of(everything, frame_of(seed, rows=600, minutes=12)) for seed in (1, 2)]
    frames = [as_frame(table, spark) for table in tables]
    five = rollup(frames, every="5 minutes", by=[])
    same_tables(as_table(five), merge(tables, every="5m", by=[]), draws=False)


def test_keys_are_dropped_and_windows_stay(
    spark: Any, frame_of: Callable[..., pl.DataFrame], same_tables: Callable[..., None]
) -> None:
    rows = Stream.from_schema(COLUMNS, time="at").group_by("lang").tumbling("1m")
    table = minutes_of(rows.agg(n=count(), users=distinct("user")), frame_of(3, rows=400).select(*COLUMNS))
    same_tables(as_table(rollup(as_frame(table, spark), by=[])), merge(table, by=[]))


def test_names_with_dots_and_backticks(spark: Any, same_tables: Callable[..., None]) -> None:
    rows = spark.range(600).selectExpr("id % 3 `a.b``c`", "id", "timestamp_seconds(id) at")
    aggregates: dict[str, Any] = {"n. x": count(), "users`": distinct("id")}
    minutes = sketch(rows).groupBy("`a.b``c`", window("at", "1 minute")).agg(**aggregates)
    same_tables(as_table(rollup(minutes, every="5 minutes")), merge(as_table(minutes), every="5m"))


def test_overlapping_windows_count_each_row_once(spark: Any) -> None:
    rows = spark.range(3600).selectExpr("id", "timestamp_seconds(id) AS at")
    table = sketch(rows).groupBy(window("at", "10 minutes", "5 minutes")).agg(n=count())
    result = as_table(rollup(table, every="30 minutes")).sort_by("window_start")
    assert result["n"].to_pylist() == [1800, 1800]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("more", "to", "by"),
    [({}, "5 minutes", ["lang"]), ({"spread": ask.quantiles("at_us")}, "5 minutes", ["lang"])],
    ids=["Catalyst", "buckets"],
)
def test_a_stream_of_tables_gives_each_window_once(
    spark: Any,
    tmp_path: Path,
    frame_of: Callable[..., pl.DataFrame],
    more: dict[str, Any],
    to: str,
    by: list[str],
) -> None:
    columns = {**COLUMNS, "at_us": pl.Int64}
    rows = Stream.from_schema(columns, time="at").group_by("lang").tumbling("1m")
    stream = rows.agg(n=count(), users=distinct("user"), **more)
    frame = frame_of(4, rows=900, minutes=18).with_columns(at_us=pl.col("at").to_physical()).select(*columns)
    table = minutes_of(stream, frame)
    (tmp_path / "minutes").mkdir()
    # A file for each minute, in order; then one that comes long after its window was given out.
    starts = table["window_start"].unique().to_pylist()
    files = [table.filter(pa.compute.equal(table["window_start"], start)) for start in starts]
    for number, part in enumerate([*files, files[0]]):
        file = tmp_path / "minutes" / f"{number:03d}.parquet"
        write_parquet(part, file)
        os.utime(file, (1_700_000_000 + number,) * 2)
    folder = str(tmp_path / "minutes")
    source = spark.readStream.schema(spark.read.parquet(folder).schema).option("maxFilesPerTrigger", 6)
    name = f"rolled{len(more)}"
    writer = (
        rollup(source.parquet(folder), every=to, by=by)
        .writeStream.format("memory")
        .queryName(name)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
    )
    # A busy machine may take longer to start a Python process than Spark waits.
    assert Running(writer.start(), str(tmp_path), writer.start).awaitTermination(600)
    order = [(name, "ascending") for name in ("window_start", *by)]
    wanted = merge(table, every="5m", by=by).to_arrow().sort_by(order)
    complete = wanted.filter(pa.compute.less_equal(wanted["window_end"], max(starts)))
    result = with_definitions(spark.table(name), like=as_frame(table, spark))
    result = as_table(result).to_arrow().sort_by(order)
    exact = ["window_start", *by, "n"]
    assert complete.num_rows and result.select(exact).equals(complete.select(exact))
    estimates = pl.col("users").struct.field("estimate")
    assert query(result).select(estimates).equals(query(complete).select(estimates))


def test_totals_so_far_are_rolled_up_once_they_are_whole(spark: Any) -> None:
    """In batches of a few rows, each judged by itself."""
    rows = Stream.from_schema({"at": pl.Int64, "lang": pl.String}, time=pl.from_epoch("at")).group_by("lang")
    tester = StreamTester(rows.cumulate("1h", every="10m").agg(n=count()))
    tester.feed([{"at": second, "lang": "ab"[second % 2]} for second in range(0, 9_000, 7)])
    table = tester.finish().tables()
    totals = query(table).filter(pl.col("window_end").dt.epoch("s") <= 8_400)
    begun = table.filter(pa.array((query(table)["window_end"].dt.epoch("s") <= 8_400).to_list()))
    frame = as_frame(begun, spark).repartition(5)
    hours = query(as_table(rollup(frame, every="1 hour", by=[]))).sort("window_start")
    assert totals.height == 28 and hours["n"].to_list() == [515, 514]
    assert query(merge(begun, every="1h", by=[]))["n"].to_list() == [515, 514]
    with pytest.raises(SketchError, match="windows of up to 1h that grow by 10m don't fit into"):
        rollup(frame, every="30 minutes")


def test_what_doesn_t_fit_is_named(spark: Any, tmp_path: Path) -> None:
    def empty(length: str = "1m", **requested: Any) -> Any:
        rows = Stream.from_schema(COLUMNS, time="at").group_by("lang").tumbling(length)
        return as_frame(schema_of(rows.agg(**requested)).empty_table(), spark)

    minutes = empty(users=distinct("user"))
    for tables, more, reported in (
        (
            [minutes, empty(users=distinct("user", lg_k=10))],
            {},
            r"lg_k=12\) of string items to distinct\(\"user\", lg_k=10\)",
        ),
        ([minutes, empty("5m", users=distinct("user"))], {}, "from windows of 1m to windows of 5m"),
        ([minutes], {"every": "90 seconds"}, "windows of 1m don't fit into windows of 1m30s"),
    ):
        with pytest.raises(SketchError, match=reported):
            rollup(tables, **more)
    with pytest.raises(ValueError, match=r"user is not a key of this table; its keys are \['lang'\]"):
        rollup(minutes, by=["user"])
    with pytest.raises(ValueError, match=r'by takes a list of keys, as in by=\["lang"\]'):
        rollup(minutes, by="lang")
    with pytest.raises(SketchError, match='the type of the key "lang" changed from string to int32'):
        rollup([minutes, minutes.withColumn("lang", F.length("lang"))])
    with pytest.raises(TypeError, match="takes Spark DataFrames, got 'minutes'"):
        rollup("minutes")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="no tables were given"):
        rollup([])
    streamed = spark.readStream.schema(minutes.schema).parquet(str(tmp_path))
    with pytest.raises(SketchError, match="name it, even if it stays the same"):
        rollup(streamed, by=[])


def test_what_spark_sql_computes_loses_its_definition_and_can_have_it_back(spark: Any) -> None:
    rows = spark.range(600).selectExpr("id % 50 AS user", "id % 3 AS lang", "timestamp_seconds(id) AS at")
    table = sketch(rows).groupBy("lang", window("at", "5 minutes")).agg(users=distinct("user"))
    table.createOrReplaceTempView("minutes")
    # Kept where a column is only moved.
    for same in (
        "SELECT * FROM minutes WHERE lang < 2",
        "SELECT * FROM minutes UNION ALL SELECT * FROM minutes",
        "SELECT * FROM minutes JOIN (SELECT 1 AS lang) USING (lang)",
    ):
        assert as_table(spark.sql(same)).num_rows
    by_hand = spark.sql(
        "SELECT window_start, window_end, hll_union_agg(users) AS users FROM minutes GROUP BY ALL"
    )
    with pytest.raises(SketchError, match=r"and SketchesToTable keep it, and with_definitions\(frame"):
        as_table(by_hand)
    back = query(as_table(with_definitions(by_hand, like=table)))
    assert back["users"].struct.field("estimate").round().to_list() == [50.0, 50.0]
    with pytest.raises(SketchError, match="'users' has the type double, and its sketches binary"):
        with_definitions(by_hand.selectExpr("window_start", "window_end", "1D users"), like=table)
    with pytest.raises(SketchError, match="the columns are users; they must be window_start, window_end"):
        with_definitions(by_hand.select("users"), like=table)
    with pytest.raises(SketchError, match="doesn't record its kind of windows"):
        rollup(with_definitions(by_hand, like=table), every="10 minutes")
