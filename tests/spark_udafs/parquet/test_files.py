"""Which row groups are read, and how they become tasks; no Spark."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from streamgauge.spark_udafs.parquet.files import Piece, batches, dataset_of, pieces, tasks

COLUMNS = pa.schema([("n", pa.int64())])


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    """Two days of ten row groups each, sorted by n; the second day has a column more."""
    for day in (1, 2):
        folder = tmp_path / f"day={day}"
        folder.mkdir()
        n = np.arange(1000) + 1000 * (day - 1)
        table = pa.table({"n": n, "text": [f"row {number}" for number in n]})
        if day == 2:
            table = table.append_column("more", pa.array(n / 2))
        pq.write_table(table, folder / "rows.parquet", row_group_size=100)
    return [f"file://{path}" for path in sorted(tmp_path.rglob("*.parquet"))]


def read(files: list[str], where: pc.Expression | None, *names: str) -> tuple[list[int], pa.Table]:
    """The numbers of the row groups read, and the rows."""
    columns = pa.schema([(name, {"more": pa.float64()}.get(name, pa.int64())) for name in names])
    dataset = dataset_of(files, columns)
    found = pickle.loads(pickle.dumps(pieces(dataset, where)))
    parts = [batch for piece in found for batch in batches(piece, dataset.schema, names, where)]
    return [group for piece in found for group in piece.row_groups], pa.Table.from_batches(parts)


def test_row_groups_that_the_statistics_exclude_are_not_read(files: list[str]) -> None:
    groups, rows = read(files, (pc.field("n") >= 1250) & (pc.field("n") < 1420), "n")
    assert groups == [2, 3, 4]
    assert rows["n"].to_pylist() == list(range(1250, 1420))
    assert read(files, None, "n")[0] == [*range(10), *range(10)]


def test_folders_are_columns_and_exclude_files(files: list[str]) -> None:
    groups, rows = read(files, pc.field("day") == 1, "n", "day")
    assert groups == list(range(10))
    assert rows["day"].unique().to_pylist() == [1] and rows.num_rows == 1000


def test_only_the_columns_asked_for_are_read_and_files_without_one_have_nulls(files: list[str]) -> None:
    _, rows = read(files, None, "more")
    assert rows.column_names == ["more"]
    assert (rows["more"].null_count, rows.num_rows) == (1000, 2000)


def test_pieces_become_tasks_by_size(files: list[str]) -> None:
    found = pieces(dataset_of(files, COLUMNS), None)
    size = sum(piece.bytes for piece in found[:5])
    cut = tasks(found, size)
    assert [len(part) for part in cut[:2]] == [5, 5]
    assert all(sum(piece.bytes for piece in part[:-1]) < size for part in cut)
    assert all(sum(piece.bytes for piece in part) >= size for part in cut[:-1])
    assert [piece for part in cut for piece in part] == found
    assert [len(part) for part in tasks(found, 10**9)] == [20]
    assert tasks([], size) == []
    assert all(isinstance(piece, Piece) for piece in found)
