"""CREATE without columns: from a registry's schema, or proposed from the messages that there are."""

from __future__ import annotations

import io
import json
import struct
from typing import Any

import fastavro
import pytest

from streamgauge.operators.formats.protobuf.files import compiled
from streamgauge.queries.sql.errors import SqlError
from streamgauge.queries.sql.parse.dialect import statements_of
from streamgauge.queries.sql.run.memory import Memory
from streamgauge.queries.sql.run.row_reader import ReceivedMessage
from streamgauge.queries.sql.run.schema_inference import inferred_create
from streamgauge.queries.sql.run.session import SqlSession

from ....operators.formats.conftest import registry as registry
from ....operators.formats.schema_registry import SmallRegistry
from ..scripts import START, last_rows

ORDER = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "Shop", "type": "string"},
        {"name": "price", "type": ["null", "double"]},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    ],
}


def framed(number: int, body: bytes) -> bytes:
    return b"\0" + struct.pack(">I", number) + body


def order(number: int, second: int, shop: str, price: float | None) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, ORDER, {"Shop": shop, "price": price, "at": START + second * 1000})
    return framed(number, out.getvalue())


def rows(script: str, **topics: list[bytes]) -> list[list[Any]]:
    """The rows of a script's last statement, with these messages in topics."""
    engine = Memory()
    for topic, values in topics.items():
        engine._inserted[topic] = [ReceivedMessage(topic, 0, None, value, START) for value in values]
    last = list(SqlSession(engine).run(script))[-1]
    if last.error is not None:
        raise last.error
    return last.to_json()["rows"]


def test_columns_of_avro_are_the_registrys(registry: SmallRegistry) -> None:
    number = registry.add("orders-value", ORDER)
    create = (
        "CREATE STREAM orders WITH (KAFKA_TOPIC='orders', VALUE_FORMAT='AVRO', "
        f"REGISTRY='{registry.url}', TIMESTAMP='at');"
    )
    assert rows(f"{create} DESCRIBE orders") == [
        ["Shop", "VARCHAR", ""],
        ["price", "DOUBLE", ""],
        ["at", "TIMESTAMP", "time"],
    ]
    messages = [order(number, second, "abb"[second % 3], second * 1.5 or None) for second in range(90)]
    counted = (
        f"{create} SELECT window_start, shop, COUNT(*) AS n, SUM(price) AS s FROM orders"
        " WINDOW TUMBLING (SIZE 1 MINUTE) GROUP BY shop EMIT FINAL"
    )
    assert rows(counted, orders=messages)[0][:3] == ["2026-01-01T00:00:00", "a", 20]
    late = (
        f"SET 'schema.registry.url' = '{registry.url}'; CREATE STREAM o (shop VARCHAR, at TIMESTAMP)"
        " WITH (KAFKA_TOPIC='orders', VALUE_FORMAT='AVRO');"
        " SELECT shop FROM o WHERE at > '2026-01-01T00:01:28'"
    )
    assert rows(late, orders=messages) == [["b"]]


def test_columns_of_protobuf_are_the_registrys(registry: SmallRegistry) -> None:
    text = 'syntax = "proto3"; message Order { string shop = 1; double price = 2; }'
    registry.add("p-value", text, "PROTOBUF", serialized=compiled("order.proto", {"order.proto": text})[-1])
    create = f"CREATE STREAM p WITH (KAFKA_TOPIC='p', VALUE_FORMAT='PROTOBUF', REGISTRY='{registry.url}');"
    message = framed(100, b"\0" + b"\x0a\x01a" + b"\x11" + struct.pack("<d", 2.5))
    assert rows(f"{create} SELECT shop, price FROM p", p=[message]) == [["a", 2.5]]


