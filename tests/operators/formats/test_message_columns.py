"""Key, headers, partition, offset and timestamp of messages as columns of a stream's rows."""

from __future__ import annotations

import pickle
import uuid
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from streamgauge.operators.consumer.options import RunOptions
from streamgauge.operators.consumer.runner import run
from streamgauge.operators.definition.aggregates import count, distinct, max, top_k
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.formats.json.decoder import json
from streamgauge.operators.formats.messages import Messages
from streamgauge.operators.kafka.raw_messages import header_names
from streamgauge.operators.sketching.account import Account
from streamgauge.operators.table.query import query
from streamgauge.operators.table.sketch_table import merge

DECODER = json({"x": pl.Int64})
ALL = {
    **{name: name for name in ("key_bytes", "headers", "partition", "offset", "timestamp", "timestamp_type")},
    "user": "key",
    "trace": "header:trace",
}


def decoded(messages: Messages, message: Any) -> Any:
    return Stream.from_kafka("posts", value=DECODER, message=message).source.decode(messages)


def batch() -> Messages:
    return Messages.of(
        [b'{"x": 1}', b"oops", b'{"x": 3}', b'{"x": 4}'],
        [b"ann", b"bob", None, b"\xff"],
        partition=[0, 0, 1, 1],
        first_offset=7,
        timestamps=[1000, 2000, -1, 4000],
        headers=[[("trace", b"a"), ("other", b"b"), ("trace", b"c")], [], [("trace", None)], []],
    )


def test_every_part_stands_beside_the_row_of_its_message() -> None:
    result = decoded(batch(), ALL)
    frame = result.frame
    assert frame.schema == Stream.from_kafka("posts", value=DECODER, message=ALL).columns
    assert frame["x"].to_list() == [1, 3] and result.rows.tolist() == [0, 2]
    assert frame["user"].to_list() == ["ann", None] and frame["key_bytes"].to_list() == [b"ann", None]
    assert frame["partition"].to_list() == [0, 1] and frame["offset"].to_list() == [7, 7]
    assert frame["timestamp"].to_list() == [datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC), None]
    assert frame["timestamp_type"].to_list() == ["create", None]
    appended = replace(batch(), appended=np.array([True, False, True, True]))
    assert decoded(appended, ["timestamp_type"]).frame["timestamp_type"].to_list() == [
        "append",
        None,
        "append",
    ]
    assert frame["trace"].to_list() == ["c", None]
    assert [header["value"] for header in frame["headers"][0]] == [b"a", b"b", b"c"]


def test_a_key_that_is_not_text_is_refused_where_text_is_asked_for_and_only_there() -> None:
    result = decoded(batch(), ["key"])
    assert dict(zip(result.refused.tolist(), result.reasons)) == {
        1: "not JSON: byte 0",
        3: 'the key is not UTF-8 text; ask for "key_bytes" to have its bytes',
    }
    assert decoded(batch(), ["key_bytes"]).frame["key_bytes"].to_list() == [b"ann", None, b"\xff"]


def test_a_header_that_is_not_text_is_refused() -> None:
    messages = Messages.of([b"{}"], headers=[[("trace", b"\xff")]])
    assert decoded(messages, ["header:trace"]).reasons == [
        "the header 'trace' is not UTF-8 text; ask for \"headers\" to have its bytes"
    ]


def test_a_header_whose_name_is_not_text_ends_nothing() -> None:
    names = pa.array([b"trace", bytes([0xFF]) + b"x"], pa.binary())
    assert header_names(names).to_pylist() == ["trace", "\ufffdx"]


def test_messages_read_without_headers_have_none() -> None:
    result = decoded(Messages.of([b"{}", b"{}"]), ["headers", "header:trace"]).frame
    assert result["headers"].to_list() == [[], []] and result["header:trace"].to_list() == [None, None]


