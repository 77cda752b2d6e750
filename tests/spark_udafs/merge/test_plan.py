"""Catalyst merges partial tables to what our own merge gives, aggregate by aggregate."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from streamgauge.operators.definition import aggregates as ask
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.families import FAMILIES
from streamgauge.operators.sketching.account import Account
from streamgauge.operators.sketching.sketcher import Sketcher
from streamgauge.operators.table.schema import schema_of
from streamgauge.operators.table.sketch_table import merge
from streamgauge.operators.testing import StreamTester
from streamgauge.operators.watermarks.partition_watermark import PartitionTime
from streamgauge.operators.windows.window import YEAR_10000
from streamgauge.spark_udafs.frames.tables import as_frame, as_table
from streamgauge.spark_udafs.merge.merge_plan import merge_announced, partials_of

pytestmark = pytest.mark.spark


def sketched(stream: Stream, frame: pl.DataFrame, salt: int) -> pa.Table:
    """The table of sketches of one worker's rows."""
    sketcher = Sketcher(stream, salt=salt)
    sketcher.add(frame, PartitionTime())
    return sketcher.drain()


def merged_by_spark(spark: Any, stream: Stream, tables: list[pa.Table]) -> pa.Table:
    """The same tables, merged as the source's partial rows are."""
    plan = partials_of(schema_of(stream), stream.reading.arrow_types(), window=stream.window)
    batches = [batch for table in tables for batch in plan.batches(table)]
    batches.append(plan.announcement(Account(), 0))
    partials = spark.createDataFrame(pa.Table.from_batches(batches))
    return as_table(merge_announced(partials, plan))


@pytest.mark.slow
def test_every_aggregate_is_merged_as_by_ourselves(
    spark: Any, everything: Stream, frame_of: Callable[..., pl.DataFrame], same_tables: Callable[..., None]
) -> None:
    tables = [sketched(everything, frame_of(seed), seed) for seed in range(3)]
    same_tables(merged_by_spark(spark, everything, tables), merge(tables))


@pytest.mark.slow
def test_panes_are_spread_over_their_windows_as_by_ourselves(
    spark: Any,
    everything: Stream,
    frame_of: Callable[..., pl.DataFrame],
    requested_aggregates: dict[str, ask.Aggregate],
    same_tables: Callable[..., None],
) -> None:
    rows = Stream.from_schema(dict(everything.source.schema), time="at").group_by("lang")
    stream = rows.hopping("1m", every="40s", max_ahead=None).agg(**requested_aggregates)
    frames = [frame_of(seed, rows=300, minutes=2) for seed in range(2)]
    tester = StreamTester(stream, partitions=2)
    for partition, frame in enumerate(frames):
        tester.feed(frame, partition=partition)
    expected = merge(tester.finish().tables())
    assert len(expected["window_start"].unique()) == 4
    tables = [sketched(stream, frame, seed) for seed, frame in enumerate(frames)]
    same_tables(merged_by_spark(spark, stream, tables), expected, draws=False)


