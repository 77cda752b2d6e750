"""Late rows that count in the first window that is still open."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import polars as pl
import pytest

from streamgauge import Stream, StreamTester, count
from streamgauge.operators.definition.described_stream import described_stream
from streamgauge.operators.definition.lasting_state import goes_on

START = datetime(2026, 1, 1, tzinfo=UTC)
ROWS = Stream.from_schema({"at": pl.Datetime("us"), "key": pl.String}, time="at")
KEPT = ROWS.group_by("key").tumbling("10s", delay="10s", keep_late=True).agg(n=count())


def row(second: float, key: str = "a") -> dict[str, Any]:
    return {"at": (START + timedelta(seconds=second)).replace(tzinfo=None), "key": key}


def windows(tester: StreamTester) -> list[tuple[int, str, int]]:
    """Each window's start in seconds, its key and its rows."""
    rows = tester.windows().sort("window_start", "key")
    starts = [int((at - START).total_seconds()) for at in rows["window_start"]]
    return list(zip(starts, rows["key"].to_list(), rows["n"].to_list()))


def test_a_late_row_counts_in_the_first_window_that_is_open() -> None:
    tester = StreamTester(KEPT)
    account = tester.feed([row(0), row(95), row(3, "b"), row(84), row(86), row(-500, "b")])
    assert (account.late, account.counted) == (0, 6)
    # The watermark is 85 when the late rows come.
    assert windows(tester.finish()) == [(0, "a", 1), (80, "a", 2), (80, "b", 2), (90, "a", 1)]


def test_a_partition_that_was_silent_loses_no_row_to_the_others() -> None:
    tester = StreamTester(KEPT, partitions=2, start=START)
    tester.feed([row(0)])
    tester.feed([row(1, "b")], partition=1)
    tester.advance(200)
    for second in (300, 400):
        tester.feed([row(second)])
        tester.advance(60)
        tester.feed([row(second + 100)])
    assert tester.feed([row(20, "b")], partition=1).late == 0
    tester.feed([row(800)])
    tester.feed([row(800)], partition=1)
    counted = windows(tester.finish())
    assert sum(n for _, key, n in counted if key == "b") == 2
    assert tester.account.late == 0


def test_it_is_part_of_the_definition_and_state_goes_on_with_it() -> None:
    plain = ROWS.group_by("key").tumbling("10s", delay="10s").agg(n=count())
    assert KEPT.fingerprint() != plain.fingerprint()
    assert described_stream(KEPT.definition()).keep_late
    assert described_stream(KEPT.definition()).fingerprint() == KEPT.fingerprint()
    assert "keep_late" not in plain.definition()
    assert goes_on(plain.definition(), KEPT.definition())


def test_streams_whose_rows_depend_on_others_can_t_keep_late_ones() -> None:
    once = ROWS.with_columns(id=pl.col("key")).deduplicate("id", within="1m")
    with pytest.raises(ValueError, match=r"keep_late=True is for streams .* leave out deduplicate\(\)"):
        once.tumbling("10s", keep_late=True)
