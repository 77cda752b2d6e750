"""Closed windows in files: days put together, windows that come again, retention, and object stores."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import fsspec
import polars as pl
import pyarrow as pa
import pytest

import streamgauge as sg
from streamgauge.apps.tables.request import answered
from streamgauge.operators.sinks import sketches_to_parquet
from streamgauge.operators.sinks.sink import ClosedWindow, Origin
from streamgauge.operators.table import day_file
from streamgauge.operators.table.stored_files import files_below, stored_at
from streamgauge.operators.table.window_groups import WindowGroups
from streamgauge.queries.views.file_table import FileTable
from streamgauge.queries.views.kept_windows import with_kept

START = 1_767_225_600
DAY = 86_400
ROWS = sg.Stream.from_schema({"at": pl.Int64, "key": pl.String}, time=pl.from_epoch("at"))
HOURS = ROWS.group_by("key").tumbling("6h").agg(n=sg.count())
SESSIONS = ROWS.group_by("key").session("1h").agg(n=sg.count())
_NUMBERS = itertools.count()


@pytest.fixture(params=["folder", "memory"])
def folder(request: Any, tmp_path: Path) -> Iterator[str]:
    """A folder of this machine, and one of an object store."""
    if request.param == "folder":
        yield str(tmp_path / "table")
        return
    url = f"memory://kept-{next(_NUMBERS)}"
    yield url
    memory = fsspec.filesystem("memory")
    if memory.exists(url):
        memory.rm(url, recursive=True)


def window_of(stream: sg.Stream, seconds: list[int], final: bool = True, partition: int = 0) -> ClosedWindow:
    """A window that closes, with these rows; each second's key is a or b in turn."""
    tester = sg.StreamTester(stream)
    tester.advance(max(seconds))  # rows far ahead of the clock would close no window
    tester.feed([{"at": START + second, "key": "ab"[second % 2]} for second in seconds])
    groups = WindowGroups.of_table(tester.finish().tables().to_arrow())
    return ClosedWindow(groups, partition, final, Origin.of(stream, "group", named=True))


def names_in(folder: str) -> list[str]:
    """The files by day, each as its kind: a window's, or the day's."""
    files = files_below(stored_at(folder))
    return [
        f"{file.parent.name[-2:]} {'day' if file.name.startswith('day-') else 'window'}" for file in files
    ]


def numbers(folder: str) -> dict[tuple[float, str], int]:
    """The count of each window, by the days since the start, and key."""
    rows = sg.read_table(folder).answers()
    days = (rows["window_start"].dt.epoch("s") - START) / DAY
    named = dict(zip(zip(days.to_list(), rows["key"].to_list()), rows["n"].to_list()))
    assert len(named) == len(rows)
    return named


def test_days_that_are_over_become_one_file_each(folder: str) -> None:
    sink = sg.SketchesToParquet(folder, compacted=True)
    for hour in range(0, 60, 6):
        for partition in (0, 1):
            sink.write(window_of(HOURS, [hour * 3600 + partition], partition=partition))
    assert names_in(folder) == ["01 day"] * 2 + ["02 day"] * 2 + ["03 window"] * 4
    assert numbers(folder) == {(hour / 24, key): 1 for hour in range(0, 60, 6) for key in "ab"}


def test_many_files_of_one_day_become_one(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sketches_to_parquet, "_MANY", 3)
    minutes = ROWS.group_by("key").tumbling("1m").agg(n=sg.count())
    sink = sg.SketchesToParquet(folder, compacted=True)
    for minute in range(8):
        sink.write(window_of(minutes, [60 * minute]))
    assert names_in(folder) == ["01 window"] * 2 + ["01 day"]
    assert len(numbers(folder)) == 8


