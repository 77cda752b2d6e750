"""What may be merged of sliding windows, which end where a group has rows."""

from __future__ import annotations

import polars as pl
import pytest

from streamgauge import Stream, StreamTester, count, merge
from streamgauge.operators.table.windows import end_to_end, windows_in
from streamgauge.sketches.core.protocol import SketchError

ROWS = Stream.from_schema({"at": pl.Int64, "key": pl.String}, time=pl.from_epoch("at")).group_by("key")


def test_windows_that_end_where_rows_are_cannot_be_added_up() -> None:
    tester = StreamTester(ROWS.sliding("10m", step="1m").agg(n=count()))
    tester.feed([{"at": 1_767_225_600 + second, "key": "ab"[second % 2]} for second in range(0, 3_600, 40)])
    sliding = tester.finish().tables()
    for merged in (lambda: merge(sliding, every="1h"), lambda: end_to_end(sliding, ["key"])):
        with pytest.raises(SketchError, match="overlap"):
            merged()
    assert windows_in(sliding).definition()["kind"] == "sliding"
    assert sum(merge(sliding, by=[])["n"].to_pylist()) == sum(sliding["n"].to_pylist())