@pytest.mark.slow
@pytest.mark.parametrize("more", [{}, {"spread": ask.quantiles("at")}], ids=["Catalyst", "buckets"])
def test_windows_at_the_end_of_the_last_year(spark: Any, more: dict[str, ask.Aggregate]) -> None:
    rows = Stream.from_schema({"at": pl.Int64}, time=pl.from_epoch("at", time_unit="us"))
    stream = rows.hopping("30s", every="10s", max_ahead=None).agg(n=ask.count(), **more)
    table = sketched(stream, pl.DataFrame({"at": [YEAR_10000 - 30_000_001]}), 0)
    merged = merged_by_spark(spark, stream, [table])
    ends = merged.column("window_end").cast(pa.int64()).to_numpy()
    starts = merged.column("window_start").cast(pa.int64()).to_numpy()
    assert sorted((ends - YEAR_10000) // 1_000_000) == [-30, -20, -10]
    assert set(ends - starts) == {30_000_000}


def test_no_aggregate_is_left_out(requested_aggregates: dict[str, ask.Aggregate]) -> None:
    buckets = any(not aggregate.family.spark_merge for aggregate in requested_aggregates.values())
    wanted = {name for name, family in FAMILIES.items() if buckets or family.spark_merge}
    assert {aggregate.name for aggregate in requested_aggregates.values()} == wanted


@pytest.mark.slow
def test_a_single_partial_comes_out_as_it_went_in(
    spark: Any, everything: Stream, frame_of: Callable[..., pl.DataFrame], same_tables: Callable[..., None]
) -> None:
    table = sketched(everything, frame_of(1, rows=50), 1)
    same_tables(merged_by_spark(spark, everything, [table]), table)


def test_groups_that_saw_only_nulls(spark: Any, everything: Stream, same_tables: Callable[..., None]) -> None:
    columns = dict(everything.source.schema)
    nothing = pl.DataFrame({name: [None, None] for name in columns}, schema=columns)
    frame = nothing.with_columns(at=pl.datetime(2026, 1, 1))
    tables = [sketched(everything, frame, seed) for seed in range(2)]
    same_tables(merged_by_spark(spark, everything, tables), merge(tables))


def test_variance_keeps_its_digits_where_the_mean_is_large(spark: Any) -> None:
    rows = Stream.from_schema({"at": pl.Datetime("us"), "x": pl.Float64}, time="at")
    stream = rows.tumbling("1m").agg(spread=ask.variance("x"))
    x = np.random.default_rng(5).normal(1e9, 1e-3, 3_000)
    frames = [pl.DataFrame({"x": part}).with_columns(at=pl.datetime(2026, 1, 1)) for part in np.split(x, 3)]
    result = merged_by_spark(spark, stream, [sketched(stream, frame, 0) for frame in frames])
    spread = result.column("spread").to_pylist()[0]
    assert spread["n"] == 3_000
    assert spread["m2"] / 2_999 == pytest.approx(float(np.var(x, ddof=1)), rel=1e-3)


def test_keys_and_columns_may_have_any_names(spark: Any, same_tables: Callable[..., None]) -> None:
    columns = {"at": pl.Datetime("us"), "a.b": pl.UInt16, "c`d": pl.Date, "x y": pl.String}
    rows = Stream.from_schema(columns, time="at").group_by("a.b", "c`d")
    stream = rows.tumbling("1m").agg(
        **{"n.o": ask.count(), "t`p": ask.top_k("x y"), "s s": ask.sample("x y", k=2), "é": ask.mean("a.b")}
    )
    day = pl.date(2026, 2, 3)
    frame = pl.select(at=pl.datetime(2026, 1, 1)).with_columns(
        pl.lit(7, pl.UInt16).alias("a.b"), day.alias("c`d"), pl.lit("v").alias("x y")
    )
    tables = [sketched(stream, frame, seed) for seed in range(2)]
    same_tables(merged_by_spark(spark, stream, tables), merge(tables))


@pytest.mark.slow
def test_a_table_of_sketches_goes_to_spark_and_back(
    spark: Any, everything: Stream, frame_of: Callable[..., pl.DataFrame]
) -> None:
    table = sketched(everything, frame_of(3, rows=300), 3)
    back = as_table(as_frame(table, spark))
    order = [("window_start", "ascending"), ("lang", "ascending")]
    assert back.schema.equals(table.schema, check_metadata=True)
    assert back.sort_by(order) == table.sort_by(order)


def test_types_that_spark_lacks_are_named() -> None:
    rows = Stream.from_schema({"at": pl.Datetime("us"), "id": pl.UInt64}, time="at").group_by("id")
    stream = rows.tumbling("1m").agg(n=ask.count())
    with pytest.raises(TypeError, match=r"'id' has the type uint64, which Spark doesn't have; cast it"):
        partials_of(schema_of(stream), stream.reading.arrow_types())
