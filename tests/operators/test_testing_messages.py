"""Messages fed as bytes: through the stream's own decoder, its keys, headers and timestamps."""

from __future__ import annotations

from datetime import UTC, datetime

import polars as pl
import pytest

from streamgauge.operators.definition.aggregates import count, last, top_k
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.formats.json.decoder import json
from streamgauge.operators.sketching.account import Account
from streamgauge.operators.testing import StreamTester


def test_values_keys_and_headers_go_through_the_decoder() -> None:
    source = Stream.from_kafka(
        "posts",
        value=json({"user": pl.String}),
        key=json({"id": pl.Int64}),
        message={"trace": "header:trace", "at": "timestamp", "place": "offset"},
        tombstones="skip",
    )
    tester = StreamTester(
        source.tumbling("1m").agg(n=count(), users=top_k("user", k=5), ids=last("id")), partitions=2
    )
    key, value = b'{"id":7}', b'{"user":"ann"}'
    given = tester.feed_messages(
        [value, b"oops", None, value], [key, key, key, b"x"], [[("trace", b"t")]] * 4
    )
    assert given == Account(read=4, counted=1, filtered=1, dead_lettered=2)
    assert [(row.offset, row.reason) for row in tester.refused] == [
        (1, "not JSON: byte 0"),
        (3, "the key: not JSON: byte 0"),
    ]
    early = [datetime(2025, 12, 31, 23, 59, tzinfo=UTC)]
    assert tester.feed_messages([value], [b'{"id":8}'], timestamps=early, partition=1).counted == 1
    assert tester.feed_messages([], partition=1) == Account()
    assert tester.feed([{"user": "bob", "id": 1, "trace": None, "at": None, "place": 9}]).counted == 1
    rows = tester.finish().windows().sort("window_start")
    assert rows["n"].to_list() == [1, 2] and rows["ids"].to_list() == [8, 1]


def test_a_stream_of_frames_has_no_decoder() -> None:
    rows = Stream.from_schema({"at": pl.Datetime("us")}, time="at").tumbling("1m").agg(n=count())
    with pytest.raises(TypeError, match="rows come from frames"):
        StreamTester(rows).feed_messages([b"x"])