def test_a_window_that_comes_again_replaces_its_rows_in_the_day_s_file(folder: str) -> None:
    for _ in range(2):  # the second run begins before what the first one wrote
        sink = sg.SketchesToParquet(folder, compacted=True)
        for hour in range(0, 36, 6):
            sink.write(window_of(HOURS, [hour * 3600, hour * 3600 + 1], final=False))
        sink.write(window_of(HOURS, [0, 1, 2, 4], final=True))
        assert names_in(folder)[0] == "01 day" and "01 window" not in names_in(folder)
        assert numbers(folder)[0.0, "a"] == 3 and numbers(folder)[0.25, "a"] == 1
        assert len(numbers(folder)) == 12


def test_a_sink_without_compaction_replaces_rows_of_a_day_s_file_as_well(folder: str) -> None:
    for compacted in (True, False):
        sink = sg.SketchesToParquet(folder, compacted=compacted)
        for hour in (0, 6, 24):
            sink.write(window_of(HOURS, [hour * 3600]))
    assert names_in(folder) == ["01 day", "02 window"] and set(numbers(folder).values()) == {1}


def test_sessions_of_a_day_come_once(folder: str) -> None:
    for _ in range(2):
        sink = sg.SketchesToParquet(folder, compacted=True)
        for second in (0, 7_200, 14_400, DAY, DAY + 7_200):
            sink.write(window_of(SESSIONS, [second]))
        sink.write(window_of(SESSIONS, [3 * DAY], final=False))
        assert names_in(folder) == ["01 day", "02 window", "02 window"]
        assert len(numbers(folder)) == 5


