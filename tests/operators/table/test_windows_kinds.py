"""What may be merged of overlapping, trailing and session windows as a run gives them out."""

from __future__ import annotations

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from streamgauge.operators.definition.aggregates import count
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.table.schema import read_parquet
from streamgauge.operators.table.sketch_table import SketchTable, merge
from streamgauge.operators.table.windows import end_to_end, not_covered, windows_in
from streamgauge.operators.testing import StreamTester
from streamgauge.sketches.core.protocol import SketchError

BEGIN = 1_767_225_600
ROWS = Stream.from_schema({"at": pl.Int64, "key": pl.String}, time=pl.from_epoch("at")).group_by("key")


def given(stream: Stream, seconds: np.ndarray) -> SketchTable:
    tester = StreamTester(stream.agg(n=count()))
    tester.feed([{"at": BEGIN + int(s), "key": "ab"[int(s) % 2]} for s in seconds])
    return tester.finish().tables()


def total(table: pa.Table) -> int:
    return sum(table.column("n").to_pylist())


def test_hopping_windows_roll_up_with_each_row_once() -> None:
    hopping = given(ROWS.hopping("10m", every="1m"), np.arange(3_600))
    assert total(hopping) == 36_000
    assert merge(hopping, by=[], every="1h").column("n").to_pylist() == [3_600]
    with pytest.raises(SketchError, match="don't fit into windows of 15m"):
        merge(hopping, every="15m")


def test_sessions_hold_each_row_once_and_roll_up_where_they_fit(tmp_path) -> None:
    seconds = np.concatenate([np.arange(0, 600, 3), np.arange(1_000, 1_500, 7), np.arange(3_590, 3_700)])
    sessions = given(ROWS.session("1m", max_ahead=None), seconds)
    assert total(end_to_end(sessions, ["key"])) == len(seconds)
    sessions.write(tmp_path / "sessions.parquet")
    again = read_parquet(tmp_path / "sessions.parquet")
    assert windows_in(again) == windows_in(sessions) and str(windows_in(again)) == "sessions with a gap of 1m"
    # Those of each key overlap the other's: merged without keys, none of the rows counts twice.
    assert total(merge(again, by=[], every="1d")) == len(seconds)
    with pytest.raises(SketchError, match="sessions with a gap of 1m don't fit into windows of 1h"):
        merge(again, every="1h")


def test_a_session_covers_those_of_its_key_that_lie_in_it() -> None:
    before = given(ROWS.session("10s"), np.array([0, 1, 30, 101]))
    later = given(ROWS.session("10s"), np.array([0, 8, 16, 24, 30, 101]))
    left = before.filter(pa.array(not_covered(before, later)))
    starts = [int(start.timestamp()) - BEGIN for start in left.column("window_start").to_pylist()]
    assert list(zip(left.column("key").to_pylist(), starts)) == [("b", 1)]
