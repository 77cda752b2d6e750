"""The plain source: its columns, conditions and options, called as Spark does but without Spark."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql.types import LongType, StructType

from streamgauge.spark_udafs.parquet.readable import ParquetRows


@pytest.fixture
def folder(tmp_path: Path) -> str:
    """Sixty rows of two sites, in small row groups."""
    for site in ("north", "south"):
        (tmp_path / f"site={site}").mkdir()
        table = pa.table({"n": pa.array(range(30), pa.int32()), "text": ["é"] * 30})
        pq.write_table(table, tmp_path / f"site={site}" / "rows.parquet", row_group_size=5)
    return str(tmp_path)


def read(path: str, schema: StructType | None = None, **options: Any) -> list[dict[str, Any]]:
    """The rows that Spark gets."""
    source = ParquetRows({"path": path, **options})
    reader = source.reader(schema or source.schema())
    return [row for task in reader.partitions() for batch in reader.read(task) for row in batch.to_pylist()]


def test_rows_with_the_folders_columns(folder: str) -> None:
    result = read(folder)
    assert len(result) == 60 and {row["site"] for row in result} == {"north", "south"}
    assert ParquetRows({"path": folder}).schema().simpleString() == "struct<n:int,text:string,site:string>"


def test_only_the_columns_of_the_schema_and_the_rows_that_are_asked_for(folder: str) -> None:
    requested = StructType().add("n", LongType())
    north = [["site", "=", "north"], ["n", "in", [3, 28, 99]]]
    assert read(folder, requested, where=json.dumps(north)) == [{"n": 3}, {"n": 28}]
    either = [[["n", ">", 28]], [["site", "=", "south"], ["n", "<", 1]]]
    assert sorted(row["n"] for row in read(folder, requested, where=json.dumps(either))) == [0, 29, 29]


@pytest.mark.parametrize(
    ("options", "reported"),
    [
        ({"where": "site = 1"}, "which is not a list of conditions such as"),
        ({"where": "[[1]]"}, "which is not a list of conditions such as"),
        ({"filter": "x"}, "streamgauge-parquet has no option filter; it has path, where, log, maxFilesPer"),
        ({"path": ""}, "needs a path"),
        ({"maxFilesPerTrigger": "0"}, "maxFilesPerTrigger must be an integer ≥ 1, got '0'"),
    ],
)
def test_options_that_are_wrong_are_named(folder: str, options: dict[str, str], reported: str) -> None:
    with pytest.raises(ValueError, match=reported):
        read(**{"path": folder, **options})


def test_a_stream_needs_a_log_and_a_folder_without_files_a_schema(folder: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r'needs \.option\("log", folder\)'):
        ParquetRows({"path": folder}).streamReader(StructType())
    (tmp_path / "none").mkdir()
    with pytest.raises(ValueError, match="name the columns with schema"):
        ParquetRows({"path": str(tmp_path / "none")}).schema()
    assert read(str(tmp_path / "none"), StructType().add("n", LongType())) == []
