"""A stream of several topics, of two formats and by a pattern, holds the same rows on both engines."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from confluent_kafka import Producer

from streamgauge import StreamTester, count, distinct, query
from streamgauge import csv as csv_value
from streamgauge import json as json_value
from streamgauge.operators.consumer.options import RunOptions
from streamgauge.operators.consumer.runner import run
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.sketching.account import Account
from streamgauge.operators.table.schema import START
from streamgauge.spark_udafs.streaming.run import account_of, on_spark, write

DAY = 1_767_225_600
POSTS, LIKES = {"user": pl.String, "at": pl.Int64}, {"by": pl.String, "at": pl.Int64}

Rows = list[tuple[str, int]]
FIRST: dict[str, Rows] = {"posts.a": [("ann", 1), ("bob", 38)], "likes": [("ann", 36)]}
"""Both topics are past 31: the first window is closed."""
SECOND: dict[str, Rows] = {"posts.a": [("cat", 61)], "posts.b": [("dan", 36), ("eve", 5)]}
"""A topic that is new; of its rows the second is late."""
COUNTED = {0: (1, 1), 30: (3, 3), 60: (1, 1)}
"""By the second that a window begins with: its rows, and how many users they are of."""
ACCOUNT = Account(read=6, counted=5, late=1)


def stream_of(prefix: str, servers: str = "localhost:9092") -> Stream:
    time = pl.from_epoch("at")
    likes = Stream.from_kafka(f"{prefix}likes", value=csv_value(LIKES), time=time, bootstrap_servers=servers)
    posts = Stream.from_kafka(
        f"^{prefix}posts\\.", value=json_value(POSTS), time=time, bootstrap_servers=servers
    )
    rows = posts.select("user").merge(likes.select(user=pl.col("by")))
    return rows.tumbling("30s", delay="5s", max_ahead=None).agg(n=count(), users=distinct("user"))


def counted_in(table: pa.Table) -> dict[int, tuple[int, int]]:
    answers = query(table)
    starts = (answers[START].dt.epoch("s") - DAY).to_list()
    assert len(set(starts)) == len(starts)
    users = answers["users"].struct.field("estimate").round().cast(pl.Int64)
    return dict(zip(starts, zip(answers["n"].to_list(), users.to_list())))


def test_the_consumers_parts_count_as_written_down() -> None:
    tester = StreamTester(stream_of(""))
    for rows in (FIRST, SECOND):
        for topic, own in rows.items():
            who = "by" if topic == "likes" else "user"
            tester.feed([{who: user, "at": DAY + second} for user, second in own], topic=topic)
    assert counted_in(tester.finish().tables()) == COUNTED
    assert tester.account == ACCOUNT


@pytest.mark.slow
@pytest.mark.kafka
@pytest.mark.spark
def test_both_engines_take_up_a_topic_that_appears(spark: Any, kafka: Any, tmp_path: Path) -> None:
    prefix = f"t{uuid.uuid4().hex[:8]}."
    stream = stream_of(prefix, kafka.bootstrap_servers)
    tables: list[pa.Table] = []
    for rows, at_end in ((FIRST, False), (SECOND, True)):
        for topic in rows.keys() - (FIRST.keys() if at_end else set()):
            kafka.create_topic(f"{prefix}{topic}", 1)
        send(kafka, prefix, rows)
        table = on_spark(stream, spark, close_at_end=at_end)
        running = write(
            table, tmp_path / "state", lambda part, _: tables.append(part.to_arrow()), available_now=True
        )
        assert running.awaitTermination(600)
        summary = run(stream, RunOptions(until="latest", group_id=f"{prefix}group"))
        if not at_end:
            assert counted_in(pa.concat_tables(tables)) == {0: COUNTED[0]}
    assert counted_in(pa.concat_tables(tables)) == COUNTED
    assert account_of(running) == ACCOUNT
    assert counted_in(summary.table.to_arrow()) == {start: COUNTED[start] for start in (30, 60)}
    assert summary.account == ACCOUNT


def send(kafka: Any, prefix: str, rows: dict[str, Rows]) -> None:
    producer = Producer(
        {
            "bootstrap.servers": kafka.bootstrap_servers,
            "enable.idempotence": True,
            "linger.ms": 5,
            "log_level": 0,
        }
    )
    for topic, own in rows.items():
        for user, second in own:
            fields = {"user": user, "at": DAY + second}
            value = f"{user},{DAY + second}" if topic == "likes" else json.dumps(fields)
            producer.produce(f"{prefix}{topic}", value.encode(), partition=0)
    assert producer.flush(120) == 0
