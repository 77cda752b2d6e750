"""Which row groups are read, and how they become tasks; no Spark."""

from __future__ import annotations

import datetime as dt
import pickle
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from streamgauge.spark_udafs.parquet.files import Piece, _numbers, batches, dataset_of, pieces, tasks

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
    result = pickle.loads(pickle.dumps(pieces(dataset, where, names)))
    parts = [batch for piece in result for batch in batches(piece, dataset.schema, names, where)]
    return [group for piece in result for group in piece.row_groups], pa.Table.from_batches(parts)


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


@pytest.mark.parametrize("compression", ["snappy", "zstd", "none"])
def test_numbers_are_the_same_whoever_reads_them(tmp_path: Path, compression: str) -> None:
    random, n = np.random.default_rng(5), 5000
    hidden = random.random(n) < 0.1
    wild = random.choice([np.nan, np.inf, -0.0, 1.5], n)
    table = pa.table(
        {
            "^a.*$": pa.array(random.integers(-(1 << 62), 1 << 62, n), mask=hidden),
            "a.b": pa.array(random.integers(0, 256, n), pa.uint8()),
            "a": pa.array(wild, mask=random.random(n) < 0.1),
            "*": pa.array(wild.astype(np.float32)),
            "big": pa.array(random.integers(1 << 63, 1 << 64, n, np.uint64), mask=np.arange(n) < 2500),
        }
    )
    folder = tmp_path / "at=2026-01-01 00%3A00"
    folder.mkdir()
    place = folder / "[a]*?.parquet"
    pq.write_table(table, place, row_group_size=300, data_page_size=512, compression=compression)
    names = table.column_names[::-1]
    dataset = dataset_of([place.as_uri()], pa.schema([]))
    for result in (pieces(dataset, None, names), [*tasks(pieces(dataset, None, names), 20_000)]):
        each = [one for part in result for one in (part if isinstance(part, tuple) else [part])]
        assert len(each) > 3 and all(_numbers(piece.fragment, names) for piece in each)
        for piece in pickle.loads(pickle.dumps(each)):
            ours = pa.Table.from_batches(batches(piece, dataset.schema, names, None))
            theirs = table.slice(piece.rows.start, len(piece.rows)).select(names)
            # As bits, which tell zeros apart and NaN from nothing.
            assert ours.schema == theirs.schema
            assert _bits(ours) == _bits(theirs)


def _bits(table: pa.Table) -> list[list[int | None]]:
    """Each column as whole numbers."""
    whole = {pa.float64(): pa.int64(), pa.float32(): pa.int32()}
    columns = [column.combine_chunks() for column in table.columns]
    return [column.view(whole.get(column.type, column.type)).to_pylist() for column in columns]


def test_what_only_looks_like_numbers_is_read_by_arrow(tmp_path: Path) -> None:
    other = [True, 2**40, dt.datetime(2026, 1, 1, tzinfo=dt.UTC), Decimal("1.5"), dt.date(2026, 1, 1), "1"]
    (tmp_path / "n=7").mkdir()
    place = tmp_path / "n=7" / "rows.parquet"
    table = pa.table({f"c{at}": [value] for at, value in enumerate(other)} | {"n": pa.array([1], pa.int32())})
    pq.write_table(table, place, use_deprecated_int96_timestamps=True)
    [piece] = pieces(dataset_of([place.as_uri()], COLUMNS), None, table.column_names)
    reported = [_numbers(piece.fragment, [name]) for name in [*table.column_names, "missing"]]
    # The folder says what n is, and not the file.
    assert reported == [False, True, False, False, False, False, False, False]


def test_row_groups_count_by_the_columns_that_are_read(files: list[str]) -> None:
    dataset = dataset_of(files, COLUMNS)
    numbers, more = (pieces(dataset, None, names)[0].bytes for names in (["n"], ["n", "text"]))
    assert 8 * 100 <= numbers < more
    assert pieces(dataset, None, ["day"])[0].bytes == 8 * 100


def test_pieces_become_tasks_by_size(files: list[str]) -> None:
    result = pieces(dataset_of(files, COLUMNS), None, ["n"])
    size = sum(piece.bytes for piece in result[:5])
    cut = tasks(result, size)
    assert [[piece.row_groups for piece in part] for part in cut] == [[range(5)], [range(5, 10)]] * 2
    assert all(sum(piece.bytes for piece in part) >= size for part in cut[:-1])
    assert [[piece.rows for piece in part] for part in tasks(result, 10**9)] == [[range(1000)] * 2]
    # Row groups between which one isn't read are pieces of their own, of one task.
    assert [len(part) for part in tasks([*result[:3], *result[4:12]], 10**9)] == [3]
    assert tasks([], size) == []
    assert all(isinstance(piece, Piece) for piece in result)
