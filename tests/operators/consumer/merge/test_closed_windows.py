"""Closed windows: in memory within a budget, on disk beyond, each once."""

from __future__ import annotations

import resource

import numpy as np
import pyarrow as pa
import pytest

from streamgauge.operators.consumer.merge.closed_windows import ClosedWindows
from streamgauge.operators.table.window_groups import WindowGroups

TYPES = {"window_start": pa.int64(), "window_end": pa.int64(), "n": pa.int64()}
SCHEMA = pa.schema(TYPES, metadata={b"streamgauge": b"{}"})


def window(start: int, value: int = 0, rows: int = 1_000) -> WindowGroups:
    return WindowGroups.of_table(table(start, value, rows))


def table(start: int, value: int, rows: int = 1) -> pa.Table:
    columns = {"window_start": start, "window_end": start + 1, "n": value}
    return pa.table({name: np.full(rows, number) for name, number in columns.items()}, schema=SCHEMA)


def test_windows_beyond_the_budget_lie_on_disk_and_read_as_they_were(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    most = 4 * window(0).nbytes
    closed = ClosedWindows(SCHEMA, None, memory_bytes=most)
    before = pa.total_allocated_bytes()
    for start in range(200):
        closed.add(0, window(start, start))
        assert closed.memory_bytes <= most
    assert pa.total_allocated_bytes() - before < 2 * most
    whole = closed.table()
    assert whole.schema.metadata.keys() == SCHEMA.metadata.keys() and whole.num_rows == 200_000
    assert np.array_equal(whole.column("n").to_numpy(), np.repeat(np.arange(200), 1_000))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("room", [0, 1_000])
def test_a_full_disk_is_named_with_what_helps(tmp_path, monkeypatch, room: int) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, before[1]))
    try:
        with pytest.raises(OSError, match=r"windows .*File too large.*TMPDIR"):
            ClosedWindows(SCHEMA, None, memory_bytes=1).add(0, window(0))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert list(tmp_path.iterdir()) == []


def test_a_run_without_an_end_keeps_the_latest_by_number_and_by_bytes() -> None:
    size = window(0).nbytes
    closed = ClosedWindows(SCHEMA, 5, memory_bytes=2 * size)
    few = ClosedWindows(SCHEMA, 1_000, memory_bytes=2 * size, kept_bytes=4 * size)
    for start in range(20):
        closed.add(0, window(start))
        few.add(0, window(start))
    assert set(closed.table().column("window_start").to_pylist()) == set(range(15, 20))
    assert set(few.table().column("window_start").to_pylist()) == set(range(16, 20))


def test_a_window_that_is_emitted_again_or_still_fills_counts_once() -> None:
    closed = ClosedWindows(SCHEMA, None, memory_bytes=100)
    for partition, value in ((0, 1), (1, 2), (0, 3)):
        closed.add(partition, window(7, value, rows=1))
    assert closed.table().column("n").to_pylist() == [3, 2]
    filling = [(0, table(7, 4)), (1, table(6, 5))]
    assert closed.table(filling).column("n").to_pylist() == [5, 4, 2]


def several(*starts: int, value: int = 0) -> WindowGroups:
    return WindowGroups.of_table(pa.concat_tables([table(start, value) for start in starts]))


def test_windows_that_closed_together_are_dropped_and_replaced_one_by_one() -> None:
    closed = ClosedWindows(SCHEMA, 4)
    closed.add(0, several(*range(10), value=1))
    assert closed.table().column("window_start").to_pylist() == [6, 7, 8, 9]
    closed.add(0, several(10, 11, value=2))
    assert closed.table().column("window_start").to_pylist() == [8, 9, 10, 11]
    closed.add(0, several(9, 10, value=3))
    assert closed.table().column("n").to_pylist() == [1, 3, 3, 2]
    closed.add(0, several(12))
    assert set(closed.table().column("window_start").to_pylist()) <= {8, 9, 10, 11, 12}
    assert closed.table().num_rows == 4


def test_windows_that_closed_together_are_ordered_by_time_across_partitions(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    for memory_bytes in (1, 1_000_000):
        closed = ClosedWindows(SCHEMA, None, memory_bytes=memory_bytes)
        closed.add(0, several(1, 2, 3, value=1))
        closed.add(1, several(2, 3, 4, value=2))
        closed.add(0, window(2, 3, rows=1))
        assert closed.table().column("n").to_pylist() == [1, 3, 2, 1, 2, 2]
        assert closed.table([(1, table(3, 4))]).column("n").to_pylist() == [1, 3, 2, 1, 4, 2]
        assert closed.memory_bytes == (0 if memory_bytes == 1 else 6 * window(0, rows=1).nbytes)
