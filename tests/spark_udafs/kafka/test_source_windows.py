"""Windows that Spark's tasks can't merge are refused before anything is read."""

from __future__ import annotations

import polars as pl
import pytest

from streamgauge import Stream, count, json
from streamgauge.spark_udafs.kafka.source import bound

ROWS = Stream.from_kafka("posts", value=json({"user": pl.String})).group_by("user")


@pytest.mark.parametrize(
    "windowed",
    [ROWS.hopping("1m", every="1s"), ROWS.sliding("1m"), ROWS.session("1m"), ROWS.count_window(60)],
    ids=lambda s: str(s.window),
)
def test_windows_that_are_not_side_by_side_are_the_consumers(windowed: Stream) -> None:
    with pytest.raises(ValueError, match=r"on_spark: the stream has the windows .*run\(\.\.\.\)"):
        bound(windowed.agg(n=count()), {})
    assert bound(ROWS.tumbling("1m").agg(n=count()), {}).name()
