"""Each file that arrives is read once, whatever ends the query; called as Spark does but without Spark."""

from __future__ import annotations

import pickle
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable

from streamgauge.spark_udafs.parquet.arriving import Arriving, ArrivingReader, FileLog
from streamgauge.spark_udafs.parquet.readable import as_they_are
from streamgauge.spark_udafs.parquet.reading import PlannedRead

COLUMNS = pa.schema([("n", pa.int64())])
ALL = ReadAllAvailable()


def reader(folder: Path, most: int | None = None) -> ArrivingReader:
    """A reader as a query that starts has it."""
    plan = PlannedRead((), COLUMNS, None, as_they_are, COLUMNS)
    return ArrivingReader(plan, Arriving(str(folder / "rows"), str(folder / "log"), most))


def arrive(folder: Path, number: int) -> None:
    """A file of three rows."""
    (folder / "rows").mkdir(exist_ok=True)
    table = pa.table({"n": [3 * number, 3 * number + 1, 3 * number + 2]})
    pq.write_table(table, folder / "rows" / f"{number}.parquet")


def rows(source: ArrivingReader, start: Any, end: Any) -> list[int]:
    """What the tasks of a micro-batch give, each in a worker of its own."""
    collected = []
    for task in source.partitions(start, end):
        worker, own = pickle.loads(pickle.dumps((source, task)))
        collected += [n for batch in worker.read(own) for n in batch.column("n").to_pylist()]
    return collected


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_restarts_at_any_moment_count_each_row_once(tmp_path: Path, seed: int) -> None:
    random, arrived = Random(seed), 0
    batches: list[list[int]] = []
    arrive(tmp_path, arrived)
    source = reader(tmp_path, 2)
    offset = source.initialOffset()
    planned = None
    for _ in range(200):
        if random.random() < 0.2:
            arrived += 1
            arrive(tmp_path, arrived)
        if random.random() < 0.3:
            # Another process, which knows the checkpoint and the log; perhaps another query has looked.
            source = reader(tmp_path, 2)
            if random.random() < 0.5:
                reader(tmp_path, 2).latestOffset({"steps": FileLog(str(tmp_path / "log")).steps()}, ALL)
        if planned is None:
            result = source.latestOffset(offset, ALL)
            # What isn't in the checkpoint may be planned again.
            planned = result if result != offset and random.random() < 0.7 else None
        elif random.random() < 0.7:
            given = rows(source, offset, planned)
            assert rows(reader(tmp_path, 2), offset, planned) == given and len(given) <= 6
            batches.append(given)
            offset, planned = planned, None
    while (end := source.latestOffset(offset, ALL)) != offset:
        batches.append(rows(source, offset, end))
        offset = end
    assert sorted(n for batch in batches for n in batch) == list(range(3 * arrived + 3))


def test_what_is_there_now_ends_a_query_of_that_trigger(tmp_path: Path) -> None:
    for number in range(3):
        arrive(tmp_path, number)
    source = reader(tmp_path, 1)
    source.prepareForTriggerAvailableNow()
    arrive(tmp_path, 3)
    offset, steps = source.initialOffset(), 0
    while (end := source.latestOffset(offset, ALL)) != offset:
        offset, steps = end, steps + 1
    assert steps == 3 and source.reportLatestOffset() == {"steps": 3}


def test_hidden_and_unfinished_files_are_no_rows_and_folders_inside_are_read(tmp_path: Path) -> None:
    arrive(tmp_path, 0)
    for name in ("_SUCCESS", ".1.parquet.tmp", "_temporary/0/1.parquet"):
        file = tmp_path / "rows" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"not yet")
    (tmp_path / "rows" / "day=1").mkdir()
    pq.write_table(pa.table({"n": [7]}), tmp_path / "rows" / "day=1" / "a b.parquet")
    source = reader(tmp_path)
    end = source.latestOffset({"steps": 0}, ALL)
    assert sorted(rows(source, {"steps": 0}, end)) == [0, 1, 2, 7]


def test_a_log_that_is_shorter_than_the_checkpoint_is_an_error(tmp_path: Path) -> None:
    arrive(tmp_path, 0)
    with pytest.raises(RuntimeError, match="lacks step 4, which the checkpoint has; put it back"):
        reader(tmp_path).latestOffset({"steps": 5}, ALL)
    with pytest.raises(FileNotFoundError, match="there is no file or folder"):
        reader(tmp_path / "nowhere").latestOffset({"steps": 0}, ALL)
