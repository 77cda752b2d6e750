"""Cumulating windows as time goes on: what is given out when, and what it costs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl
import pyarrow as pa
import pytest

from streamgauge import SketchesToParquet, Stream, StreamTester, count
from streamgauge.operators.consumer.merge import cumulating_windows as open_cumulate
from streamgauge.operators.rules.evaluation.rule_engine import RuleEngine, rule_view
from streamgauge.operators.rules.kinds.threshold import Threshold
from streamgauge.operators.sketching.account import Account
from streamgauge.operators.table.merge import Accumulator
from streamgauge.operators.table.schema import read_parquet
from streamgauge.operators.table.window_groups import WindowGroups

START = datetime(2026, 1, 1, tzinfo=UTC)
ROWS = Stream.from_schema({"at": pl.Datetime("us", "UTC"), "user": pl.String}, time="at").group_by("user")
TOTALS = ROWS.cumulate("40s", every="10s", delay="5s").agg(n=count())


def at(second: float, user: str = "ann") -> dict[str, object]:
    return {"at": START + timedelta(seconds=second), "user": user}


def emitted(tester: StreamTester) -> list[tuple[object, ...]]:
    """User, the second that a window begins and ends with, and its rows."""
    windows = tester.windows()
    edges = [((windows[name] - START).dt.total_seconds()) for name in ("window_start", "window_end")]
    return sorted(zip(windows["user"], *edges, windows["n"]), key=lambda row: (row[2], row[1], row[0]))


def test_each_step_gives_the_total_so_far_and_the_next_period_starts_over() -> None:
    tester = StreamTester(TOTALS)
    tester.feed([at(1), at(12), at(13, "bob"), at(27)])
    assert emitted(tester) == [("ann", 0, 10, 1), ("ann", 0, 20, 2), ("bob", 0, 20, 1)]
    # Groups whose rows are of earlier steps are in each window up to the last.
    tester.feed([at(46)])
    assert emitted(tester) == [("ann", 0, 30, 3), ("bob", 0, 30, 1), ("ann", 0, 40, 3), ("bob", 0, 40, 1)]
    tester.feed([at(200)])
    assert emitted(tester) == [("ann", 40, end, 1) for end in (50, 60, 70, 80)]
    assert tester.account == Account(read=6, counted=6)


def test_a_window_that_silence_closed_comes_again_whole() -> None:
    tester = StreamTester(TOTALS)
    tester.feed([at(1), at(12)])
    first = tester.advance(15).tables()
    assert first.is_final is False and first["n"].to_pylist() == [1, 2]
    tester.feed([at(13), at(60)])
    again = tester.tables()
    assert again.is_final and again["n"].to_pylist() == [3, 3, 3]


def test_a_row_that_is_late_for_some_windows_counts_in_the_later_ones() -> None:
    tester = StreamTester(TOTALS)
    assert tester.feed([at(35), at(2), at(47), at(3)]) == Account(read=4, counted=3, late=1)
    assert emitted(tester.finish()) == [
        ("ann", 0, 40, 2),
        ("ann", 40, 50, 1),
        ("ann", 40, 60, 1),
        ("ann", 40, 70, 1),
        ("ann", 40, 80, 1),
    ]


@pytest.mark.slow
@pytest.mark.parametrize("at_once", [False, True])
def test_each_step_is_merged_once_however_many_windows_hold_it(
    at_once: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    merged: list[int] = []
    merge = open_cumulate.merge_groups

    def noting(into: Accumulator, table: pa.Table) -> None:
        merged.append(table.num_rows)
        merge(into, table)

    monkeypatch.setattr(open_cumulate, "merge_groups", noting)
    stream = ROWS.cumulate("1h", every="1s", delay="0s").agg(n=count())
    tester = StreamTester(stream)
    rows = [at(second) for second in range(600)]
    for low in range(0, 600, 600 if at_once else 50):
        tester.feed(rows[low : low + (600 if at_once else 50)])
    assert [n for *_, n in emitted(tester)] == list(range(1, 600))
    assert merged == [1] * 599


def test_sinks_and_results_keep_all_windows_that_begin_together(tmp_path: Path) -> None:
    tester = StreamTester(TOTALS, sinks=[SketchesToParquet(tmp_path)])
    tester.feed([at(1), at(12), at(33), at(50)])
    table = tester.tables()
    assert table["n"].to_pylist() == [1, 2, 2, 3]
    assert len(list(tmp_path.rglob("*.parquet"))) == 4
    assert sorted(read_parquet(tmp_path)["n"].to_pylist()) == [1, 2, 2, 3]


def test_a_rule_fires_when_a_total_passes_a_limit_and_clears_with_the_next_period() -> None:
    tester = StreamTester(TOTALS)
    tester.feed([at(1), at(12), at(13), at(33), at(50), at(120)])
    table = tester.tables().to_arrow()
    rules = [Threshold("busy", value="n", at_least=3, absent=0)]
    engine = RuleEngine(rules, rule_view(rules, table.schema, None))
    alerts = engine.evaluate(WindowGroups.of_table(table), final=True)
    assert [(alert.state, int(alert.at_us / 1e6 - START.timestamp())) for alert in alerts] == [
        ("fired", 20),
        ("cleared", 50),
    ]
