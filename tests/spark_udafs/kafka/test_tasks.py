"""How a batch is cut into tasks, and what becomes of rows on which a step fails."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.formats.json.decoder import json

from .planned import ALL, Query, letters_of

pytestmark = pytest.mark.kafka


@pytest.mark.parametrize("drops", [True, False])
def test_rows_on_which_a_step_fails_are_dead_letters_where_rows_are_given(
    kafka: Any, topic: Callable[..., str], send: Callable[..., None], drops: bool
) -> None:
    name = topic()
    send(name, [b'{"text":"1"}', b"oops", b'{"text":"two"}', b'{"text":"3"}', b'{"text":"4"}'])
    source = Stream.from_kafka(
        name, value=json({"text": pl.String}), bootstrap_servers=kafka.bootstrap_servers
    )
    stream = source.with_columns(number=pl.col("text").cast(pl.Int64))
    if drops:
        stream = stream.filter(pl.col("number") != 3)
    query = Query(kafka, None, stream, emit="rows", deadLetterTopic=f"{name}.dead")
    batches = query.batch()
    assert batches is not None
    numbers = pa.Table.from_batches(batches).column("number").to_pylist()
    assert numbers == ([1, 4] if drops else [1, 3, 4])
    letters = letters_of(kafka, f"{name}.dead", 2)
    decoded = [{key: value.decode() for key, value in letter.headers()} for letter in letters]
    assert [(t["topic"], t["partition"], t["offset"]) for t in decoded] == [
        (name, "0", "1"),
        (name, "0", "2"),
    ]
    assert "conversion from `str` to `i64` failed" in decoded[1]["reason"]
    assert [letter.value() for letter in letters] == [b"oops", b'{"text":"two"}']


def test_tasks_are_split_for_messages_and_never_for_sketches(
    kafka: Any,
    sketches: Callable[..., Query],
    topic: Callable[..., str],
    send: Callable[..., None],
) -> None:
    name = topic(2)
    send(name, [b"a"] * 30)
    send(name, [b"b"] * 10, partition=1)
    query = Query(kafka, subscribe=name, minPartitions="4")
    end = query.reader.latestOffset(query.log[0], ALL)
    tasks = query.reader.partitions(query.log[0], end)
    sizes = [[(r.end - r.start) for r in task.ranges] for task in tasks]
    assert sizes == [[10], [10], [10], [10]]
    query = sketches(name, minPartitions="4")
    end = query.reader.latestOffset(query.log[0], ALL)
    assert len(query.reader.partitions(query.log[0], end)) == 2


@pytest.mark.parametrize("kind", ["CreateTime", "LogAppendTime"])
def test_messages_have_the_type_of_their_timestamps_as_in_sparks_own_source(
    kafka: Any, send: Callable[..., None], kind: str
) -> None:
    name = f"times-{kind}"
    kafka.create_topic(name, 1, {"message.timestamp.type": kind})
    send(name, [b"a", b"b"])
    batches = Query(kafka, subscribe=name).batch()
    assert batches is not None
    types = pa.Table.from_batches(batches).column("timestampType").to_pylist()
    assert types == [1 if kind == "LogAppendTime" else 0] * 2
