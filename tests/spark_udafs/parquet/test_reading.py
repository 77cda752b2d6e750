"""What the source plans and reads, called as Spark does but without Spark."""

from __future__ import annotations

import gc
import pickle
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from streamgauge.spark_udafs.gc_freeze import freeze_imports
from streamgauge.spark_udafs.parquet.reading import PlannedRead
from streamgauge.spark_udafs.parquet.source import NAME, bound

COLUMNS = pa.schema([("n", pa.int64()), ("text", pa.string())])


def as_they_are(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Work that only hands on."""
    yield from batches


def read(plan: PlannedRead) -> tuple[int, pa.Table]:
    """How many tasks there are, and all that they give."""
    source = bound(plan)({})
    assert source.name().startswith(f"{NAME}-") and source.schema().names == plan.out.names
    reader = source.reader(source.schema())
    tasks = [pickle.loads(pickle.dumps(task)) for task in reader.partitions()]
    return len(tasks), pa.Table.from_batches([b for t in tasks for b in reader.read(t)], schema=plan.columns)


def test_each_row_is_read_once_in_the_types_asked_for(tmp_path: Path) -> None:
    files = []
    for part in range(3):
        table = pa.table({"n": pa.array(range(part * 10, part * 10 + 10), pa.int32()), "text": ["é"] * 10})
        pq.write_table(table, tmp_path / f"{part}.parquet", row_group_size=4)
        files.append(f"file://{tmp_path}/{part}.parquet")
    tasks, rows = read(PlannedRead(tuple(files), COLUMNS, None, as_they_are, COLUMNS))
    assert (tasks, rows["n"].to_pylist()) == (1, list(range(30)))
    where = (pc.field("n") > 17) & (pc.field("text") == "é")
    _, rows = read(PlannedRead(tuple(files), COLUMNS, where, as_they_are, COLUMNS))
    assert rows["n"].to_pylist() == list(range(18, 30))


@pytest.mark.slow
def test_what_a_worker_has_loaded_is_collected_no_more(tmp_path: Path) -> None:
    table = pa.table({"n": [1, 2], "text": ["a", "b"]})
    pq.write_table(table, tmp_path / "rows.parquet")
    freeze_imports.cache_clear()
    gc.unfreeze()
    assert read(PlannedRead((f"file://{tmp_path}/rows.parquet",), COLUMNS, None, as_they_are, COLUMNS))
    frozen = gc.get_freeze_count()
    # All modules with what they hold, and that once: the next tasks' own objects are collected.
    assert frozen > 10_000
    assert read(PlannedRead((f"file://{tmp_path}/rows.parquet",), COLUMNS, None, as_they_are, COLUMNS))
    assert gc.get_freeze_count() <= frozen


def test_nothing_to_read_is_a_task_without_rows(tmp_path: Path) -> None:
    assert read(PlannedRead((), COLUMNS, None, as_they_are, COLUMNS))[1].num_rows == 0
    pq.write_table(COLUMNS.empty_table(), tmp_path / "empty.parquet")
    file = (f"file://{tmp_path}/empty.parquet",)
    assert read(PlannedRead(file, COLUMNS, None, as_they_are, COLUMNS)) == (1, COLUMNS.empty_table())
