"""Streams of several topics are refused before a query begins, with what to do instead."""

from __future__ import annotations

import polars as pl
import pytest

from streamgauge.operators.definition.aggregates import count
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.formats.json import json
from streamgauge.spark_udafs.run import on_spark, source_of


def of(topic: str | list[str]) -> Stream:
    return Stream.from_kafka(topic, value=json({"user": pl.String}))


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (of(["posts", "likes"]), r"reads posts, likes, and Spark's source reads one topic; run it by \.run"),
        (of("posts").merge(of("likes")), "reads likes and posts, and Spark's source reads one topic"),
        (of("^posts"), r"all topics that '\^posts' matches.*or name the topic"),
    ],
)
def test_what_reads_several_topics_is_refused(rows: Stream, message: str) -> None:
    stream = rows.tumbling("1m").agg(n=count())
    with pytest.raises(ValueError, match=message):
        source_of(stream, None)
    with pytest.raises(ValueError, match=message):
        on_spark(stream, None)
