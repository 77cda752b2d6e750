"""The windows of a table: each has its own rows, and together they are the table again."""

from __future__ import annotations

import pyarrow as pa

from streamgauge.operators.table.schema import END, START, TIME_TYPE
from streamgauge.queries.views.view import rows_of, windows_of


def table(starts: list[int]) -> pa.Table:
    times = pa.array(starts, pa.int64())
    ends = pa.array([start + 60 for start in starts], pa.int64())
    return pa.table({START: times.view(TIME_TYPE), END: ends.view(TIME_TYPE), "n": range(len(starts))})


def test_each_window_has_its_rows() -> None:
    windows = list(windows_of(3, table([0, 0, 60, 120, 120])))
    assert [(one.partition, one.start, one.rows, one.table["n"].to_pylist()) for one in windows] == [
        (3, 0, 2, [0, 1]),
        (3, 60, 1, [2]),
        (3, 120, 2, [3, 4]),
    ]
    changed = windows[2].with_table(table([120]))
    assert changed.key == windows[2].key and changed.rows == 1 and changed.table["n"].to_pylist() == [0]
    assert not list(windows_of(0, table([])))


def test_windows_side_by_side_are_one_slice() -> None:
    first, second = table([0, 0, 60, 120]), table([180, 240])
    windows = [*windows_of(0, first), *windows_of(0, second)]
    whole = rows_of(windows)
    assert whole["n"].to_pylist() == [0, 1, 2, 3, 0, 1] and whole["n"].num_chunks == 2
    some = rows_of([windows[0], windows[2], windows[1], windows[4]])
    assert some["n"].to_pylist() == [0, 1, 3, 2, 1]
