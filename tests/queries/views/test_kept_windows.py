"""A running group's table with its closed windows in files: each window and group counts once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

import streamgauge as sg
from streamgauge.operators.table.query import query
from streamgauge.queries.views.file_table import final_view
from streamgauge.queries.views.kept_windows import TableWithKept, with_kept
from streamgauge.queries.views.view import Gap, TableView, rows_of
from streamgauge.sketches.core.protocol import SketchError

START = 1_767_225_600
ROWS = sg.Stream.from_schema({"at": pl.Int64, "key": pl.String}, time=pl.from_epoch("at"))


def counted(stream: Any, seconds: list[int], folder: Path | None = None) -> pa.Table:
    """The table of rows at these seconds, of two keys in turn, which a sink writes to the folder."""
    sinks = [] if folder is None else [sg.SketchesToParquet(folder)]
    tester = sg.StreamTester(stream.agg(n=sg.count()), sinks=sinks)
    tester.feed([{"at": START + second, "key": "ab"[second % 2]} for second in seconds])
    return tester.finish().tables().to_arrow()


def numbers(view: TableView) -> dict[tuple[int, str], int]:
    rows = query(rows_of(view.windows))
    starts = rows["window_start"].dt.epoch("s") - START
    named = dict(zip(zip(starts.to_list(), rows["key"].to_list()), rows["n"].to_list()))
    assert len(named) == len(rows)
    return named


@pytest.mark.parametrize("windows", ["tumbling", "session"])
def test_a_window_is_there_once_wherever_it_is(windows: str, tmp_path: Path) -> None:
    keyed = ROWS.group_by("key")
    stream = keyed.tumbling("10s") if windows == "tumbling" else keyed.session("5s")
    counted(stream, [0, 1, 12, 13, 24, 80], tmp_path)
    live = final_view("t", counted(stream, [24, 24, 37, 80, 81, 120]))
    view = with_kept(replace(live, gaps=(Gap(-1, (START + 15) * 10**6, "closed"),)), tmp_path)
    starts = [0, 10, 20, 30, 80, 120] if windows == "tumbling" else [0, 1, 12, 13, 24, 37, 80, 81, 120]
    assert sorted({start for start, _ in numbers(view)}) == starts
    assert numbers(view)[20 if windows == "tumbling" else 24, "a"] == 2
    assert [window.start for window in view.windows] == sorted(window.start for window in view.windows)
    assert [gap.until for gap in view.gaps] == [START * 10**6]


def test_a_folder_that_has_no_window_more_adds_none(tmp_path: Path) -> None:
    stream = ROWS.group_by("key").tumbling("10s")
    counted(stream, [0, 1], tmp_path)
    live = final_view("t", counted(stream, [0, 1, 13]))
    assert numbers(with_kept(live, tmp_path)) == numbers(live)


def test_a_folder_without_files_adds_nothing_and_one_of_another_definition_is_refused(tmp_path: Path) -> None:
    live = final_view("t", counted(ROWS.group_by("key").tumbling("10s"), [1]))
    assert with_kept(live, tmp_path / "later") is live and with_kept(live, tmp_path) is live
    counted(ROWS.group_by("key").tumbling("20s"), [1], tmp_path)
    with pytest.raises(SketchError, match=r"t has windows of 10s, and the files in .* have windows of 20s"):
        with_kept(live, tmp_path)


def test_files_that_end_before_a_gap_does_leave_the_rest_of_it(tmp_path: Path) -> None:
    stream = ROWS.group_by("key").tumbling("10s")
    counted(stream, [0, 11], tmp_path)
    live = final_view("t", counted(stream, [100]))
    view = with_kept(replace(live, gaps=(Gap(START * 10**6, (START + 90) * 10**6, "closed"),)), tmp_path)
    assert [(gap.since, gap.until) for gap in view.gaps] == [((START + 20) * 10**6, (START + 90) * 10**6)]


def test_windows_are_deleted_by_their_end_once_they_are_older_than_is_kept(tmp_path: Path) -> None:
    day, stream = 86_400, ROWS.group_by("key").tumbling("10s", max_ahead=None).agg(n=sg.count())
    other = tmp_path / "window_date=2026-01-01" / "another.parquet"
    other.parent.mkdir()
    other.write_bytes(b"")
    tester = sg.StreamTester(stream, sinks=[sg.SketchesToParquet(tmp_path, "2d")])
    tester.feed([{"at": START + second, "key": "a"} for second in (0, day - 10, day, 3 * day - 10)])
    tester.finish()
    left = sorted(file.name[:15] for file in tmp_path.rglob("*.parquet") if file != other)
    assert left == ["20260102T000000", "20260103T235950"] and other.exists()
    with pytest.raises(ValueError, match="SketchesToParquet: keep must be longer than '0s'"):
        sg.SketchesToParquet(tmp_path, "0s")


def test_a_served_table_has_the_windows_of_files_that_come_and_go(tmp_path: Path) -> None:
    keyed = ROWS.group_by("key").tumbling("10s")
    live = WindowsOf(final_view("t", counted(keyed, [24])))
    table = TableWithKept(live, tmp_path / "closed", 0)
    assert numbers(table.view()) == {(20, "a"): 1}
    counted(keyed, [0, 1, 24, 24], tmp_path / "closed")
    assert numbers(table.view()) == {(0, "a"): 1, (0, "b"): 1, (20, "a"): 1}
    assert table.view().version == table.view().version
    live.now = final_view("t", counted(keyed, [37]))
    assert numbers(table.view()) == {(0, "a"): 1, (0, "b"): 1, (20, "a"): 2, (30, "b"): 1}
    for file in (tmp_path / "closed").rglob("*T000000Z-*.parquet"):
        file.unlink()
    assert numbers(table.view()) == {(20, "a"): 2, (30, "b"): 1}
    (tmp_path / "closed" / "x.parquet").write_bytes(b"no table")
    view = table.view()
    assert view.stale is not None and "x.parquet" in view.stale.why
    assert numbers(view) == {(20, "a"): 2, (30, "b"): 1}


class WindowsOf:
    """A table that is a view."""

    name = "t"

    def __init__(self, now: TableView) -> None:
        self.now = now

    def view(self) -> TableView:
        return self.now

    def describe(self) -> dict[str, Any]:
        return {}

    def watch(self, changed: Any) -> Any:
        return None

    def close(self) -> None:
        pass
