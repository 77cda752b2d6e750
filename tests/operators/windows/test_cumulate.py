"""Cumulating windows as they are defined, and what may be merged of a table of them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from streamgauge import SketchTable, Stream, StreamTester, count, distinct, merge, query
from streamgauge.operators.definition.definition_diff import differences
from streamgauge.operators.definition.described_stream import described_stream
from streamgauge.operators.table.schema import read_parquet
from streamgauge.operators.table.windows import end_to_end, windows_in
from streamgauge.operators.windows.cumulate import Cumulate, CumulateTable
from streamgauge.operators.windows.window import EARLIEST
from streamgauge.queries.views.merge_cache import MergeCache, Selection
from streamgauge.queries.views.view import windows_of
from streamgauge.sketches.core.protocol import SketchError

BEGIN = 1_767_225_600  # 2026-01-01 00:00 UTC
HOUR, DAY = 3_600, 86_400
ROWS = Stream.from_schema({"at": pl.Int64, "key": pl.String}, time=pl.from_epoch("at"))


@pytest.mark.parametrize(
    ("size", "every", "reason"),
    [
        ("1d", "7m", "windows of 1d aren't a multiple of the step 7m; choose an every="),
        ("1m", "2m", "windows of 1m aren't a multiple of the step 2m"),
        ("1d", "0s", "every= must be longer than '0s'"),
        ("0s", "1s", "a window must be longer than '0s'"),
        ("1w", "1s", "604,800 panes of 1s; choose every="),
    ],
)
def test_lengths_that_cannot_be_are_refused(size: str, every: str, reason: str) -> None:
    with pytest.raises(ValueError, match=f"cumulate: .*{reason}"):
        ROWS.cumulate(size, every=every)


@pytest.mark.parametrize(("size", "every"), [(12, 3), (10, 1), (5, 5)])
def test_panes_know_the_windows_that_they_are_part_of(size: int, every: int) -> None:
    window = Cumulate(size, every)
    everything = [(s, s + n) for s in range(-60, 60) if s % size == 0 for n in range(every, size + 1, every)]
    for time in range(-40, 40):
        ends = [end for start, end in everything if start <= time < end]
        assert list(window.ends_of(window.pane_start(time))) == ends
        assert (window.first_end(time), window.last_end(time)) == (ends[0], ends[-1])
        for reached in range(time - 5, time + 30):
            passed = [end for end in ends if end <= reached]
            assert window.ended_by(time, reached) == (passed[-1] if passed else EARLIEST)
    assert all(window.start_of(end) == start for start, end in everything)
    times = np.arange(-40, 40)
    assert window.first_ends(times).tolist() == [window.first_end(time) for time in times.tolist()]
    assert window.last_ends(times).tolist() == [window.last_end(time) for time in times.tolist()]


def test_a_definition_is_described_read_back_and_compared() -> None:
    stream = ROWS.cumulate("1d", every="1m").agg(n=count())
    hopping = ROWS.hopping("1d", every="1m").agg(n=count())
    assert stream.definition()["window"] == {"window": "cumulate", "size": "1d", "every": "1m"}
    assert described_stream(stream.definition()).window == stream.window
    (change,) = differences(hopping.definition(), stream.definition())
    assert change == "the window changed from hopping 1d 1m to cumulate 1d 1m"
    with pytest.raises(ValueError, match="windows of 1d every 1m already"):
        ROWS.cumulate("1d", every="1m").tumbling("1m")


def given(seconds: np.ndarray, keyed: bool = True, partitions: int = 1) -> SketchTable:
    """The windows of these rows, of keys "a", "b" and "c" in turn."""
    rows = ROWS.group_by("key") if keyed else ROWS
    stream = rows.cumulate("1d", every="1h", max_ahead=None).agg(n=count(), users=distinct("at"))
    tester = StreamTester(stream, partitions=partitions)
    for partition in range(partitions):
        own = [s for s in np.sort(seconds).tolist() if s % partitions == partition]
        tester.feed([{"at": BEGIN + s, "key": "abc"[s % 3]} for s in own], partition)
    return tester.finish().tables()


def up_to(table: pa.Table, second: int) -> pa.Table:
    """The windows that end by a second."""
    ends = query(table)["window_end"].dt.epoch("s") - BEGIN
    return table.filter(pa.array((ends <= second).to_list()))


SECONDS = np.random.default_rng(7).choice(3 * DAY, 900, replace=False)


@pytest.mark.parametrize("partitions", [1, 2])
def test_a_table_holds_the_total_so_far_at_each_step(partitions: int) -> None:
    expected: Counter[tuple[str, int, int]] = Counter()
    for second in SECONDS.tolist():
        for end in range(second - second % HOUR + HOUR, second - second % DAY + DAY + 1, HOUR):
            expected["abc"[second % 3], second - second % DAY, end] += 1
    rows = query(given(SECONDS, partitions=partitions))
    starts, ends = ((rows[f"window_{edge}"].dt.epoch("s") - BEGIN).to_list() for edge in ("start", "end"))
    assert dict(zip(zip(rows["key"], starts, ends), rows["n"])) == expected
    assert [round(users["estimate"]) for users in rows["users"]] == rows["n"].to_list()


def test_windows_of_full_length_roll_up_and_each_row_counts_once(tmp_path: Path) -> None:
    table = given(SECONDS)
    days = merge(table, by=[], every="1d")
    assert days["n"].to_pylist() == np.bincount(SECONDS // DAY).tolist()
    assert merge(table, by=[], every="3d")["n"].to_pylist() == [900]
    # Judged in pieces, as Spark's batches are, and from files.
    pieces = [table.slice(low, 100) for low in range(0, table.num_rows, 100)]
    assert merge(pieces, by=[], every="1d") == days
    table.write(tmp_path / "totals.parquet")
    again = read_parquet(tmp_path / "totals.parquet")
    windows = windows_in(again)
    assert windows == CumulateTable(DAY * 1_000_000, HOUR * 1_000_000)
    assert str(windows) == "windows of up to 1d that grow by 1h"
    assert merge(again, by=[], every="1d") == days
    # A day that isn't over has none.
    begun = up_to(table, 2 * DAY + 5 * HOUR)
    assert merge(begun, by=[], every="1d")["n"].to_pylist() == days["n"].to_pylist()[:2]
    for every in ("1h", "36h"):
        with pytest.raises(SketchError, match="windows of up to 1d that grow by 1h don't fit into"):
            merge(table, every=every)
    with pytest.raises(SketchError, match="overlap"):
        merge(table.to_arrow().replace_schema_metadata(None), every="1d")


def test_a_whole_span_takes_the_latest_of_each_period() -> None:
    table = given(SECONDS)
    assert sum(end_to_end(table, ["key"])["n"].to_pylist()) == 900
    begun = up_to(table, 2 * DAY + 5 * HOUR)
    expected = int((SECONDS < 2 * DAY + 5 * HOUR).sum())
    assert sum(end_to_end(begun, ["key"])["n"].to_pylist()) == expected


@pytest.mark.parametrize("behind", [0, 3])
def test_a_server_adds_up_the_latest_of_each_partition(behind: int) -> None:
    """One partition of the table topic may have closed fewer windows than another."""
    table = query(given(SECONDS))
    hours = (table["window_end"].dt.epoch("s") - BEGIN) // HOUR
    windows, expected = [], 0
    for partition, key in enumerate("abc"):
        until = 60 - behind * partition
        mask = pa.array(((table["key"] == key) & (hours <= until)).to_list())
        windows += windows_of(partition, given(SECONDS).filter(mask).to_arrow())
        expected += sum("abc"[s % 3] == key and s < until * HOUR for s in SECONDS.tolist())
    ordered = sorted(windows, key=lambda window: (window.start, window.end, window.partition))
    schema = windows[0].table.schema
    whole = MergeCache().table(schema, ordered, Selection(("n",), ()), "span")
    assert whole["n"].to_pylist() == [expected]
    days = MergeCache().table(schema, ordered, Selection(("n",), ()), DAY * 1_000_000)
    assert days["n"].to_pylist() == np.bincount(SECONDS // DAY).tolist()[:2]
