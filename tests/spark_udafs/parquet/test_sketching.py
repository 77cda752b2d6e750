"""A table of sketches of Parquet files says what one of a DataFrame of the same files says."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from streamgauge import Stream, count, distinct, quantiles, top_k
from streamgauge.operators.definition.aggregate import Aggregate
from streamgauge.operators.sketching.sketcher import Sketcher
from streamgauge.operators.table.query import query
from streamgauge.operators.table.schema import aggregates_of
from streamgauge.operators.table.sketch_table import merge
from streamgauge.operators.watermarks.partition_watermark import PartitionTime
from streamgauge.spark import sketch_parquet
from streamgauge.spark_udafs.frames.frames import sketch
from streamgauge.spark_udafs.frames.tables import as_table
from streamgauge.spark_udafs.frames.windows import window
from streamgauge.spark_udafs.parquet.readable import ParquetRows
from streamgauge.spark_udafs.streaming.run import write

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, frame_of: Callable[..., pl.DataFrame]) -> str:
    """Two files of rows in two folders, in small row groups."""
    made = tmp_path_factory.mktemp("rows")
    for seed in (1, 2):
        frame = frame_of(seed, rows=1_500).with_columns(at=pl.col("at").dt.replace_time_zone("UTC"))
        (made / f"seed={seed}").mkdir()
        frame.write_parquet(made / f"seed={seed}" / "rows.parquet", row_group_size=250)
    return str(made)


@pytest.mark.slow
def test_every_aggregate_is_what_it_is_of_a_dataframe(
    spark: Any, folder: str, requested_aggregates: dict[str, Aggregate], same_tables: Callable[..., None]
) -> None:
    def table(rows: Any) -> Any:
        return as_table(rows.groupBy("lang", "seed", window("at", "2 minutes")).agg(**requested_aggregates))

    same_tables(table(sketch_parquet(folder)), table(sketch(spark.read.parquet(folder))), draws=False)


def test_a_condition_and_a_stream_s_steps_come_before_sketching(
    spark: Any, folder: str, same_tables: Callable[..., None]
) -> None:
    steps = (
        Stream.from_schema(
            {"at": pl.Datetime("us", "UTC"), "price": pl.Float64, "tags": pl.List(pl.String)}, time="at"
        )
        .filter(pl.col("price") > 1e6)
        .with_columns(above=pl.col("price") - 1e6)
        .explode("tags")
    )
    agg = {"n": count(), "tags": top_k("tags"), "above": quantiles("above")}
    one = sketch_parquet(folder, where=pc.field("seed") == 2, rows=steps)
    table = as_table(one.groupBy(window("at", "1 minute")).agg(**agg))
    frame = pl.read_parquet(f"{folder}/seed=2/rows.parquet").select("at", "price", "tags")
    sketcher = Sketcher(steps.tumbling("1m").agg(**agg))
    sketcher.add(frame, PartitionTime())
    same_tables(table, merge(sketcher.drain()), draws=False)
    tags = frame.filter(pl.col("price") > 1e6)["tags"].to_list()
    assert sum(table["n"].to_pylist()) == sum(len(some or [None]) for some in tags)


def test_rows_without_windows_and_columns_are_counted(folder: str) -> None:
    table = as_table(
        sketch_parquet(folder, where=pc.field("price") > 1e6).agg(n=count(), users=distinct("user"))
    )
    frame = pl.read_parquet(f"{folder}/*/*.parquet").filter(pl.col("price") > 1e6)
    assert table["n"].to_pylist() == [frame.height]
    (users,) = query(table)["users"]
    assert users["lower"] <= frame["user"].drop_nulls().n_unique() <= users["upper"]
    assert list(aggregates_of(table.schema)) == ["n", "users"]
    only_counted = as_table(sketch_parquet(f"{folder}/seed=1").agg(n=count()))
    assert only_counted["n"].to_pylist() == [1_500]
    nothing = as_table(sketch_parquet(folder, where=pc.field("price") > 1e9).groupBy("lang").agg(n=count()))
    assert nothing.num_rows == 0


def test_what_can_t_be_is_named(spark: Any, folder: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no column 'who'; the DataFrame has at, user"):
        sketch_parquet(folder).agg(users=distinct("who"))
    with pytest.raises(
        TypeError, match="windows need a timestamp, and 'price' is double; make it one in `rows`"
    ):
        sketch_parquet(folder).groupBy(window("price", "1 minute")).agg(n=count())
    steps = Stream.from_schema({"at": pl.Int64, "who": pl.String}, time=pl.from_epoch("at"))
    with pytest.raises(ValueError, match="sketch_parquet: no column 'who'; the files have at, user"):
        sketch_parquet(folder, rows=steps)
    failing = Stream.from_schema({"user": pl.String, "at": pl.Datetime("us", "UTC")}, time="at")
    failing = failing.with_columns(number=pl.col("user").cast(pl.Int64))
    with pytest.raises(Exception, match=r"rows can't be counted: .*the first is \{'user': 'user"):
        as_table(sketch_parquet(folder, rows=failing).agg(n=count(), numbers=distinct("number")))


@pytest.mark.slow
def test_files_that_arrive_are_each_sketched_once(
    spark: Any, tmp_path: Path, frame_of: Callable[..., pl.DataFrame]
) -> None:
    """Also as rows of the plain source; a second run goes on where the first ended."""
    spark.dataSource.register(ParquetRows)
    (tmp_path / "rows").mkdir()
    utc = pl.col("at").dt.replace_time_zone("UTC")
    frames = [frame_of(seed, rows=300).with_columns(utc) for seed in (1, 2, 3)]
    collected: list[pa.Table] = []
    plain: list[int] = []

    def run() -> None:
        arriving = sketch_parquet(str(tmp_path / "rows"), log=str(tmp_path / "log"), files_per_trigger=1)
        timed = arriving.withWatermark("at", "1 hour").groupBy("lang", window("at", "1 minute"))
        table = timed.agg(n=count(), users=distinct("user"), prices=quantiles("price"))
        running = write(
            table,
            tmp_path / "sketches",
            lambda part, _: collected.append(pa.table(part)),
            available_now=True,
        )
        assert running.awaitTermination(300)
        rows = spark.readStream.format("streamgauge-parquet").option("log", str(tmp_path / "plain-log"))
        rows = rows.schema("lang string, price double").load(str(tmp_path / "rows"))
        writer = rows.writeStream.foreachBatch(lambda batch, _: plain.append(batch.count()))
        writer = writer.option("checkpointLocation", str(tmp_path / "plain")).trigger(availableNow=True)
        assert writer.start().awaitTermination(300)

    for number, frame in enumerate(frames[:2]):
        frame.write_parquet(tmp_path / "rows" / f"{number}.parquet")
    run()
    assert plain == [600] and not collected
    frames[2].write_parquet(tmp_path / "rows" / "2.parquet")
    # A row of two hours later, by which the others' windows are complete.
    later = frames[0].head(1).with_columns(pl.col("at") + pl.duration(hours=2))
    later.write_parquet(tmp_path / "rows" / "3.parquet")
    run()
    assert plain == [600, 301]
    whole = pl.concat(frames).group_by("lang", pl.col("at").dt.truncate("1m")).len()
    counted = query(pa.concat_tables(collected)).select("lang", pl.col("window_start").alias("at"), "n")
    assert sorted(counted.rows(), key=str) == sorted(whole.rows(), key=str)
