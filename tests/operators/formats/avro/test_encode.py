"""Rows as Avro: read back by the decoder, plain and in the wire format of a registry."""

from __future__ import annotations

import json
import pickle
from datetime import UTC, datetime
from typing import Any

import polars as pl
import pytest

from streamgauge.operators.formats.avro.decoder import avro
from streamgauge.operators.formats.avro.encode import as_avro
from streamgauge.operators.formats.messages import Messages

from ..schema_registry import SmallRegistry

SCHEMA: dict[str, Any] = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "user", "type": ["null", "string"]},
        {"name": "n", "type": "long", "default": 3},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
    ],
}
ROWS = pl.DataFrame(
    {
        "user": ["ann", None],
        "at": [datetime(2026, 1, 1, 0, 0, 0, 7, UTC), datetime(1969, 1, 1, tzinfo=UTC)],
        "tags": [["x", "é"], []],
        "other": [1, 2],
    }
)


def test_what_is_written_is_read_again() -> None:
    encoder = pickle.loads(pickle.dumps(as_avro(SCHEMA)))
    encoder.check(ROWS.schema)
    decoded = avro(SCHEMA).decode(Messages.of(encoder.encode(ROWS))).frame
    wanted = ROWS.select("user", pl.lit(3).alias("n"), "at", "tags")
    assert decoded.to_dicts() == wanted.to_dicts()
    assert json.loads(encoder.definition()["schema"]) == SCHEMA


def test_messages_of_a_registry_begin_with_the_id_of_the_latest_schema() -> None:
    with SmallRegistry().served() as registry:
        registry.add("orders-value", {"type": "record", "name": "Order", "fields": []})
        number = registry.add("orders-value", SCHEMA)
        encoder = as_avro(registry=registry.url, subject="orders-value")
        values = pickle.loads(pickle.dumps(encoder)).encode(ROWS)
        assert all(value[:5] == b"\0" + number.to_bytes(4, "big") for value in values)
        read = avro(registry=registry.url, subject="orders-value").decode(Messages.of(values)).frame
        assert read["user"].to_list() == ["ann", None]
        assert encoder.definition()["id"] == number
        with pytest.raises(LookupError, match="nothing-value"):
            as_avro(registry=registry.url, subject="nothing-value")


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: as_avro(), "give a schema"),
        (lambda: as_avro('"string"'), "not a record's"),
        (lambda: as_avro({"type": "nope"}), "not a schema of Avro"),
        (lambda: as_avro(registry="http://localhost:1"), "name the subject="),
        (lambda: as_avro(SCHEMA).check({"user": pl.String}), "field 'at' is not among the columns user"),
    ],
)
def test_what_can_not_be_written_is_said_first(make: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        make()
