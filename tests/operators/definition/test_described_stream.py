"""A stream read back from its description: the same state, tables and fingerprint."""

from __future__ import annotations

import json

import polars as pl
import pytest

from streamgauge.operators.definition.aggregates import count, distinct, quantiles, sum, top_k
from streamgauge.operators.definition.described_stream import described_stream
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.table.schema import schema_of

from ...cases import each

KEYS = {
    "text": pl.String,
    "kind": pl.Enum(["a", "b"]),
    "label": pl.Categorical(),
    "whole": pl.Int64,
    "small": pl.UInt16,
    "flag": pl.Boolean,
    "day": pl.Date,
    "hour": pl.Time,
    "moment": pl.Datetime("ms", "Europe/Berlin"),
    "plain": pl.Datetime("us"),
    "span": pl.Duration("ms"),
    "price": pl.Decimal(12, 3),
    "raw": pl.Binary,
    "share": pl.Float32,
}


def stream(key: str) -> Stream:
    columns = {**KEYS, "at": pl.Datetime("us"), "user": pl.Int64, "spent": pl.Float64}
    aggregates = {"n": count(), "users": distinct("user"), "top": top_k("user", k=3), "paid": sum("user")}
    rows = Stream.from_schema(columns, time="at").filter(pl.col("user") > 0)
    return rows.group_by(key).tumbling("90s", delay="5s").agg(**aggregates, spent=quantiles("spent"))


@each("key", KEYS)
def test_it_has_the_fingerprint_and_the_table_of_what_it_describes(key: str) -> None:
    requested = stream(key)
    payload = described_stream(json.loads(json.dumps(requested.definition())))
    assert payload.fingerprint() == requested.fingerprint()
    assert schema_of(payload).equals(schema_of(requested), check_metadata=True)
    assert (payload.window, payload.delay_us) == (requested.window, requested.delay_us)


def test_what_it_can_not_read_is_refused_in_words() -> None:
    definition = stream("text").definition()
    for change, said in (
        ({"version": 9}, "format version 9"),
        ({"window": {"window": "lunar"}}, "lunar"),
        ({"keys": [["text", "list[string]"]]}, r"list\[string\]"),
        ({"aggregates": {"n": {}}}, "damaged"),
    ):
        with pytest.raises(ValueError, match=said):
            described_stream({**definition, **change})
