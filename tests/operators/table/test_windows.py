"""Windows that overlap hold rows twice: what is rolled up counts each row once, or is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from streamgauge.operators.definition.aggregates import count, top_k
from streamgauge.operators.table.schema import (
    from_ipc,
    read_parquet,
    table_schema,
    to_ipc,
    write_parquet,
)
from streamgauge.operators.table.sketch_table import merge
from streamgauge.operators.table.windows import end_to_end, windows_in
from streamgauge.operators.windows.hopping import regular_windows
from streamgauge.operators.windows.kinds import table_windows
from streamgauge.operators.windows.table import AllTime, TableWindows
from streamgauge.sketches.core.protocol import SketchError

MINUTE = 60_000_000
HOUR = 60 * MINUTE
BEGIN = 1_767_225_600_000_000  # 2026-01-01 00:00 UTC


def table(windows: TableWindows, seconds: np.ndarray, table: bool = True) -> pa.Table:
    """The rows counted in their windows, of keys "a" and "b" in turn."""
    times = BEGIN + (seconds * 1_000_000).astype(np.int64)
    starts, keys = [], []
    for number, time in enumerate(times.tolist()):
        start = time - (time - windows.offset_us) % windows.every_us
        while start > time - windows.size_us:
            starts.append(start)
            keys.append("ab"[number % 2])
            start -= windows.every_us
    result, counts = np.unique(np.array([starts, [ord(key) for key in keys]]), axis=1, return_counts=True)
    schema = table_schema({"key": pa.string()}, {"rows": count()}, windows if table else None)
    columns = [
        pa.array(result[0]).view(schema.field(0).type),
        pa.array(result[0] + windows.size_us).view(schema.field(1).type),
        pa.array([chr(key) for key in result[1]]),
        pa.array(counts),
    ]
    return pa.Table.from_arrays([*columns], schema=schema)


ROWS = np.arange(0, 6_000) * 1.1
SLIDING = regular_windows(2 * MINUTE, MINUTE)


def total(result: pa.Table) -> int:
    return sum(result.column("rows").to_pylist())


@pytest.mark.parametrize(
    "windows",
    [
        regular_windows(MINUTE),
        SLIDING,
        regular_windows(5 * MINUTE, MINUTE),
        regular_windows(10 * MINUTE, 5 * MINUTE, 35 * MINUTE),
        regular_windows(HOUR, 20 * MINUTE),
    ],
    ids=str,
)
def test_each_row_counts_once_in_the_hour(windows: TableWindows) -> None:
    result = table(windows, ROWS)
    hours = merge(result, every="1h")
    assert hours.column("rows").to_pylist() == table(regular_windows(HOUR), ROWS).column("rows").to_pylist()
    assert windows_in(hours) == regular_windows(HOUR)
    days = merge([hours, merge(result, every="1h")], by=[], every="1d")
    assert days.column("rows").to_pylist() == [2 * len(ROWS)]


def test_windows_stay_what_they_are_where_nothing_is_rolled_up() -> None:
    result = table(SLIDING, ROWS)
    apart = merge([result.slice(0, 7), result.slice(7)], by=[])
    assert windows_in(apart) == SLIDING and total(apart) == 2 * len(ROWS)


@pytest.mark.parametrize(
    ("windows", "every", "reason"),
    [
        (
            SLIDING,
            "3m",
            "windows of 2m every 1m don't fit into windows of 3m; choose a multiple of their length",
        ),
        (regular_windows(3 * MINUTE, 2 * MINUTE), "1h", "every 2m overlap, and none of them lie end to end"),
        (regular_windows(2 * MINUTE, MINUTE, 10), "1h", "1m from 10us on overlap, and none"),
        (
            regular_windows(MINUTE, MINUTE, 10),
            "1h",
            "windows of 1m from 10us on don't fit into windows of 1h",
        ),
        (regular_windows(MINUTE), "90s", "windows of 1m don't fit into windows of 1m30s"),
    ],
)
def test_windows_that_cannot_be_rolled_up_are_refused(windows: TableWindows, every: str, reason: str) -> None:
    with pytest.raises(SketchError, match=reason):
        merge(table(windows, ROWS), every=every)
    with pytest.raises(SketchError, match="one window for all rows"):
        merge(table(AllTime(), np.arange(3)), every="1h")


def test_a_table_that_does_not_say_is_judged_by_its_rows(tmp_path: Path) -> None:
    minutes = table(regular_windows(MINUTE), ROWS, table=False)
    assert total(merge(minutes, every="1h")) == len(ROWS)
    sliding = table(SLIDING, ROWS, table=False)
    with pytest.raises(SketchError, match="of one group overlap"):
        merge(sliding, every="1h")
    # Files of one table; none shows it alone.
    even = [start.minute % 2 == 0 for start in sliding.column("window_start").to_pylist()]
    odd = pa.array([not one for one in even])
    with pytest.raises(SketchError, match="overlap"):
        merge([sliding.filter(pa.array(even)), sliding.filter(odd)], every="1h")
    # Metadata that says of minutes what is not so of the rows, as where Spark united two tables.
    hours = table(regular_windows(HOUR), ROWS)
    mixed = pa.concat_tables([table(regular_windows(MINUTE), ROWS), hours])
    with pytest.raises(SketchError, match="overlap"):
        merge(mixed, every="1d")
    # Given apart, they are two tables of other rows.
    assert total(merge([minutes, hours], every="1d")) == 2 * len(ROWS)
    with pytest.raises(SketchError, match="overlap"):
        merge(merge([minutes, hours]), every="1d")


def test_the_windows_are_known_wherever_the_table_is_kept(tmp_path: Path) -> None:
    result = table(SLIDING, ROWS)
    write_parquet(result, tmp_path / "sliding.parquet")
    for again in (read_parquet(tmp_path / "sliding.parquet"), from_ipc(to_ipc(result))):
        assert windows_in(again) == SLIDING
        assert total(merge(again, every="1h")) == len(ROWS)


def test_the_whole_span_of_a_table_holds_each_row_once() -> None:
    seconds = np.arange(0, 6_000)
    assert total(end_to_end(table(regular_windows(MINUTE), seconds), ["key"])) == 6_000
    # From 23:59 to 01:41.
    assert total(end_to_end(table(SLIDING, seconds), ["key"])) == 6_000
    with pytest.raises(SketchError, match="end to end up to 2026-01-01 01:42:00; choose a span"):
        end_to_end(table(SLIDING, np.arange(0, 6_060)), ["key"])
    with pytest.raises(SketchError, match="overlap"):
        end_to_end(table(SLIDING, seconds, table=False), ["key"])


def test_a_definition_that_is_not_one_is_refused() -> None:
    schema = table_schema({}, {"tags": top_k("tag").typed(pa.string())}, SLIDING)
    assert table_windows(AllTime().definition()) == AllTime()
    for wrong in ({}, {"kind": "sliding", "size": "1m"}, 7, {"kind": "x", "size": "a", "every": "1m"}):
        with pytest.raises(SketchError, match="windows"):
            table_windows(wrong)
    assert windows_in(schema.empty_table()) == SLIDING
