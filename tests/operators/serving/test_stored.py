"""Tables in files, served as they are read, and read again when they change."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamgauge.operators.serving.answers import answer
from streamgauge.operators.serving.question import question
from streamgauge.operators.serving.rollups import Rollups
from streamgauge.operators.serving.stored import StoredTable
from streamgauge.operators.table.query import query
from streamgauge.operators.table.schema import to_ipc, write_parquet

from ...waiting import until
from .logs import deltas, expected, rows

TABLES, _ = expected(deltas(rows(seed=2, minutes=6)))


def posts(table: StoredTable) -> int:
    asked = question("rows", {"every": ["span"], "by": ["none"], "columns": ["posts"]})
    return answer(table.view(), asked, Rollups()).rows["posts"].sum()


def test_files_of_both_kinds_are_read_and_read_again(tmp_path: Path) -> None:
    write_parquet(TABLES[0], tmp_path / "one.parquet")
    table = StoredTable("posts", tmp_path, look=0.02)
    told: list[int] = []
    end = table.watch(lambda: told.append(1))
    try:
        first = query(TABLES[0])["posts"].sum()
        assert posts(table) == first and table.view().final_us > table.view().windows[-1].end
        (tmp_path / "two.arrow").write_bytes(to_ipc(TABLES[1]))
        until(lambda: posts(table) == first + query(TABLES[1])["posts"].sum())
        (tmp_path / "two.arrow").write_bytes(b"junk")
        until(lambda: table.view().stale is not None)
        assert "two.arrow" in table.view().stale.why and posts(table) > first
        (tmp_path / "two.arrow").unlink()
        until(lambda: table.view().stale is None)
        assert posts(table) == first and len(told) >= 3
    finally:
        end()
        table.close()


def test_what_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no file in this folder"):
        StoredTable("posts", tmp_path)
