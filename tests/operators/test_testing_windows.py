"""Hopping, sliding and session windows in the driver: silence, windows that come again, and what is final."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl
import pytest

from streamgauge.operators.definition.aggregates import count
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.sinks.answers_to_kafka import AnswersToKafka
from streamgauge.operators.sinks.sketches_to_parquet import SketchesToParquet
from streamgauge.operators.sketching.account import Account
from streamgauge.operators.table.schema import read_parquet
from streamgauge.operators.table.sketch_table import merge
from streamgauge.operators.testing import StreamTester

START = datetime(2026, 1, 1, tzinfo=UTC)
SOURCE = Stream.from_schema({"at": pl.Datetime("us", "UTC"), "user": pl.String}, time="at").group_by("user")
HOPPING = SOURCE.hopping("30s", every="10s", delay="5s").agg(n=count())
SLIDING = SOURCE.sliding("30s", step="10s", delay="5s").agg(n=count())
SESSION = SOURCE.session("20s", delay="5s").agg(n=count())


def at(second: float, user: str = "ann") -> dict[str, object]:
    return {"at": START + timedelta(seconds=second), "user": user}


def emitted(tester: StreamTester) -> list[tuple[object, ...]]:
    """User, the second that a window begins and ends with, and its rows."""
    windows = tester.windows()
    edges = [((windows[name] - START).dt.total_seconds()) for name in ("window_start", "window_end")]
    return sorted(zip(windows["user"], *edges, windows["n"]), key=lambda row: (row[2], row[1], row[0]))


def test_hopping_windows_close_one_after_the_other_as_time_goes_on() -> None:
    tester = StreamTester(HOPPING)
    tester.feed([at(1), at(12), at(13, "bob"), at(25)])
    assert emitted(tester) == [("ann", -20, 10, 1), ("ann", -10, 20, 2), ("bob", -10, 20, 1)]
    # In the silence, each window closes for now as the clock passes its end and the delay.
    assert emitted(tester.advance(15)) == [("ann", 0, 30, 3), ("bob", 0, 30, 1)]
    assert emitted(tester.advance(30)) == [("ann", 10, 40, 2), ("bob", 10, 40, 1), ("ann", 20, 50, 1)]
    # A row of the pause: the windows that it is in come again, whole, once rows are past them.
    tester.feed([at(33), at(61)])
    tables = tester.tables()
    assert tables.is_final and tables.column("n").to_pylist() == [3, 1, 2]


def test_a_row_that_is_late_for_some_windows_counts_in_the_others() -> None:
    tester = StreamTester(HOPPING)
    assert tester.feed([at(40), at(12), at(2)]) == Account(read=3, counted=2, late=1)
    assert emitted(tester.finish()) == [("ann", end - 30, end, 1) for end in (40, 50, 60, 70)]


def test_sliding_windows_end_where_a_group_has_rows() -> None:
    tester = StreamTester(SLIDING)
    tester.feed([at(1), at(2), at(13, "bob"), at(25), at(100)])
    assert emitted(tester.finish()) == [
        ("ann", -20, 10, 2),
        ("bob", -10, 20, 1),
        ("ann", 0, 30, 3),
        ("ann", 80, 110, 1),
    ]


@pytest.mark.parametrize("pieces", [1, 6])
def test_a_late_row_counts_in_sliding_windows_behind_one_that_no_row_ends(pieces: int) -> None:
    """The row of 161 came behind 171, so it counts in windows that end after 165; no row ends one at 170."""
    rows = Stream.from_schema({"at": pl.Int64}, time=pl.from_epoch("at"))
    tester = StreamTester(rows.sliding("20s", step="5s", delay="3s").agg(n=count()))
    start = 1_767_225_600
    times = [{"at": start + second} for second in (160, 171, 161, 173, 180, 300)]
    for low in range(0, 6, 6 // pieces):
        tester.feed(times[low : low + 6 // pieces])
    results = tester.finish().windows()
    ends = (results["window_end"].dt.epoch("s") - start).to_list()
    assert dict(zip(ends, results["n"])) == {165: 1, 175: 4, 185: 3, 305: 1}


def test_sessions_close_after_their_gap_and_a_longer_one_replaces_them() -> None:
    tester = StreamTester(SESSION)
    tester.feed([at(0), at(5, "bob"), at(15)])
    assert tester.advance(24).windows().height == 0
    closed = tester.advance(2).tables()
    assert closed.is_final is False and closed.column("n").to_pylist() == [2, 1]
    # One of them continues with rows of the pause; both are final then.
    tester.feed([at(34), at(80)])
    final = tester.tables()
    assert final.is_final and final.column("n").to_pylist() == [3, 1]


def test_sessions_that_came_again_stand_once_in_what_is_kept() -> None:
    tester = StreamTester(SESSION)
    tester.feed([at(0), at(5, "bob"), at(15)])
    tester.advance(26)
    tester.feed([at(34), at(80)])
    assert emitted(tester.finish()) == [("bob", 5, 25, 1), ("ann", 0, 54, 3), ("ann", 80, 100, 1)]


@pytest.mark.parametrize("stream", [HOPPING, SLIDING, SESSION])
def test_silence_and_backlogs_lose_and_double_nothing(stream: Stream) -> None:
    clocked, at_once = StreamTester(stream, partitions=2), StreamTester(stream, partitions=2)
    rows = [at(second, "ab"[second % 2]) for second in range(0, 300, 3) if second % 90 < 50]
    for number, row in enumerate(rows):
        clocked.feed([row], number % 2)
        clocked.advance(0.5 if number % 30 else 50)
        at_once.feed([row], number % 2)
    results = [emitted(tester.advance(1_000).finish()) for tester in (clocked, at_once)]
    assert clocked.account == Account(read=len(rows), counted=len(rows))
    assert results[0] == results[1]


@pytest.mark.parametrize("stream", [HOPPING, SLIDING, SESSION])
def test_windows_that_fill_show_what_is_new_and_close_whole_all_the_same(stream: Stream) -> None:
    tester, quiet = StreamTester(stream), StreamTester(stream)
    shown = []
    for row in (at(1), at(2), at(33, "bob")):
        tester.feed([row])
        quiet.feed([row])
        shown.append(sorted(tester.filling()["n"].to_list()))
        assert tester.filling().height == 0
    expected = {
        HOPPING: [[1, 1, 1], [2, 2, 2], [1, 1, 1]],
        SLIDING: [[1], [2], [1]],
        SESSION: [[1], [2], [1]],
    }
    assert shown == expected[stream]
    tester.feed([at(200)])
    quiet.feed([at(200)])
    assert emitted(tester) == emitted(quiet) != []


def test_late_rows_say_how_late_they_are() -> None:
    tester = StreamTester(HOPPING, partitions=2)
    tester.feed([at(100), at(70), at(12.5), at(64)], 1)
    # The watermark is at 95: the last window of the third row ended at 40, that of the fourth at 90.
    assert [(late.partition, late.offset, late.late_by) for late in tester.late] == [
        (1, 2, 55.0),
        (1, 3, 5.0),
    ]
    sessions = StreamTester(SESSION)
    sessions.feed([at(100), at(74.5), at(75.5)])
    assert [(late.offset, late.late_by) for late in sessions.late] == [(1, 0.5)]


def test_windows_by_count_go_to_sinks_each_once_though_they_lie_alike(tmp_path: Path) -> None:
    """Nothing but their ids tells two windows apart whose rows have the same times."""
    stream = SOURCE.count_window(2).agg(n=count())
    tester = StreamTester(stream, sinks=[AnswersToKafka("answers"), SketchesToParquet(tmp_path)])
    for _ in range(3):
        tester.feed([at(0), at(0), at(0, "bob"), at(30)])
    table = tester.tables()
    assert table.is_final and table.column("n").to_pylist() == [2] * 5
    ids = ["input[0]:0", "input[0]:2", "input[0]:3", "input[0]:5", "input[0]:8"]
    assert sorted(table.column("window_id").to_pylist()) == ids
    sent = [(message.key, json.loads(message.value)) for message in tester.sent()]
    assert sorted((reported["window_id"], key, reported["n"]) for key, reported in sent) == [
        (name, b"bob" if name.endswith("2") else b"ann", 2) for name in ids
    ]
    kept = read_parquet(tmp_path)
    assert sorted(kept.column("window_id").to_pylist()) == ids
    assert merge(kept).num_rows == 5
    assert merge(kept, by=["user"], every="1h").to_arrow().select(["user", "n"]).to_pylist() == [
        {"user": "ann", "n": 8},
        {"user": "bob", "n": 2},
    ]
    # One that is not full is shown to the topic, and not written where it could not be recalled.
    assert tester.finish().windows().select("user", "n").rows() == [("bob", 1), ("ann", 1)]
    assert [dict(message.headers)["final"] for message in tester.sent()] == [b"0"] * 2
    assert read_parquet(tmp_path).num_rows == 5
