"""Tables of sketches through Parquet between Spark and the consumer, both ways."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

from streamgauge.operators.definition import aggregates as ask
from streamgauge.operators.definition.aggregate import Aggregate
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.sketching.sketcher import Sketcher
from streamgauge.operators.table.query import query
from streamgauge.operators.table.schema import read_parquet, write_parquet
from streamgauge.operators.table.sketch_table import merge
from streamgauge.operators.watermarks.partition_watermark import PartitionTime
from streamgauge.spark_udafs.frames.frames import sketch
from streamgauge.spark_udafs.frames.rollup import rollup
from streamgauge.spark_udafs.frames.tables import as_table
from streamgauge.spark_udafs.frames.windows import window

pytestmark = pytest.mark.spark


def consumed(stream: Stream, frame: pl.DataFrame) -> pa.Table:
    """The table of sketches that the consumer makes of rows."""
    sketcher = Sketcher(stream)
    sketcher.add(frame, PartitionTime())
    return sketcher.drain()


@pytest.mark.slow
def test_tables_of_both_engines_merge_through_parquet_on_either(
    spark: Any,
    everything: Stream,
    requested_aggregates: dict[str, Aggregate],
    frame_of: Callable[..., pl.DataFrame],
    same_tables: Callable[..., None],
    tmp_path: Path,
) -> None:
    frames = [frame_of(seed, rows=800) for seed in (21, 22)]
    consumer_s, by_consumer = (consumed(everything, frame) for frame in frames)
    wanted = merge([consumer_s, by_consumer])
    rows = spark.createDataFrame(frames[1].to_arrow()).repartition(2)
    spark_s = sketch(rows).groupBy("lang", window("at", "1 minute")).agg(**requested_aggregates)
    write_parquet(consumer_s, tmp_path / "consumer")
    spark_s.write.parquet(str(tmp_path / "spark"))
    # Here.
    here = [read_parquet(tmp_path / name) for name in ("consumer", "spark")]
    same_tables(here[1], by_consumer, draws=False)
    same_tables(merge(here), wanted, draws=False)
    # In Spark, where each file says what it holds.
    there = [spark.read.parquet(str(tmp_path / name)) for name in ("consumer", "spark")]
    assert as_table(there[0]).sort_by(ORDER) == consumer_s.sort_by(ORDER)
    same_tables(merge(as_table(there[0].unionByName(there[1]))), wanted, draws=False)


ORDER = [(name, "ascending") for name in ("window_start", "lang")]


def test_keys_that_spark_widens_keep_their_types(spark: Any, tmp_path: Path) -> None:
    columns = {"at": pl.Datetime("us"), "id": pl.UInt16, "day": pl.Date}
    stream = Stream.from_schema(columns, time="at").group_by("id", "day").tumbling("1m").agg(n=ask.count())
    frame = pl.select(at=pl.datetime(2026, 1, 1), id=pl.lit(7, pl.UInt16), day=pl.date(2026, 1, 1))
    table = consumed(stream, frame)
    write_parquet(table, tmp_path / "ours")
    by_spark = spark.read.parquet(str(tmp_path / "ours"))
    assert as_table(by_spark) == table
    by_spark.write.parquet(str(tmp_path / "theirs"))
    back = read_parquet(tmp_path / "theirs")
    assert back == table and back.schema.equals(table.schema, check_metadata=True)


@pytest.fixture
def settings(spark: Any) -> Iterator[Callable[[str, str], None]]:
    """Set the session's settings for one test."""
    before: dict[str, str] = {}

    def set_one(name: str, value: str) -> None:
        before.setdefault(name, spark.conf.get(name))
        spark.conf.set(name, value)

    yield set_one
    for name, value in before.items():
        spark.conf.set(name, value)


@pytest.mark.parametrize("zone", ["UTC", "Asia/Kolkata"])
@pytest.mark.parametrize("stored", ["INT96", "TIMESTAMP_MICROS"])
def test_instants_keep_their_zone_however_spark_stores_them(
    spark: Any, settings: Callable[[str, str], None], tmp_path: Path, zone: str, stored: str
) -> None:
    settings("spark.sql.session.timeZone", zone)
    settings("spark.sql.parquet.outputTimestampType", stored)
    rows = spark.range(120).selectExpr(
        "timestamp_seconds(1772906400 + id) AS at",
        "timestamp_seconds(1772906400 + id % 2) AS key",
        "TIMESTAMP_NTZ '2026-03-07 18:00:00' + make_dt_interval(0, 0, 0, id) AS local",
    )
    requested = {
        "least": ask.min("at"),
        "latest": ask.last("at"),
        "local": ask.max("local"),
        "some": ask.sample("at", k=2),
        "most": ask.top_k("at", k=2),
    }
    by_minute = sketch(rows).groupBy("key", window("at", "1 minute")).agg(**requested)
    by_minute.write.parquet(str(tmp_path / "minutes"))
    table = read_parquet(tmp_path / "minutes")
    collected = as_table(spark.read.parquet(str(tmp_path / "minutes")))
    order = [(name, "ascending") for name in ("window_start", "key")]
    assert table.sort_by(order) == pa.table(collected).sort_by(order)
    start = datetime(2026, 3, 7, 18, tzinfo=UTC)
    answers = query(table).sort("window_start", "key")
    assert answers["key"].to_list() == [start + timedelta(seconds=n) for n in (0, 1, 0, 1)]
    assert answers["least"].to_list() == [start + timedelta(seconds=n) for n in (0, 1, 60, 61)]
    assert answers["latest"].to_list() == [start + timedelta(seconds=n) for n in (58, 59, 118, 119)]
    assert answers["local"].dtype == pl.Datetime("us") and answers["local"][3].second == 59
    whole = query(as_table(rollup(spark.read.parquet(str(tmp_path / "minutes")), every="1 hour", by=[])))
    assert whole.select("least", "latest").row(0) == (start, start + timedelta(seconds=119))
