"""Merging in buckets, without a Spark session: partial rows, state, and what is refused."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import Row

from streamgauge.operators.definition import aggregates as ask
from streamgauge.operators.definition.definition_diff import DefinitionChanged
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.kept_form import WrittenByNewer
from streamgauge.operators.sketching.sketcher import Sketcher
from streamgauge.operators.table.schema import END, from_ipc, schema_of, table_schema, to_ipc
from streamgauge.operators.table.sketch_table import merge
from streamgauge.operators.watermarks.partition_watermark import PartitionTime
from streamgauge.operators.windows.hopping import regular_windows
from streamgauge.operators.windows.window import YEAR_10000
from streamgauge.spark_udafs.merge.buckets import BUCKETS, BucketedPartials, WindowMerge, _unpacking

MINUTE = 60_000_000


def stream(**requested: ask.Aggregate) -> Stream:
    rows = Stream.from_schema({"at": pl.Datetime("us"), "id": pl.Int64}, time="at").group_by("id")
    return rows.tumbling("1m", delay="9999d", max_ahead=None).agg(
        **(requested or {"seen": ask.quantiles("id")})
    )


def table(seed: int, table: Stream, start: int = 0) -> pa.Table:
    random = np.random.default_rng(seed)
    at = pl.Series(random.integers(start, start + 3 * MINUTE, 2_000)).cast(pl.Datetime("us"))
    sketcher = Sketcher(table)
    sketcher.add(pl.DataFrame({"at": at, "id": random.integers(0, 300, 2_000)}), PartitionTime())
    return sketcher.drain()


def test_each_group_is_in_one_bucket_and_each_row_of_one_bucket_and_window() -> None:
    tables = [table(seed, stream()) for seed in (1, 2)]
    plan = BucketedPartials(tables[0].schema)
    parts: dict[tuple[int, Any], list[pa.Table]] = {}
    for whole in tables:
        (batch,) = plan.batches(whole)
        for row in batch.to_pylist():
            part = from_ipc(row["__table"])
            assert part.column(END).unique().to_pylist() == [row[END]]
            parts.setdefault((row["__bucket"], row[END]), []).append(part)
    assert {bucket for bucket, _ in parts} == set(range(BUCKETS))
    merged = [merge(result).to_arrow() for result in parts.values()]
    order = [("window_start", "ascending"), ("id", "ascending")]
    assert pa.concat_tables(merged).sort_by(order) == merge(tables)


def test_windows_that_end_where_python_s_calendar_does() -> None:
    whole = table(3, stream(), YEAR_10000 - 3 * MINUTE)
    (batch,) = BucketedPartials(whole.schema).batches(whole)
    assert max(batch.column(END).to_pylist()).year == 9999
    lengths = batch.column("__length").to_pylist()
    assert set(lengths) == {MINUTE}


class Handle:
    """One key's state and timers, as Spark keeps them."""

    def __init__(self) -> None:
        self.held: Any = None
        self.timers: list[int] = []
        self.registerTimer = self.timers.append

    def getValueState(self, name: str, schema: str) -> Any:
        return SimpleNamespace(get=lambda: self.held, update=self._keep, clear=lambda: self._keep(None))

    def _keep(self, value: Any) -> None:
        self.held = value


def test_a_bucket_is_merged_as_it_comes_and_given_out_once() -> None:
    result = [table(seed, stream()) for seed in (4, 5)]
    handle, merging = Handle(), WindowMerge(schema_of(stream()), "append", timed=True)
    merging.init(handle)
    key = (0, 0, MINUTE + 1)
    for whole in result:
        rows = iter([Row(__table=to_ipc(whole.slice(0, 100))), Row(__table=to_ipc(whole.slice(100, 100)))])
        assert not list(merging.handleInputRows(key, rows, None))
    assert handle.timers == [60_001]
    (row,) = merging.handleExpiredTimer(key, None, None)
    wanted = merge([whole.slice(0, 200) for whole in result], every="3m")
    assert from_ipc(row["table"]).column("seen").to_pylist() == wanted.column("seen").to_pylist()
    assert handle.held is None and not list(merging.handleExpiredTimer(key, None, None))


def test_in_update_mode_the_groups_that_changed_are_given_out_each_time() -> None:
    whole = table(8, stream())
    handle, merging = Handle(), WindowMerge(whole.schema, "update", timed=False)
    merging.init(handle)
    key = (0, 0, MINUTE)
    parts = [whole.slice(at, 60) for at in (0, 60, 30)]
    for number, part in enumerate(parts):
        (row,) = merging.handleInputRows(key, iter([Row(__table=to_ipc(part))]), None)
        given = from_ipc(row["table"])
        wanted = merge(parts[: number + 1], every="3m")
        changed = wanted.filter(pc.is_in(wanted.column("id"), part.column("id")))
        assert (
            given.sort_by("id").column("seen").to_pylist() == changed.sort_by("id").column("seen").to_pylist()
        )
    assert not handle.timers
    assert not list(merging.handleExpiredTimer(key, None, None))


def test_state_of_another_definition_is_refused() -> None:
    own = schema_of(stream(seen=ask.quantiles("id", 0.02)))
    handle, merging = Handle(), WindowMerge(own, "append", timed=True)
    merging.init(handle)
    kept = to_ipc(table(6, stream()))
    reported = r'the aggregate "seen" changed from .*0\.01.* to .*0\.02.* another checkpoint folder'
    with pytest.raises(DefinitionChanged, match=reported):
        merging.handleInputRows((0, 0, MINUTE), iter([Row(__table=kept)]), None)
    # A window that is closed before anything new comes to it.
    closed = pa.RecordBatch.from_pydict({"table": [kept]})
    with pytest.raises(DefinitionChanged, match=reported):
        list(_unpacking(own, own)(iter([closed])))
    minutes = table_schema({"id": pa.int64()}, stream().aggregates, regular_windows(2 * MINUTE))
    with pytest.raises(DefinitionChanged, match="the window changed from"):
        list(_unpacking(minutes, minutes)(iter([closed])))


def test_state_of_a_newer_form_is_refused_and_kept() -> None:
    kept = b"form 2 " + to_ipc(table(6, stream()))
    handle, merging = Handle(), WindowMerge(schema_of(stream()), "append", timed=True)
    merging.init(handle)
    handle.held = (kept,)
    with pytest.raises(
        WrittenByNewer, match=r"the state of a streaming query was written by a newer .*format version 2"
    ):
        merging.handleInputRows((0, 0, MINUTE), iter([Row(__table=to_ipc(table(7, stream())))]), None)
    with pytest.raises(WrittenByNewer):
        merging.handleExpiredTimer((0, 0, MINUTE), None, None)
    assert handle.held == (kept,)


@pytest.mark.spark
def test_a_stream_without_rocksdb_is_refused_with_how_to_get_it(spark: Any) -> None:
    from streamgauge.spark_udafs.frames.frames import sketch
    from streamgauge.spark_udafs.frames.windows import window

    name = "spark.sql.streaming.stateStore.providerClass"
    usual = spark.conf.get(name)
    spark.conf.set(name, "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider")
    try:
        rows = sketch(spark.readStream.format("rate").load()).withWatermark("timestamp", "10 seconds")
        with pytest.raises(ValueError, match=r"set spark\.sql.streaming\.stateStore\.providerClass to org"):
            rows.groupBy(window("timestamp", "1 minute")).agg(seen=ask.quantiles("value"))
    finally:
        spark.conf.set(name, usual)