def test_files_that_a_crash_left_beside_the_day_s_count_once(
    folder: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def crash(file: Any) -> None:
        raise KeyboardInterrupt

    sink = sg.SketchesToParquet(folder, compacted=True)
    windows = [window_of(HOURS, [hour * 3600]) for hour in (0, 6, 12, 24)]
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(day_file, "delete", crash)
        for window in windows:
            sink.write(window)
    assert names_in(folder) == ["01 window"] * 3 + ["01 day", "02 window"]
    assert len(numbers(folder)) == 4 and len(FileTable("t", folder, look=None).view().windows) == 4
    sg.SketchesToParquet(folder, compacted=True).write(windows[-1])
    assert names_in(folder) == ["01 day", "02 window"] and len(numbers(folder)) == 4


class _Crash(BaseException):
    """Nothing catches it, like a kill."""


class _Operations:
    """The file operations of a run: it ends before, within or after one of them, as by a kill."""

    def __init__(self, patched: pytest.MonkeyPatch, last: int) -> None:
        self.left = last
        whole, gone = day_file.write_whole, day_file.delete
        for module in (sketches_to_parquet, day_file):
            patched.setattr(module, "write_whole", lambda file, write: self._written(whole, file, write))
            patched.setattr(module, "delete", lambda file: self._deleted(gone, file))

    def _step(self) -> None:
        self.left -= 1
        if self.left == 0:
            raise _Crash

    def _written(self, whole: Any, file: Any, write: Any) -> None:
        def unfinished(to: Any) -> None:
            write(to)
            self._step()

        self._step()
        whole(file, unfinished)
        self._step()

    def _deleted(self, gone: Any, file: Any) -> None:
        self._step()
        gone(file)
        self._step()


@pytest.mark.slow
@pytest.mark.parametrize("place", ["memory", pytest.param("folder", marks=pytest.mark.soak)])
def test_a_kill_at_any_file_operation_loses_and_doubles_no_window(
    place: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sketches_to_parquet, "_MANY", 3)
    hours = [0, 6, 12, 18, 24, 30, 96]  # 0 to 18 are deleted by `keep` in the end
    windows = [window_of(HOURS, [hour * 3600]) for hour in hours]
    kills = 0
    for last in itertools.count(1):
        for from_start in (False, True):
            name = f"killed-{next(_NUMBERS)}"
            folder = f"memory://{name}" if place == "memory" else str(tmp_path / name)
            stored = 0
            with monkeypatch.context() as patched:
                operations = _Operations(patched, last)
                with suppress(_Crash):
                    sink = sg.SketchesToParquet(folder, keep="78h", compacted=True)
                    for window in windows:
                        sink.write(window)
                        stored += 1
            if operations.left > 0:
                assert kills > 30
                return
            kills += 1
            whole = {(hour / 24, "a"): 1 for hour in hours}
            # The window that was being written, the next one, may be there and may be missing.
            sure = set(list(whole)[4 if stored == len(hours) - 1 else 0 : stored])
            there = numbers(folder) if files_below(stored_at(folder)) else {}
            assert set(there.values()) <= {1} and sure <= there.keys() <= set(list(whole)[: stored + 1])
            resumed = sg.SketchesToParquet(folder, keep="78h", compacted=True)
            for window in windows[0 if from_start else stored :]:
                resumed.write(window)
            assert numbers(folder) == dict(list(whole.items())[4:]), (last, from_start)


def test_windows_that_ended_long_ago_are_deleted(folder: str) -> None:
    for compacted in (False, True):
        sink = sg.SketchesToParquet(folder, keep="2d", compacted=compacted)
        for day in range(6):
            for hour in (0, 6):
                sink.write(window_of(HOURS, [day * DAY + hour * 3600]))
        assert {int(day) for day, _ in numbers(folder)} == {3, 4, 5}


def test_other_groups_keep_their_files(folder: str) -> None:
    mine, other = window_of(HOURS, [0]), window_of(HOURS, [0])
    other = replace(other, origin=Origin.of(HOURS, "other", named=True))
    sink = sg.SketchesToParquet(folder, keep="1d", compacted=True)
    for window in (mine, other, window_of(HOURS, [4 * DAY])):
        sink.write(window)
    assert names_in(folder) == ["01 window", "05 window"]
    assert other.origin.digest in files_below(stored_at(folder))[0].name


def test_compact_accepts_a_folder_whose_days_a_run_has_put_together(tmp_path: Path) -> None:
    sink = sg.SketchesToParquet(tmp_path / "table", compacted=True)
    sink.write(window_of(HOURS, [0]))
    sink.write(window_of(HOURS, [6 * 3600]))
    sg.compact(tmp_path / "table", tmp_path / "large")
    sink.write(window_of(HOURS, [DAY]))
    assert names_in(str(tmp_path / "table")) == ["01 day", "02 window"]
    sg.compact(tmp_path / "table", tmp_path / "large")
    assert numbers(str(tmp_path / "large")) == numbers(str(tmp_path / "table"))


def test_a_bucket_holds_a_table(s3: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", s3["endpoint_url"])
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", s3["key"])
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", s3["secret"])
    folder = "s3://streams/kept"
    sink = sg.SketchesToParquet(folder, keep="30d", compacted=True)
    for hour in range(0, 30, 6):
        sink.write(window_of(HOURS, [hour * 3600]))
    assert names_in(folder) == ["01 day", "02 window"] and len(numbers(folder)) == 5
    assert len(sg.read_table(folder, keys={"key": "a"}).answers()) == 5
    view = FileTable("t", folder, look=None).view()
    assert len(with_kept(view, folder).windows) == 5
    assert len(answered(folder, "rows", {}, None).rows) == 5
    rows = sg.sql(f"CREATE TABLE t WITH (SKETCHES='{folder}'); SELECT key, COUNT(*) AS n FROM t GROUP BY key")
    assert rows.to_dicts() == [{"key": "a", "n": 5}]
    with pytest.raises(FileNotFoundError, match="no such file or folder"):
        sg.read_table("s3://streams/nothing")


def test_a_store_without_a_filesystem_is_refused() -> None:
    with pytest.raises(
        ValueError, match=r"SketchesToParquet: nowhere://table: there is no filesystem for nowhere://"
    ):
        sg.SketchesToParquet("nowhere://table")


def test_a_store_that_fails_is_an_os_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise pa.ArrowException("no route")

    monkeypatch.setattr(type(fsspec.filesystem("memory")), "pipe_file", broken)
    with pytest.raises(OSError, match=r"memory://broken/.*: ArrowException: no route"):
        sg.SketchesToParquet("memory://broken").write(window_of(HOURS, [0]))
