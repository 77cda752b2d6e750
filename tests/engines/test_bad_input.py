"""Whatever comes through a topic, on both engines: the stream lives, each message is accounted for, each bad
one is in the dead-letter topic with its reason.
"""

from __future__ import annotations

import json as plain
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from streamgauge.operators.consumer.options import RunOptions
from streamgauge.operators.consumer.runner import run
from streamgauge.operators.definition.aggregates import count, distinct, top_k
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.formats.json.decoder import json
from streamgauge.operators.sketching.account import Account
from streamgauge.operators.table.query import query
from streamgauge.operators.table.sketch_table import merge

pytestmark = pytest.mark.kafka

GOOD = {"user": 1, "at": "2020-01-01T12:00:00Z", "tags": ["a"]}


def changed(**fields: Any) -> bytes:
    return plain.dumps({**GOOD, **fields}).encode()


LATE, COUNTED = "late", "counted"

# A message, and what becomes of it: counted, late, or a dead letter for a reason that says this.
MESSAGES: dict[str, tuple[bytes | None, str]] = {
    "plain text": (b"oops", "not JSON: byte 0"),
    "a line cut off": (changed()[:25], "not JSON"),
    "bytes that are not text": (b'{"user": 1, "at": "\xff\xfe"}', "text that is not Unicode"),
    "no object": (b"[1, 2]", "not a JSON object"),
    "an empty value": (b"", "an empty value"),
    "no value": (None, "a tombstone"),
    "text for a number": (changed(user="ann"), '"user" is a string, not Int64'),
    "a fraction": (changed(user=1.5), '"user" is 1.5, not a whole number'),
    "a number too large": (changed(user=1 << 70), '"user" is 1180591620717411303424, out of the range'),
    "a number for text": (changed(at=1_577_880_000), '"at" is 1577880000, not String'),
    "text for a list": (changed(tags="a"), '"tags" is a string, not List'),
    "a number in a list": (changed(tags=["a", 7]), '"tags" holds a value that is not String'),
    "null for what is counted": (changed(user=None, tags=None), COUNTED),
    "a null in a list": (changed(tags=["a", None]), COUNTED),
    "fields that are missing": (b'{"at": "2020-01-01T12:00:01Z"}', COUNTED),
    "fields that nobody requested": (changed(more={"deep": [1, {}]}), COUNTED),
    "null for the time": (changed(at=None), "no event time"),
    "a row on which a function fails": (changed(user=666), "ValueError: no such user"),
    "no time": (b'{"user": 1}', "no event time"),
    "text that is no time": (changed(at="yesterday"), "no event time"),
    "the year 1970": (changed(at="1970-01-01T00:00:00Z"), LATE),
    "the year 2100": (changed(at="2100-01-01T00:00:00Z"), "event time"),
    "a year that no calendar has": (changed(at="0000-01-01T00:00:00Z"), "event time"),
}


def run_locally(stream: Stream, _: Any, __: Path) -> tuple[pa.Table, Account]:
    summary = run(stream, RunOptions(until="latest"))
    return summary.table, summary.account


def run_on_spark(stream: Stream, request: Any, folder: Path) -> tuple[pa.Table, Account]:
    from streamgauge.operators.table.schema import read_parquet
    from streamgauge.spark_udafs.streaming.run import account_of, on_spark, write
    from streamgauge.spark_udafs.streaming.sinks import SketchesToParquet

    table = on_spark(stream, request.getfixturevalue("spark"), close_at_end=True)
    started = write(table, folder / "checkpoint", SketchesToParquet(folder / "table"), available_now=True)
    assert started.awaitTermination(600)
    return merge([read_parquet(path) for path in (folder / "table").glob("*.parquet")]), account_of(started)


@pytest.mark.parametrize(
    "engine", [run_locally, pytest.param(run_on_spark, marks=pytest.mark.spark)], ids=["local", "spark"]
)
def test_bad_messages_cost_themselves_alone(
    kafka: Any, request: pytest.FixtureRequest, tmp_path: Path, engine: Callable[..., Any]
) -> None:
    topic = f"bad-{uuid.uuid4().hex[:8]}"
    kafka.create_topic(topic, 1)
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "enable.idempotence": True})
    for value, _ in MESSAGES.values():
        producer.produce(topic, changed())
        producer.produce(topic, value)
    producer.produce(topic, changed(user=2))
    assert producer.flush(120) == 0

    schema = {"user": pl.Int64, "at": pl.String, "tags": pl.List(pl.String)}
    source = Stream.from_kafka(
        topic, value=json(schema), time="at", bootstrap_servers=kafka.bootstrap_servers
    )

    def known(rows: pl.DataFrame) -> pl.DataFrame:
        if (rows["user"] == 666).any():
            raise ValueError("no such user")
        return rows

    stream = (
        source.map_batches(known, schema)
        .tumbling("1m")
        .agg(posts=count(), users=distinct("user"), tags=top_k("tags", k=5))
    )
    table, account = engine(stream, request, tmp_path)

    outcomes = [outcome for _, outcome in MESSAGES.values()]
    extra = outcomes.count(COUNTED)
    counted = len(MESSAGES) + 1 + extra
    dead = [outcome for outcome in outcomes if outcome not in (COUNTED, LATE)]
    assert account == Account(
        read=2 * len(MESSAGES) + 1, counted=counted, late=outcomes.count(LATE), dead_lettered=len(dead)
    )
    assert account.balanced
    (window,) = query(table).to_dicts()
    assert window["posts"] == counted
    assert round(window["users"]["estimate"]) == 2
    assert {tag["item"]: tag["estimate"] for tag in window["tags"]} == {"a": counted - 2}
    for (name, (value, outcome)), letter in zip(
        ((name, reported) for name, reported in MESSAGES.items() if reported[1] in dead),
        letters(kafka, f"{topic}.dead-letters", len(dead)),
        strict=True,
    ):
        headers = {key: (text or b"").decode() for key, text in letter.headers()}
        assert letter.value() == value, name
        assert outcome in headers.get("details", headers["reason"]), name
        assert int(headers["offset"]) == 2 * list(MESSAGES).index(name) + 1


def letters(kafka: Any, topic: str, n: int) -> list[Any]:
    """The dead letters, in their messages' order."""
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap_servers, "group.id": "letters"})
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        collected: list[Any] = []
        while len(collected) < n and (message := consumer.poll(120)) is not None:
            assert message.error() is None
            collected.append(message)
        return sorted(collected, key=lambda letter: int(dict(letter.headers())["offset"]))
    finally:
        consumer.close()
