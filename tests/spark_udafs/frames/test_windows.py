"""Windows as `groupBy` takes them: how they are described, and the panes that rows are sketched by."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from streamgauge.spark_udafs.frames.windows import (
    Sessions,
    TogetherLate,
    Windows,
    event_times,
    window,
    windows_of_column,
)

MINUTE = 60_000_000


def test_durations_in_spark_s_notation_and_ours() -> None:
    hop = window("at", "interval 1 hour 30 minutes", "15m", "-5 minutes")
    assert hop == Windows("at", 90 * MINUTE, 15 * MINUTE, -5 * MINUTE)
    assert hop.pane_us == 5 * MINUTE
    assert hop.of_table().definition() == {
        "kind": "hopping", "size": "1h30m", "every": "15m", "offset": "10m"
    }  # fmt: skip
    assert window("at", "1 month").definition() == {"size": "1mo", "time": 'over "at"'}
    for wrong in ("1 fortnight", "", "soon"):
        with pytest.raises(ValueError, match="is not a duration"):
            window("at", wrong)
    with pytest.raises(ValueError, match="a slide of 2m doesn't fit windows of 1m"):
        window("at", "1m", "2m")


@pytest.mark.parametrize("gap_us", [5_000, 5_300, 1, 60_000_000])
def test_rows_of_a_piece_move_the_watermark_to_one_time_and_are_late_together(gap_us: int) -> None:
    panes = Sessions("at", gap_us).panes(streaming=True)
    assert isinstance(panes, TogetherLate)
    times = np.arange(-3_500, 4_500, dtype=np.int64)
    starts = panes.pane_starts(times)
    assert [panes.pane_start(time) for time in times[::499].tolist()] == starts[::499].tolist()
    # Spark counts whole milliseconds: a row moves its watermark to the one it is in, and the first one that
    # is not before the end of its session ends that.
    moved, ended = times // 1_000, -(-(times + gap_us) // 1_000)
    reported = {(a, b) for a, b in zip(moved.tolist(), ended.tolist())}
    assert len(np.unique(starts)) == len(reported)
    for start in np.unique(starts):
        rows = starts == start
        assert len({*moved[rows].tolist()}) == len({*ended[rows].tolist()}) == 1


def test_pieces_of_a_batch_never_reach_over_a_gap() -> None:
    panes = Sessions("at", 7_000).panes(streaming=False)
    starts = panes.pane_starts(np.arange(-20_000, 20_000))
    assert np.unique(starts, return_counts=True)[1].max() == 7_000


@pytest.mark.spark
def test_spark_s_own_windows_are_known(spark: Any) -> None:
    from pyspark.sql import functions as F

    hop = F.window(F.col("a.`b.c`"), "1 hour", "20 minutes", "5 minutes").alias("w")
    assert windows_of_column(hop) == Windows("a.`b.c`", 60 * MINUTE, 20 * MINUTE, 5 * MINUTE)
    assert windows_of_column(F.window("at", "1 minute")) == Windows("at", MINUTE, MINUTE, 0)
    assert windows_of_column(F.session_window("at", "5 minutes")) == Sessions("at", 5 * MINUTE)
    made = windows_of_column(F.window(F.to_timestamp("text"), "1 minute"))
    assert made == Windows("to_timestamp(text)", MINUTE, MINUTE, 0) and made.time is not None
    assert windows_of_column(F.col("at")) is windows_of_column(F.date_trunc("hour", "at")) is None
    longer = F.when(F.col("x") > 1, "5 minutes").otherwise("1 minute")
    for wrong, reported in (
        (F.session_window("at", longer), "CASE WHEN .* is not a constant"),
        (F.session_window("at", "0 seconds"), "a gap must be longer than 0"),
    ):
        with pytest.raises(ValueError, match=reported):
            windows_of_column(wrong)


@pytest.mark.spark
def test_times_without_a_zone_need_utc(spark: Any) -> None:
    rows = spark.sql("SELECT timestamp_ntz'2026-01-01 00:10:00' reported, timestamp'2026-01-01 00:10:00' at")
    reported, at = rows["reported"], rows["at"]
    assert str(event_times(rows, reported)) == "Column<'CAST(reported AS TIMESTAMP)'>"
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "Asia/Kolkata")
    try:
        event_times(rows, at)
        with pytest.raises(ValueError, match="by the clock in Asia/Kolkata: cast such times to timestamp"):
            event_times(rows, reported)
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)


@pytest.mark.spark
def test_columns_that_spark_has_no_windows_of_are_refused(spark: Any) -> None:
    rows = spark.sql("SELECT 1767225600000 ms, 1.5D part, date'2026-01-01' day, '2026-01-01' text")
    for wrong, reported in (("ms", "'ms' is bigint"), ("part", "'part' is double")):
        with pytest.raises(TypeError, match=f"windows need a timestamp, and {reported}; .*timestamp_millis"):
            event_times(rows, rows[wrong])
    result = rows.select(event_times(rows, rows["day"]), event_times(rows, rows["text"])).first()
    assert [time.isoformat() for time in result] == ["2026-01-01T00:00:00"] * 2