@pytest.mark.parametrize(
    ("create", "message"),
    [
        ("VALUE_FORMAT='AVRO'", "AVRO needs a schema registry"),
        (
            "VALUE_FORMAT='AVRO', REGISTRY='{url}', SUBJECT='none'",
            "knows no latest version of the subject 'none'",
        ),
        ("VALUE_FORMAT='AVRO', REGISTRY='{url}', MESSAGE='x'", "MESSAGE names a message of a Protobuf"),
        ("REGISTRY='{url}'", "REGISTRY is for VALUE_FORMAT='AVRO'"),
    ],
)
def test_what_no_registry_gives(registry: SmallRegistry, create: str, message: str) -> None:
    registry.add("orders-value", ORDER)
    with pytest.raises(SqlError, match=message):
        rows(f"CREATE STREAM o (a INT) WITH (KAFKA_TOPIC='orders', {create.format(url=registry.url)})")
    declared = (
        "CREATE STREAM o (price INT) WITH (KAFKA_TOPIC='orders', VALUE_FORMAT='AVRO', "
        f"REGISTRY='{registry.url}')"
    )
    with pytest.raises(SqlError, match="price is a DOUBLE in the registry, got INT"):
        rows(declared)
    with pytest.raises(SqlError, match="rows are written as JSON"):
        rows(declared.replace("INT", "DOUBLE") + "; INSERT INTO o VALUES (1.0)")


def test_json_without_columns_is_refused_with_the_statement_to_write() -> None:
    messages = [
        {"ts": START, "user id": "ann", "select": 1, "tags": ["a"], "by": {"x": 1, "y": None}, "n": 1},
        {"ts": START + 5000, "user id": None, "select": 2, "tags": [], "by": None, "n": 2.5, "mixed": 1},
        {"ts": START + 9000, "user id": "bob", "select": 3, "mixed": "x"},
    ]
    values = [json.dumps(one).encode() for one in messages]
    with pytest.raises(SqlError, match="s must name its columns; the messages in t have: CREATE") as raised:
        rows("CREATE STREAM s WITH (KAFKA_TOPIC='t')", t=[*values, b"no JSON"])
    proposed = raised.value.message.partition(" have: ")[2]
    assert proposed == (
        'CREATE STREAM s (ts BIGINT, "user id" VARCHAR, "select" BIGINT, tags ARRAY<VARCHAR>, '
        "by STRUCT<x BIGINT, y VARCHAR>, "
        "n DOUBLE, mixed VARCHAR) WITH (KAFKA_TOPIC='t', VALUE_FORMAT='JSON', TIMESTAMP='ts');"
    )
    # What is a number here and a text there has no type: the message is refused, and counted.
    del messages[1]["mixed"]
    values = [json.dumps(one).encode() for one in messages]
    ran = rows(f'{proposed} SELECT "user id", "select", by->x AS x, n, tags[1] AS tag FROM s', t=values)
    assert ran == [["ann", 1, 1, 1.0, "a"], [None, 2, None, 2.5, None], ["bob", 3, None, None, None]]


@pytest.mark.parametrize(
    ("messages", "message"),
    [([], "has no message to read them from"), ([b"a,b"], "no message of t is a JSON object")],
)
def test_a_topic_that_proposes_nothing(messages: list[bytes], message: str) -> None:
    with pytest.raises(SqlError, match=message):
        rows("CREATE STREAM s WITH (KAFKA_TOPIC='t')", t=messages)


def test_a_table_is_proposed_with_its_key() -> None:
    (statement,) = statements_of("CREATE TABLE people WITH (KAFKA_TOPIC='people')")
    messages = [(0, 0, "", "ann", '{"town": "Turku"}')]
    create = inferred_create(statement.node, messages)
    assert (
        create == "CREATE TABLE people (key VARCHAR PRIMARY KEY, town VARCHAR)"
        " WITH (KAFKA_TOPIC='people', VALUE_FORMAT='JSON');"
    )
    assert last_rows(f"{create} DESCRIBE people")[0] == ["key", "VARCHAR", "key"]
