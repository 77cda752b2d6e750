"""Avro of a schema registry versions resolved, each bad message a dead letter, no login shown."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from streamgauge.operators.definition.aggregates import count, distinct, sum
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.formats.avro.decoder import avro
from streamgauge.operators.sketching.account import Account
from streamgauge.operators.table.query import query

from ..operators.formats.avro_records import written
from ..operators.formats.schema_registry import SmallRegistry, framed
from .test_bad_input import letters, run_locally, run_on_spark

pytestmark = pytest.mark.kafka

AT = {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}}
FIRST = {"type": "record", "name": "Post", "fields": [{"name": "user", "type": "string"}, AT]}
SECOND = {
    "type": "record",
    "name": "Post",
    "fields": [{"name": "likes", "type": "int", "default": 1}, *FIRST["fields"]],
}
TIME = 1_577_880_000_000


def first(user: str) -> bytes:
    return written(FIRST, {"user": user, "at": TIME})


def second(user: str, likes: int) -> bytes:
    return written(SECOND, {"user": user, "at": TIME, "likes": likes})


COUNTED = "counted"

# The schema's number, what follows it, and what becomes of the message.
MESSAGES: dict[str, tuple[int | None, bytes | None, str]] = {
    "an earlier version": (1, first("ann"), COUNTED),
    "this version": (2, second("bob", 5), COUNTED),
    "a schema nobody knows": (77, first("ann"), "knows no schema 77"),
    "a schema of something else": (3, b"\x02", "not Avro of the schema Other"),
    "no wire format": (None, first("ann"), "not in the wire format"),
    "a byte": (None, b"\0", "it has 1 bytes"),
    "cut off": (2, second("bob", 5)[:-1], "not Avro of the schema Post"),
    "a byte too many": (2, second("bob", 5) + b"\0", "1 bytes too many"),
    "a length without end": (1, b"\xfe\xff\xff\xff\xff\xff\xff\xff\x7f", "Expected"),
    "bytes that are not text": (1, b"\x02\xff\x00", "UnicodeDecodeError"),
    "no value": (None, None, "a tombstone"),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    "engine", [run_locally, pytest.param(run_on_spark, marks=pytest.mark.spark)], ids=["local", "spark"]
)
def test_each_message_is_read_by_the_schema_that_wrote_it(
    kafka: Any, request: pytest.FixtureRequest, tmp_path: Path, engine: Callable[..., Any]
) -> None:
    topic = f"avro-{uuid.uuid4().hex[:8]}"
    kafka.create_topic(topic, 1)
    registry = SmallRegistry(login="me:tr0ut")
    for number, schema in ((1, FIRST), (2, SECOND), (3, {"type": "record", "name": "Other", "fields": []})):
        registry.add("posts", schema, number=number)
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "enable.idempotence": True})
    good = framed(2, second("ann", 2))
    for number, value, _ in MESSAGES.values():
        producer.produce(topic, good)
        producer.produce(topic, value if number is None else framed(number, value))
    assert producer.flush(120) == 0
    with registry.served():
        settings = {"url": registry.url, "basic.auth.user.info": "me:tr0ut"}
        source = Stream.from_kafka(
            topic,
            value=avro(SECOND, registry=settings),
            time="at",
            bootstrap_servers=kafka.bootstrap_servers,
        )
        stream = source.tumbling("1m").agg(posts=count(), users=distinct("user"), likes=sum("likes"))
        assert "tr0ut" not in f"{stream!r} {stream.definition()}"
        table, account = engine(stream, request, tmp_path)

    dead = [outcome for _, _, outcome in MESSAGES.values() if outcome != COUNTED]
    counted = 2 * len(MESSAGES) - len(dead)
    assert account == Account(read=2 * len(MESSAGES), counted=counted, dead_lettered=len(dead))
    (window,) = query(table).to_dicts()
    assert window["posts"] == counted and round(window["users"]["estimate"]) == 2
    assert window["likes"] == 2 * len(MESSAGES) + 1 + 5
    for outcome, letter in zip(dead, letters(kafka, f"{topic}.dead-letters", len(dead)), strict=True):
        headers = dict(letter.headers())
        assert outcome in headers.get("details", headers["reason"]).decode()
