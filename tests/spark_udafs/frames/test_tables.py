"""Tables of sketches through Parquet between Spark and the consumer, both ways."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

from streamgauge.operators.definition import aggregates as ask
from streamgauge.operators.definition.aggregate import Aggregate
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.sketching.sketcher import Sketcher
from streamgauge.operators.table.schema import read_parquet, write_parquet
from streamgauge.operators.table.sketch_table import merge
from streamgauge.operators.watermarks.partition_watermark import PartitionTime
from streamgauge.spark_udafs.frames.frames import sketch
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
