"""JSON by path, lists of objects, numbers that stand as strings: against Python's own reader."""

from __future__ import annotations

import json as python_json
import pickle
import random
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import polars as pl
import pytest

from streamgauge.operators.definition.decoders import decoder_definition
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.formats.decode import Decoded
from streamgauge.operators.formats.json.decoder import json
from streamgauge.operators.formats.json.fields import field
from streamgauge.operators.formats.messages import Messages

from ....cases import each


def decode(schema: dict[str, Any], values: list[bytes | None]) -> Decoded:
    decoder = json(schema)
    return decoder.decode(Messages.of(values)).checked(len(values), decoder.schema)


def test_columns_by_path() -> None:
    schema = {
        "who": field("actor.id", pl.String),
        "age": field("actor.about.age", pl.Int8),
        "at": field(["a.b", "at"], pl.Datetime("us", "UTC")),
        "likes": pl.Int64,
        "tags": field("actor.tags", pl.List(pl.String)),
    }
    values: list[bytes | None] = [
        b'{"actor":{"id":"ann","about":{"age":7},"tags":["x"]},"a.b":{"at":"2026-01-01T00:00Z"},"likes":3}',
        b'{"actor":{"about":null}}',
        b'{"actor":null,"likes":1}',
        b'{"actor":"ann"}',
        b'{"actor":{"about":{"age":300}}}',
        b'{"actor":{"id":5}}',
    ]
    decoded = decode(schema, values)
    assert decoded.frame.columns == list(schema)
    assert decoded.frame.rows() == [
        ("ann", 7, datetime(2026, 1, 1, tzinfo=UTC), 3, ["x"]),
        (None, None, None, None, None),
        (None, None, None, 1, None),
    ]
    assert decoded.reasons == [
        '"actor" is a string, not an object',
        '"actor.about.age" is 300, out of the range of Int8',
        '"actor.id" is 5, not String',
    ]


def test_two_columns_may_not_want_one_member_in_two_ways() -> None:
    for schema in (
        {"actor": pl.Struct({"id": pl.String}), "who": field("actor.id", pl.String)},
        {"who": field("actor.id", pl.String), "actor": pl.Binary},
        {"n": pl.Int64, "m": field("n", pl.Float64)},
    ):
        with pytest.raises(ValueError, match="differently: whole and in parts"):
            json(schema)
    decoded = decode({"n": pl.Int64, "m": field("n", pl.Int64)}, [b'{"n":1}'])
    assert decoded.frame.rows() == [(1, 1)]


ITEM = pl.Struct({"sku": pl.String, "n": pl.Int64, "parts": pl.List(pl.Struct({"p": pl.Float64}))})
LISTS = {"id": pl.Int64, "items": pl.List(ITEM), "grid": pl.List(pl.List(pl.Int64)), "days": pl.List(pl.Date)}


def test_lists_of_objects_of_lists_and_of_times() -> None:
    values: list[bytes | None] = [
        b'{"id":1,"items":[{"sku":"a","n":2,"parts":[{"p":1.5},{}]},null,{"more":[{}]}],"grid":[[1],[],null]}',
        b'{"id":2,"items":[],"days":["2026-01-02",null]}',
        b'{"id":3,"items":null,"grid":null}',
        b'{"id":4,"items":[{"sku":"a"},{"sku":5}]}',
        b'{"id":5,"items":[{"parts":[{"p":1},{"p":"x"}]}]}',
        b'{"id":6,"items":{}}',
        b'{"id":7,"items":["a"]}',
        b'{"id":8,"days":["2026-02-30"]}',
        b'{"id":9,"grid":[[1,2],[3.5]]}',
        b'{"id":10,"items":[{"sku":"\\u00e9\\n","n":-1}]}',
    ]
    decoded = decode(LISTS, values)
    assert decoded.frame.schema == LISTS
    nothing = {"sku": None, "n": None, "parts": None}
    assert decoded.frame["id"].to_list() == [1, 2, 3, 10]
    assert decoded.frame["items"].to_list() == [
        [{"sku": "a", "n": 2, "parts": [{"p": 1.5}, {"p": None}]}, None, nothing],
        [],
        None,
        [{"sku": "é\n", "n": -1, "parts": None}],
    ]
    assert decoded.frame["grid"].to_list() == [[[1], [], None], None, None, None]
    assert str(decoded.frame["days"].to_list()[1]) == "[datetime.date(2026, 1, 2), None]"
    assert decoded.reasons == [
        '"items[1].sku" is 5, not String',
        '"items[0].parts[1].p" is a string, not Float64',
        '"items" is an object, not a list',
        '"items[0]" is a string, not an object',
        "\"days[0]\" is '2026-02-30', not Date in ISO 8601",
        '"grid[1]" holds a value that is not Int64',
    ]
    inside = decode(
        {"a": pl.Struct({"items": pl.List(ITEM), "s": pl.String})}, [b'{"a":{"items":[{}]}}', b"{}"]
    )
    assert inside.frame["a"].to_list() == [{"items": [nothing], "s": None}, None]


