"""The source's two sides, planning and reading, called as Spark does but without Spark."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from pyspark.sql.streaming.datasource import ReadMaxRows

from streamgauge.operators.definition import aggregates as ask
from streamgauge.operators.definition.definition_diff import DefinitionChanged
from streamgauge.operators.definition.stream import Stream
from streamgauge.spark_udafs.merge.partials import ACCOUNT, PROGRESS

from .planned import Query, account

pytestmark = pytest.mark.kafka


def test_every_message_is_accounted_for_once(
    sketches: Callable[..., Query],
    topic: Callable[..., str],
    send: Callable[..., None],
    frame_of: Callable[..., pl.DataFrame],
    json_of: Callable[[pl.DataFrame], list[bytes]],
) -> None:
    name = topic(2)
    frame = frame_of(1, rows=1_000).with_columns(
        pl.when(pl.col("lang") == "").then(pl.lit("xx")).otherwise("lang")
    )
    filtered = frame.filter(pl.col("lang") == "xx").height
    send(name, json_of(frame))
    bad = [b"oops", None, b"", b'{"at":7}', b'{"user":"u"}', b'{"at":"1969-99-01"}']
    send(name, [*json_of(frame.head(1)), *bad], partition=1)
    # Two minutes after the end of the first rows' window.
    send(name, json_of(frame.tail(1)), partition=1)
    send(name, json_of(frame.head(3)), partition=1)
    query = sketches(name)
    counts, progress = [], []
    while (batches := query.batch(ReadMaxRows(300))) is not None:
        counts.append(account(batches))
        progress.append(account(batches, PROGRESS))
    assert counts[-1] == {
        "read": 1_011,
        "counted": 1_002 - filtered,
        "filtered": filtered,
        "late": 3,
        "dead_lettered": 6,
    }
    read = np.cumsum([messages["messages"] for messages in progress])
    assert read.tolist() == [result["read"] for result in counts]
    assert [messages["lag"] for messages in progress] == (1_011 - read).tolist()
    for result in counts:
        assert result["read"] == sum(result[name] for name in ACCOUNT[1:])
    assert [result["read"] for result in counts] == sorted(result["read"] for result in counts)


def test_a_batch_read_again_is_the_same_to_the_byte(
    sketches: Callable[..., Query],
    topic: Callable[..., str],
    send: Callable[..., None],
    frame_of: Callable[..., pl.DataFrame],
    json_of: Callable[[pl.DataFrame], list[bytes]],
) -> None:
    name = topic()
    send(name, json_of(frame_of(2, rows=900)))
    query = sketches(name)
    first = query.batch(ReadMaxRows(500))
    second = query.batch(ReadMaxRows(500))
    assert first is not None and second is not None
    # In another order, after others have used the connection, and by a query that was started again.
    again = sketches(name, log=query.log)
    for result, expected in ((again.read(2), second), (query.read(1), first), (again.read(2), second)):
        one, other = pa.Table.from_batches(result), pa.Table.from_batches(expected)
        assert [name for name in one.schema.names if one[name] != other[name]] == []
        assert one.equals(other)


def test_an_empty_topic_gives_nothing_to_do(
    sketches: Callable[..., Query], topic: Callable[..., str]
) -> None:
    query = sketches(topic(3))
    assert query.batch() is None
    query.reader.prepareForTriggerAvailableNow()
    assert query.batch() is None


def test_another_definition_under_a_checkpoint_is_named_as_a_difference(
    kafka: Any,
    everything_from: Callable[..., Stream],
    topic: Callable[..., str],
    send: Callable[..., None],
) -> None:
    name = topic()
    send(name, [b'{"at":"2026-01-01T00:00:00","user":"u"}'])
    rows_of = replace(everything_from(name), window=None, aggregates={})

    def stream_of(size: str = "1m", **more: Any) -> Stream:
        return rows_of.tumbling(size).agg(**{"users": ask.distinct("user"), **more})

    query = Query(kafka, stream=stream_of())
    query.batch()
    unfinished = [query.log[-2], query.log[-1]]
    send(name, [b'{"at":"2026-01-01T00:00:01","user":"u"}'])
    for other, reported in (
        (
            stream_of(users=ask.distinct("lang")),
            'the aggregate "users" changed from distinct("user", lg_k=12) to',
        ),
        (stream_of(users=ask.distinct("user", lg_k=10)), r"lg_k=12\) to distinct\(\"user\", lg_k=10\)"),
        (stream_of("2m"), "the window changed from tumbling 1m to tumbling 2m"),
        (stream_of(n=ask.count()), r'the aggregate "n" was added: count\(\)'),
        (
            rows_of.tumbling("1m").agg(n=ask.count(), users=ask.distinct("user")),
            'the aggregate "n" was added: count()',
        ),
        (
            rows_of.tumbling("1m").agg(people=ask.distinct("user")),
            'the aggregate "users" was renamed to "people"',
        ),
    ):
        reported = reported if "\\" in reported else re.escape(reported)
        with pytest.raises(DefinitionChanged, match=f"made by another definition: .*{reported}"):
            Query(kafka, query.log, other).batch()
        with pytest.raises(DefinitionChanged, match=reported):
            Query(kafka, unfinished, other).read(1)
    # The same again, and the checkpoint of a version that kept no definition.
    assert Query(kafka, query.log, stream_of()).batch() is not None
    without = {key: value for key, value in query.log[-1].items() if key != "definition"}
    later = Query(kafka, [without], stream_of())
    assert later.batch() is not None
    assert later.last.definition == query.last.definition
