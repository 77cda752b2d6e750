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
from streamgauge.operators.sketching.accounting import Account
from streamgauge.operators.sketching.lateness import PartitionTime
from streamgauge.operators.sketching.sketcher import Sketcher
from streamgauge.operators.table.merge import merge
from streamgauge.operators.table.schema import schema_of
from streamgauge.spark_udafs.merge.plan import merge_announced, partials_of
from streamgauge.spark_udafs.tables import as_frame, as_table

pytestmark = pytest.mark.spark


def sketched(stream: Stream, frame: pl.DataFrame, salt: int) -> pa.Table:
    """The table of sketches of one worker's rows."""
    sketcher = Sketcher(stream, salt=salt)
    sketcher.add(frame, PartitionTime())
    return sketcher.take()


def merged_by_spark(spark: Any, stream: Stream, tables: list[pa.Table]) -> pa.Table:
    """The same tables, merged as the source's partial rows are."""
    plan = partials_of(schema_of(stream), stream.arrow_types())
    batches = [batch for table in tables for batch in plan.batches(table)]
    batches.append(plan.announcement(Account(), 0))
    partials = spark.createDataFrame(pa.Table.from_batches(batches))
    return as_table(merge_announced(partials, plan))


def test_every_aggregate_is_merged_as_by_ourselves(
    spark: Any, everything: Stream, frame_of: Callable[..., pl.DataFrame], same_tables: Callable[..., None]
) -> None:
    tables = [sketched(everything, frame_of(seed), seed) for seed in range(3)]
    same_tables(merged_by_spark(spark, everything, tables), merge(tables))


def test_no_aggregate_is_left_out(asked: dict[str, ask.Aggregate]) -> None:
    buckets = any(not aggregate.family.spark_merge for aggregate in asked.values())
    wanted = {name for name, family in FAMILIES.items() if buckets or family.spark_merge}
    assert {aggregate.name for aggregate in asked.values()} == wanted


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
    rows = Stream.from_batches({"at": pl.Datetime("us"), "x": pl.Float64}, time="at")
    stream = rows.tumbling("1m").agg(spread=ask.variance("x"))
    x = np.random.default_rng(5).normal(1e9, 1e-3, 3_000)
    frames = [pl.DataFrame({"x": part}).with_columns(at=pl.datetime(2026, 1, 1)) for part in np.split(x, 3)]
    found = merged_by_spark(spark, stream, [sketched(stream, frame, 0) for frame in frames])
    spread = found.column("spread").to_pylist()[0]
    assert spread["n"] == 3_000
    assert spread["m2"] / 2_999 == pytest.approx(float(np.var(x, ddof=1)), rel=1e-3)


def test_keys_and_columns_may_have_any_names(spark: Any, same_tables: Callable[..., None]) -> None:
    columns = {"at": pl.Datetime("us"), "a.b": pl.UInt16, "c`d": pl.Date, "x y": pl.String}
    rows = Stream.from_batches(columns, time="at").group_by("a.b", "c`d")
    stream = rows.tumbling("1m").agg(
        **{"n.o": ask.count(), "t`p": ask.top_k("x y"), "s s": ask.sample("x y", k=2), "é": ask.mean("a.b")}
    )
    day = pl.date(2026, 2, 3)
    frame = pl.select(at=pl.datetime(2026, 1, 1)).with_columns(
        pl.lit(7, pl.UInt16).alias("a.b"), day.alias("c`d"), pl.lit("v").alias("x y")
    )
    tables = [sketched(stream, frame, seed) for seed in range(2)]
    same_tables(merged_by_spark(spark, stream, tables), merge(tables))


def test_a_table_of_sketches_goes_to_spark_and_back(
    spark: Any, everything: Stream, frame_of: Callable[..., pl.DataFrame]
) -> None:
    table = sketched(everything, frame_of(3, rows=300), 3)
    back = as_table(as_frame(table, spark))
    order = [("window_start", "ascending"), ("lang", "ascending")]
    assert back.schema.equals(table.schema, check_metadata=True)
    assert back.sort_by(order).equals(table.sort_by(order))


def test_types_that_spark_lacks_are_named() -> None:
    rows = Stream.from_batches({"at": pl.Datetime("us"), "id": pl.UInt64}, time="at").group_by("id")
    stream = rows.tumbling("1m").agg(n=ask.count())
    with pytest.raises(TypeError, match=r"'id' has the type uint64, which Spark doesn't have; cast it"):
        partials_of(schema_of(stream), stream.arrow_types())