@pytest.mark.parametrize("seed", range(8))
def test_random_objects_are_what_python_reads(seed: int) -> None:
    chance = random.Random(seed)

    def value(kind: Any) -> Any:
        if chance.random() < 0.15:
            return None
        if isinstance(kind, pl.List):
            return [value(kind.inner) for _ in range(chance.randrange(4))]
        if isinstance(kind, pl.Struct):
            return {f.name: value(f.dtype) for f in kind.fields if chance.random() < 0.9}
        make = {
            pl.Int64: chance.randrange(-99, 99),
            pl.Float64: chance.random(),
            pl.String: chance.choice('aé\n"'),
        }
        return make[kind]

    def whole(kind: Any, given: Any) -> Any:
        if given is None:
            return None
        if isinstance(kind, pl.List):
            return [whole(kind.inner, one) for one in given]
        if isinstance(kind, pl.Struct):
            return {f.name: whole(f.dtype, given.get(f.name)) for f in kind.fields}
        return given

    schema = {"id": pl.Int64(), "items": pl.List(ITEM), "grid": pl.List(pl.List(pl.String)), "s": ITEM}
    rows = [{name: value(kind) for name, kind in schema.items()} for _ in range(200)]
    texts = [python_json.dumps(row, indent=chance.choice([None, 1])).encode() for row in rows]
    values: list[bytes | None] = []
    for text in texts:
        values += [text, text[: chance.randrange(len(text))]]
    decoded = decode(schema, values)
    assert decoded.rows is not None and decoded.rows.tolist() == list(range(0, 400, 2))
    assert decoded.frame.to_dicts() == [whole(pl.Struct(schema), row) for row in rows]


@each(
    ("kind", "value", "expected"),
    [
        (pl.Float64, b'"9.75"', 9.75),
        (pl.Float64, b"9.75", 9.75),
        (pl.Float64, b'"1e999"', '"x" is "1e999", not Float64'),
        (pl.Int64, b'"9223372036854775807"', 2**63 - 1),
        (pl.Int64, b'"7.5"', '"x" is "7.5", not Int64'),
        (pl.Int64, b'""', '"x" is "", not Int64'),
        (pl.Int64, b'{"a":1}', '"x" is an object, not Int64'),
        (pl.UInt8, b"256", '"x" is 256, not UInt8'),
        (pl.Decimal(10, 2), b'"12.30"', Decimal("12.30")),
        (pl.Decimal(10, 2), b"12.3", Decimal("12.30")),
        (pl.Decimal(10, 2), b'"12.345"', '"x" is "12.345", not Decimal'),
        (pl.Boolean, b'"true"', True),
        (pl.Boolean, b"false", False),
        (pl.String, b"17.0", "17.0"),
        (pl.String, b"true", "true"),
        (pl.String, rb'"a\"\u00e9"', 'a"é'),
        (pl.String, b'"[x"', "[x"),
        (pl.String, b"[1]", '"x" is a list, not String'),
        (pl.Float64, rb'"\u0037"', 7.0),
        (pl.Datetime("us", "UTC"), b'"2026-01-01"', datetime(2026, 1, 1, tzinfo=UTC)),
        (pl.Float64, b"null", None),
    ],
)
def test_values_that_may_stand_as_strings(kind: Any, value: bytes, expected: Any) -> None:
    decoded = decode({"x": field("x", kind, text=True)}, [b'{"x":%b}' % value])
    reported = decoded.frame["x"].to_list()[0] if decoded.frame.height else decoded.reasons[0]
    assert reported.startswith(expected) if decoded.reasons else reported == expected


def test_nothing_is_converted_unless_asked_for() -> None:
    assert decode({"x": pl.Float64}, [b'{"x":"9.75"}']).reasons == ['"x" is a string, not Float64']
    assert decode({"x": field("x", pl.String)}, [b'{"x":7}']).reasons == ['"x" is 7, not String']


def test_it_pickles_and_is_written_down_only_where_it_differs() -> None:
    plain, other = (
        json({"x": pl.Int64}),
        json({"x": field("y.x", pl.Int64, text=True), "items": pl.List(ITEM)}),
    )
    assert decoder_definition(plain) == {"decoder": "Json"}
    reported = {"decoder": "Json", "fields": {"x": {"path": ["y", "x"], "text": True}}}
    assert decoder_definition(other) == reported
    other.decode(Messages.of([b"{}"]))
    assert pickle.loads(pickle.dumps(other)) == other
    with pytest.raises(TypeError, match="path must be such as"):
        field([], pl.Int64)
    with pytest.raises(TypeError, match=r"'x' can't be List"):
        field("x", pl.List(pl.Int64), text=True)


def test_objects_of_a_list_become_rows() -> None:
    schema = {"id": pl.Int64, "items": pl.List(ITEM)}
    rows = Stream.from_kafka("orders", value=json(schema)).explode("items")
    rows = rows.with_columns(pl.col("items").struct.unnest())
    frame = rows.reading.kafka_source.decode(
        Messages.of([b'{"id":1,"items":[{"sku":"a"},{"sku":"b","n":2}]}'])
    ).frame
    assert rows.reading.transform(frame.lazy()).select("id", "sku", "n").collect().rows() == [
        (1, "a", None),
        (1, "b", 2),
    ]
