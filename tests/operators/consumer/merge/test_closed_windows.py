"""Closed windows: in memory within a budget, on disk beyond, each once."""

from __future__ import annotations

import resource

import numpy as np
import pyarrow as pa
import pytest

from streamgauge.operators.consumer.merge.closed_windows import ClosedWindows

SCHEMA = pa.schema([("window_start", pa.int64()), ("n", pa.int64())], metadata={b"streamgauge": b"{}"})


def window(start: int, value: int = 0, rows: int = 1_000) -> pa.Table:
    return pa.table({"window_start": np.full(rows, start), "n": np.full(rows, value)}, schema=SCHEMA)


def test_windows_beyond_the_budget_lie_on_disk_and_read_as_they_were(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    most = 4 * window(0).nbytes
    closed = ClosedWindows(SCHEMA, None, memory_bytes=most)
    before = pa.total_allocated_bytes()
    for start in range(200):
        closed.add(0, window(start, start))
        assert closed.memory_bytes <= most
    assert pa.total_allocated_bytes() - before < 2 * most
    table = closed.table()
    assert table.schema.metadata.keys() == SCHEMA.metadata.keys() and table.num_rows == 200_000
    assert np.array_equal(table.column("n").to_numpy(), np.repeat(np.arange(200), 1_000))
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


def test_a_window_that_is_told_again_or_still_fills_counts_once() -> None:
    closed = ClosedWindows(SCHEMA, None, memory_bytes=100)
    for partition, value in ((0, 1), (1, 2), (0, 3)):
        closed.add(partition, window(7, value, rows=1))
    assert closed.table().column("n").to_pylist() == [3, 2]
    filling = [(0, window(7, 4, rows=1)), (1, window(6, 5, rows=1))]
    assert closed.table(filling).column("n").to_pylist() == [5, 4, 2]
