"""Windows on a calendar over DataFrames, and roll-ups into them, are those of the same rows without Spark."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import polars as pl
import pytest

import streamgauge as sg

pytestmark = pytest.mark.spark

ZONE = "Europe/Helsinki"
BEGIN = datetime(2026, 3, 27, 12, tzinfo=UTC)
FRAME = pl.DataFrame(
    {"at": [BEGIN + timedelta(minutes=17 * n) for n in range(600)], "side": [n % 2 for n in range(600)]}
)
STREAM = sg.Stream.from_schema(FRAME.schema, time="at").group_by("side")
COUNTS = {"n": sg.count(), "users": sg.distinct("at")}
MORE = {**COUNTS, "spread": sg.quantiles("side")}
COLUMNS = ["window_start", "window_end", "side", "n"]


@pytest.fixture(scope="module")
def rows(spark: Any) -> Any:
    return spark.createDataFrame(FRAME.to_pandas()).repartition(3)


@pytest.mark.slow
@pytest.mark.parametrize("aggregates", [COUNTS, MORE], ids=["catalyst", "buckets"])
@pytest.mark.parametrize(
    ("window", "windowed"),
    [
        (sg.spark.window("at", "1 day", zone=ZONE), STREAM.tumbling("1d", zone=ZONE)),
        (sg.spark.window("at", "1 month", startTime="6 hours"), STREAM.tumbling("1mo", offset="6h")),
        (
            sg.spark.window("at", "2 days", "1 day", "-3 hours", zone=ZONE),
            STREAM.hopping("2d", every="1d", offset="-3h", zone=ZONE),
        ),
    ],
    ids=["days", "months", "hopping"],
)
def test_windows_of_a_zone_over_a_dataframe(rows: Any, window: Any, windowed: Any, aggregates: Any) -> None:
    table = sg.spark.as_table(sg.spark.sketch(rows).groupBy("side", window).agg(**aggregates))
    alone = windowed.agg(**aggregates).over(FRAME)
    order = ["window_start", "window_end", "side"]
    assert table.answers().select(COLUMNS).sort(order).rows() == alone.answers().select(COLUMNS).rows()
    assert table.merge(alone).num_rows == alone.num_rows


def test_hours_roll_up_into_days_of_a_zone(spark: Any, rows: Any) -> None:
    hours = sg.spark.sketch(rows).groupBy("side", sg.spark.window("at", "1 hour")).agg(**COUNTS)
    table = sg.spark.rollup(hours, every="1 day", zone=ZONE)
    # The zone of days is theirs unless another one is given.
    days = sg.spark.as_table(sg.spark.rollup(table, every="1 day"))
    expected = STREAM.tumbling("1d", zone=ZONE).agg(**COUNTS).over(FRAME)
    assert days.answers().select(COLUMNS).sort(COLUMNS).rows() == expected.answers().select(COLUMNS).rows()
    with pytest.raises(Exception, match="don't fit into windows of 1d in Asia/Kolkata"):
        sg.spark.rollup(hours, every="1 day", zone="Asia/Kolkata").collect()
    with pytest.raises(ValueError, match="offset= and zone= place the windows of every="):
        sg.spark.rollup(hours, zone=ZONE)


def test_a_streaming_dataframe_has_no_windows_of_a_zone(spark: Any) -> None:
    stream = spark.readStream.format("rate").load().withWatermark("timestamp", "1 second")
    with pytest.raises(ValueError, match=r"can't close windows of 1d in Europe/Helsinki .*Stream.from_kafka"):
        sg.spark.sketch(stream).groupBy(sg.spark.window("timestamp", "1 day", zone=ZONE)).agg(n=sg.count())