def test_headers_beneath_a_gap_are_no_other_messages() -> None:
    given = Messages.of(
        [b"{}", b"{}", b"{}"], headers=[[("trace", b"a")], [("trace", b"b")], [("trace", b"c")]]
    )
    lists = given.headers
    assert lists is not None
    gap = pa.ListArray.from_arrays(lists.offsets, lists.values, mask=pa.array([False, True, False]))
    result = decoded(replace(given, headers=gap), ["header:trace"]).frame
    assert result["header:trace"].to_list() == ["a", None, "c"]


def test_they_are_part_of_the_definition_and_travel() -> None:
    plain, keyed = (
        Stream.from_kafka("posts", value=DECODER, message=requested) for requested in ((), ["key"])
    )
    assert plain.fingerprint() != keyed.fingerprint()
    renamed = Stream.from_kafka("posts", value=DECODER, message={"key": "header:key"})
    assert renamed.fingerprint() != keyed.fingerprint()  # the same column of the same type, of another part
    assert pickle.loads(pickle.dumps(keyed)).definition() == keyed.definition()
    assert not keyed.source.reads_headers and renamed.source.reads_headers


@pytest.mark.parametrize(
    ("message", "error", "words"),
    [
        ("key", TypeError, r'\["key", "offset"\]'),
        (["keys"], ValueError, "'keys' is not a part of a message; did you mean 'key'"),
        (["header:"], ValueError, "not a part"),
        ({"x": "key"}, ValueError, r"""'x' is a field of the value .* message=\{"message_x": "key"\}"""),
        ({"user": 5}, TypeError, "must map names of columns to parts"),
    ],
)
def test_what_is_not_a_part_of_a_message_is_refused(message, error, words: str) -> None:
    with pytest.raises(error, match=words):
        Stream.from_kafka("posts", value=DECODER, message=message)


def run_locally(stream: Stream, _: Any, __: Path) -> tuple[pa.Table, Account]:
    summary = run(stream, RunOptions(until="latest"))
    return summary.table, summary.account


def run_on_spark(stream: Stream, request: Any, folder: Path) -> tuple[pa.Table, Account]:
    from streamgauge.spark_udafs.frames.tables import as_table
    from streamgauge.spark_udafs.streaming.run import on_spark

    table = as_table(on_spark(stream, request.getfixturevalue("spark"), streaming=False))
    return merge([table]), Account()


@pytest.mark.slow
@pytest.mark.kafka
@pytest.mark.parametrize(
    "engine", [run_locally, pytest.param(run_on_spark, marks=pytest.mark.spark)], ids=["local", "spark"]
)
def test_both_engines_count_by_keys_headers_and_offsets(
    kafka: Any, request: pytest.FixtureRequest, tmp_path: Path, engine: Callable[..., Any]
) -> None:
    from confluent_kafka import Producer

    topic = f"parts-{uuid.uuid4().hex[:8]}"
    kafka.create_topic(topic, 2)
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "enable.idempotence": True})
    for n in range(60):
        headers: Any = [("trace", f"t{n % 3}".encode())]
        producer.produce(
            topic, f'{{"x": {n}}}', f"u{n % 5}", n % 2, timestamp=60_000_000 + n, headers=headers
        )
    assert producer.flush(120) == 0
    source = Stream.from_kafka(
        topic, value=DECODER, message=ALL, time="timestamp", bootstrap_servers=kafka.bootstrap_servers
    )
    requested = (
        source.group_by("partition")
        .tumbling("1d")
        .agg(n=count(), users=distinct("user"), traces=top_k("trace"), last=max("offset"))
    )
    table, _ = engine(requested, request, tmp_path)
    for row in query(table).to_dicts():
        assert row["n"] == 30 and row["last"] == 29 and round(row["users"]["estimate"]) == 5
        assert {trace["item"]: trace["estimate"] for trace in row["traces"]} == {"t0": 10, "t1": 10, "t2": 10}
