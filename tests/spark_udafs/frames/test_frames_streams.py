"""Streaming DataFrames: windows, late rows and output modes are those of Spark's own exact aggregation."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from pyspark.sql import functions as F

from streamgauge.operators.definition import aggregates as ask
from streamgauge.operators.definition.aggregate import Aggregate
from streamgauge.operators.table.query import query
from streamgauge.spark_udafs.frames.frames import sketch
from streamgauge.spark_udafs.streaming.run import write

from ..conftest import skip_if_one_batch

pytestmark = pytest.mark.spark

MINUTE = 60_000_000
START_US = 1_700_000_040_000_000
SCHEMA = "at timestamp, key long, v long"
WINDOWS: dict[str, Callable[[], Any]] = {
    "hopping": lambda: F.window("at", "30 seconds", "10 seconds", "3 seconds"),
    "sessions": lambda: F.session_window("at", "4 seconds"),
}
WAYS: dict[str, dict[str, Aggregate]] = {
    "Catalyst": {"users": ask.distinct("v"), "some": ask.sample("v", k=3)},
    "buckets": {"users": ask.distinct("v"), "spread": ask.quantiles("v")},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file a micro-batch: rows up to 100 s late, some far ahead, some without a time."""
    random, made = np.random.default_rng(3), tmp_path_factory.mktemp("rows")
    for number in range(4):
        start = START_US + number * MINUTE
        at = start + random.integers(-100_000_000, MINUTE, 400)
        at[:3] += 200_000_000 * (number == 1)
        columns = {"at": at, "key": random.integers(0, 12, 400), "v": random.integers(0, 1000, 400)}
        frame = pl.DataFrame(columns)
        at_ = pl.when(pl.col("v") % 50 > 0).then(pl.col("at")).cast(pl.Datetime("us", "UTC"))
        file = made / f"{number}.parquet"
        frame.with_columns(at_.alias("at")).write_parquet(file)
        # Spark takes the oldest first; files of one millisecond would come in any order.
        os.utime(file, (1_700_000_000 + number,) * 2)
    return made


@pytest.fixture(scope="module")
def results(spark: Any, folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Any]:
    """The rows that a query has given out at its end, in order; Spark's own where no aggregates are named."""
    known: dict[Any, Any] = {}

    def run(windows: str | None, mode: str, way: str | None) -> Any:
        if (windows, mode, way) in known:
            return known[windows, mode, way]
        rows = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(folder))
        kinds = [] if windows is None else [WINDOWS[windows]()]
        exact = {"n": F.count("*"), "total": F.sum("v")}
        if way is None:
            keys = ["key", *(kind.alias("w") for kind in kinds)]
            own = rows.withWatermark("at", "10 seconds").groupBy(*keys)
            edges = ["w.start", "w.end"] if kinds else ["null", "null"]
            table = own.agg(*(requested.alias(name) for name, requested in exact.items()))
        else:
            ours = sketch(rows).outputMode(mode).groupBy("key", *kinds)
            table = ours.withWatermark("at", "10 seconds").agg(**exact, **WAYS[way])
            edges = ["window_start", "window_end"] if kinds else ["null", "null"]
            assert ("window_start" in table.columns) == bool(kinds)
        name = f"frames_{windows}_{mode}_{way}"
        writer = table.selectExpr(*edges, "key", "n", "cast(total as long)").writeStream.format("memory")
        writer = writer.queryName(name).outputMode(mode).trigger(availableNow=True)
        running = writer.option("checkpointLocation", str(tmp_path_factory.mktemp("checkpoint"))).start()
        assert running.awaitTermination(300)
        late = sum(
            o["numRowsDroppedByWatermark"] for p in running.recentProgress for o in p["stateOperators"]
        )
        result = sorted(tuple(map(str, row)) for row in spark.table(name).collect())
        known[windows, mode, way] = result, late
        return known[windows, mode, way]

    return run


@pytest.mark.slow
@pytest.mark.parametrize(
    ("windows", "way"),
    [
        ("hopping", "buckets"),
        ("sessions", "Catalyst"),
        pytest.param("hopping", "Catalyst", marks=pytest.mark.soak),
        pytest.param("sessions", "buckets", marks=pytest.mark.soak),
    ],
)
def test_late_and_early_rows_are_in_the_windows_of_spark_s_own(
    results: Callable[..., Any], windows: str, way: str
) -> None:
    wanted, late = results(windows, "append", None)
    result, _ = results(windows, "append", way)
    assert late > 100 and result == wanted


@pytest.mark.slow
@pytest.mark.parametrize(
    ("windows", "mode", "way"),
    [
        pytest.param("hopping", "update", "buckets", marks=pytest.mark.soak),
        (None, "complete", "buckets"),
        pytest.param("hopping", "update", "Catalyst", marks=pytest.mark.soak),
        pytest.param("hopping", "complete", "Catalyst", marks=pytest.mark.soak),
        pytest.param("hopping", "complete", "buckets", marks=pytest.mark.soak),
        pytest.param(None, "update", "Catalyst", marks=pytest.mark.soak),
        pytest.param(None, "update", "buckets", marks=pytest.mark.soak),
        pytest.param("sessions", "complete", "Catalyst", marks=pytest.mark.soak),
        pytest.param("sessions", "complete", "buckets", marks=pytest.mark.soak),
    ],
)
def test_each_output_mode_gives_what_spark_s_own_does(
    results: Callable[..., Any], windows: str | None, mode: str, way: str
) -> None:
    assert results(windows, mode, way)[0] == results(windows, mode, None)[0]


@pytest.mark.slow
@pytest.mark.parametrize("way", ["Catalyst", pytest.param("buckets", marks=pytest.mark.soak)])
def test_sessions_of_all_rows_together(spark: Any, tmp_path: Path, way: str) -> None:
    """Spark's own aggregation refuses these in streams."""
    if way == "Catalyst":
        skip_if_one_batch(spark)
    rows = spark.range(300).selectExpr("timestamp_seconds(id + 7 * (id div 10)) at", "id v")
    rows.coalesce(1).write.parquet(str(tmp_path / "rows"))
    streamed = spark.readStream.schema(rows.schema).parquet(str(tmp_path / "rows"))
    timed = sketch(streamed).withWatermark("at", "1 second").groupBy(F.session_window("at", "4 seconds"))
    collected: list[pl.DataFrame] = []
    table = timed.agg(n=F.count("*"), **WAYS[way])
    running = write(
        table, tmp_path / "at", lambda part, batch: collected.append(query(part)), available_now=True
    )
    assert running.awaitTermination(300)
    sessions = pl.concat(collected).sort("window_start")
    assert sessions["n"].to_list() == [10] * 29
    assert sessions["window_start"].dt.epoch("s").to_list() == list(range(0, 29 * 17, 17))


def test_modes_that_cannot_be_are_refused(spark: Any, folder: Path) -> None:
    rows = sketch(spark.readStream.schema(SCHEMA).parquet(str(folder)))
    with pytest.raises(ValueError, match="Spark has no sessions in update mode"):
        rows.outputMode("update").groupBy("key", F.session_window("at", "4 seconds")).agg(n=ask.count())
    with pytest.raises(ValueError, match=r'sketch\(df\)\.outputMode\("update"\)'):
        rows.groupBy("key").agg(n=ask.count())
    with pytest.raises(ValueError, match='outputMode must be "append", "update" or "complete"'):
        rows.outputMode("upsert")  # type: ignore[arg-type]
