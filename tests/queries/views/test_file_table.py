"""Tables in files, served as they are read, and read again when they change."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import polars as pl
import pyarrow as pa
import pytest

from streamgauge import SketchTable, Stream, StreamTester
from streamgauge.operators.definition.aggregates import count, distinct_set
from streamgauge.operators.table.query import query
from streamgauge.operators.table.schema import aggregates_of, table_schema, to_ipc, write_parquet
from streamgauge.operators.windows.table import AllTime
from streamgauge.queries.answers.answers import answer
from streamgauge.queries.question.question import BadQuestion, question
from streamgauge.queries.views.file_table import FileTable
from streamgauge.queries.views.merge_cache import MergeCache

from ...waiting import until
from ..logs import deltas, expected, rows


@cache
def tables() -> list[pa.Table]:
    """Closed windows, as a merger emits them."""
    return expected(deltas(rows(seed=2, minutes=6)))[0]


def posts(table: FileTable) -> int:
    requested = question("rows", {"every": ["span"], "by": ["none"], "columns": ["posts"]})
    return answer(table.view(), requested, MergeCache()).rows["posts"].sum()


def test_files_of_both_kinds_are_read_and_read_again(tmp_path: Path) -> None:
    write_parquet(tables()[0], tmp_path / "one.parquet")
    table = FileTable("posts", tmp_path, look=0.02)
    collected: list[int] = []
    end = table.watch(lambda: collected.append(1))
    try:
        first = query(tables()[0])["posts"].sum()
        assert posts(table) == first and table.view().final_us > table.view().windows[-1].end
        (tmp_path / "two.arrow").write_bytes(to_ipc(tables()[1]))
        until(lambda: posts(table) == first + query(tables()[1])["posts"].sum())
        (tmp_path / "two.arrow").write_bytes(b"junk")
        until(lambda: table.view().stale is not None)
        assert "two.arrow" in table.view().stale.why and posts(table) > first
        (tmp_path / "two.arrow").unlink()
        until(lambda: table.view().stale is None)
        assert posts(table) == first and len(collected) >= 3
    finally:
        end()
        table.close()


def test_what_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no file in this folder"):
        FileTable("posts", tmp_path)


def timeless(tmp_path: Path) -> FileTable:
    """Posts by language without windows, and who wrote them."""
    rows = Stream.from_schema({"at": pl.Int64, "lang": pl.String, "user": pl.Int64}, time=pl.from_epoch("at"))
    tester = StreamTester(rows.group_by("lang").tumbling("1h").agg(posts=count(), users=distinct_set("user")))
    tester.feed([{"at": 0, "lang": "en" if user % 3 else "de", "user": user} for user in range(30)])
    hour = tester.finish().tables().to_arrow()
    whole = table_schema({"lang": pa.string()}, aggregates_of(hour.schema), AllTime())
    table = SketchTable(
        hour.drop_columns(["window_start", "window_end"]).replace_schema_metadata(whole.metadata)
    )
    table.write(tmp_path / "posts.parquet")
    return FileTable("posts", tmp_path / "posts.parquet", look=None)


@pytest.mark.parametrize(
    ("kind", "given", "columns"),
    [
        ("rows", {}, ["lang", "posts", "users"]),
        ("rows", {"order": ["-posts"], "limit": ["1"]}, ["lang", "posts", "users"]),
        ("rows", {"order": ["-posts"], "limit": ["1"], "every": ["span"]}, ["lang", "posts", "users"]),
        ("rows", {"every": ["span"], "by": ["none"], "columns": ["posts"]}, ["posts"]),
        ("distinct", {"by": ["lang"]}, ["lang", "estimate", "lower", "upper"]),
        (
            "sets",
            {"column": ["users"], "other": ["users"], "by": ["lang"]},
            ["lang", "set", "estimate", "lower", "upper"],
        ),
    ],
)
def test_a_table_without_windows_is_answered_without_any(
    tmp_path: Path, kind: str, given: dict[str, list[str]], columns: list[str]
) -> None:
    result = answer(timeless(tmp_path).view(), question(kind, given), MergeCache())
    assert result.rows.columns == columns and result.rows.height
    about = result.about()
    assert (about["from"], about["to"], about["windows"], about["final"]) == (None, None, 0, True)


def test_a_table_without_windows_has_none_to_choose(tmp_path: Path) -> None:
    view = timeless(tmp_path).view()
    for given in ({"last": ["1h"]}, {"from": ["2026-01-01"]}, {"to": ["2026-01-01"]}):
        with pytest.raises(
            BadQuestion, match="posts has no windows, so from=, to= and last= can't choose any"
        ):
            answer(view, question("rows", given), MergeCache())
    with pytest.raises(BadQuestion, match="order: posts has no windows"):
        answer(view, question("rows", {"order": ["window_start"]}), MergeCache())
    with pytest.raises(BadQuestion, match="one window for all rows"):
        answer(view, question("rows", {"every": ["1h"]}), MergeCache())
    assert list(answer(view, question("rows", {"key.lang": ["en"]}), MergeCache()).rows["posts"]) == [20]
