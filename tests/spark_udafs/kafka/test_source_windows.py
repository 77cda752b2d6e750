"""Spark's source takes every kind of windows that its tasks can merge."""

from __future__ import annotations

import polars as pl
import pytest

from streamgauge import Stream, count, json
from streamgauge.spark_udafs.kafka.source import bound

ROWS = Stream.from_kafka("posts", value=json({"user": pl.String})).group_by("user")


@pytest.mark.parametrize(
    "windowed",
    [
        ROWS.tumbling("1m"),
        ROWS.hopping("1m", every="7s"),
        ROWS.cumulate("1d", every="1m"),
        ROWS.sliding("1m"),
        ROWS.session("1m"),
        ROWS.count_window(60),
    ],
    ids=lambda s: str(s.window),
)
def test_all_kinds_of_windows_are_sparks_as_well(windowed: Stream) -> None:
    assert bound(windowed.agg(n=count()), {}).name()
