"""Avro into typed columns: against fastavro's own reading, each message judged by itself."""

from __future__ import annotations

import io
import json
import pickle
import random
from datetime import UTC, datetime
from typing import Any

import fastavro
import polars as pl
import pytest

from streamgauge.operators.definition.decoders import decoder_definition
from streamgauge.operators.formats.avro.blocks import check_blocks
from streamgauge.operators.formats.avro.decoder import avro
from streamgauge.operators.formats.decode import Decoded
from streamgauge.operators.formats.messages import Messages
from streamgauge.operators.formats.per_message import Misread

from ....cases import each
from ..avro_records import Maker, row, written

ORDER: dict[str, Any] = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "user", "type": "string"},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {
            "name": "actor",
            "type": [
                "null",
                {"type": "record", "name": "Actor", "fields": [{"name": "name", "type": ["null", "string"]}]},
            ],
        },
        {"name": "second", "type": ["null", "Actor"]},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
    ],
}


def order(n: int, **fields: Any) -> dict[str, Any]:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    return {"id": n, "user": f"u{n}", "at": at, "actor": None, "second": None, "tags": [], **fields}


def decode(decoder: Any, values: list[bytes | None]) -> Decoded:
    return decoder.decode(Messages.of(values)).checked(len(values), decoder.schema)


def why(schema: Any, value: bytes, **options: Any) -> str:
    """Why a message is refused, between two good ones that aren't."""
    decoded = decode(avro(schema, **options), [value])
    assert decoded.frame.height == 0 and decoded.refused.tolist() == [0]
    return decoded.reasons[0]


@each("seed", range(40))
def test_random_records_are_what_fastavro_wrote(seed: int) -> None:
    maker = Maker(seed)
    schema = maker.record()
    records = [maker.value(schema) for _ in range(30)]
    decoded = decode(avro(schema), [written(schema, record) for record in records])
    assert decoded.rows is None and decoded.refused.tolist() == []
    assert decoded.frame.to_dicts() == [row(schema, record) for record in records]


@each("seed", range(12))
def test_broken_bytes_cost_themselves_alone(seed: int) -> None:
    """Truncated, flipped, lengthened, drowned: a dead letter, or what fastavro makes of it, whole."""
    maker, chance = Maker(100 + seed), random.Random(seed)
    schema = maker.record()
    parsed = fastavro.parse_schema(schema)
    values: list[bytes] = []
    for _ in range(60):
        good = written(schema, maker.value(schema))
        at = chance.randrange(len(good) + 1)
        flipped = bytearray(good or b"\0")
        flipped[min(at, len(flipped) - 1)] ^= 1 << chance.randrange(8)
        huge = b"\xfe\xff\xff\xff\xff\xff\xff\xff\x7f"
        values += [good, good[:at], good, bytes(flipped), good, good + b"x", good[:at] + huge + good[at:]]
    decoded = decode(avro(schema), values)
    rows = list(range(len(values))) if decoded.rows is None else decoded.rows.tolist()
    for number, value in enumerate(values):
        file = io.BytesIO(value)
        try:
            reported = fastavro.schemaless_reader(file, parsed)
        except Exception:
            # Integers that are a date or time beyond Python's are one to Arrow: those may be rows.
            continue
        if file.tell() != len(value):
            assert number not in rows
        elif number in rows:
            assert comparable(decoded.frame.row(rows.index(number), named=True)) == comparable(
                row(schema, reported)
            )
    assert all(number in rows for number, value in enumerate(values) if number % 7 in (0, 2, 4))
    assert decoded.refused.size > 60 and all(decoded.reasons)


def comparable(value: Any) -> Any:
    """A value in which NaN is itself, and UTC is UTC."""
    if isinstance(value, dict):
        return {name: comparable(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [comparable(inner) for inner in value]
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(UTC).isoformat()
    return repr(value) if isinstance(value, float) else value


def test_columns_by_name_and_by_path() -> None:
    values = [
        written(ORDER, order(1, actor={"name": "ann"})),
        written(ORDER, order(2, second={"name": None}, tags=["a", "b"])),
    ]
    decoded = decode(avro(ORDER, columns=["user", "actor.name", "tags"]), values)
    assert decoded.frame.to_dicts() == [
        {"user": "u1", "actor.name": "ann", "tags": []},
        {"user": "u2", "actor.name": None, "tags": ["a", "b"]},
    ]
    # A type that is written out in a field that isn't chosen.
    decoded = decode(avro(ORDER, columns={"who": "second", "name": "second.name"}), values)
    assert decoded.frame.rows() == [(None, None), ({"name": None}, None)]


def test_a_path_that_leads_nowhere_is_refused_with_what_there_is() -> None:
    with pytest.raises(ValueError, match=r"the schema has no field 'usr'; there are id, user, at"):
        avro(ORDER, columns=["usr"])
    with pytest.raises(ValueError, match=r"no field 'actor\.nam'; there are name"):
        avro(ORDER, columns=["actor.nam"])
    with pytest.raises(ValueError, match="leads into what has no fields"):
        avro(ORDER, columns=["user.name"])
    with pytest.raises(TypeError, match="columns must list fields, as in"):
        avro(ORDER, columns="user")


def test_unions_of_several_types_are_structs() -> None:
    point = {"type": "record", "name": "a.Point", "fields": [{"name": "x", "type": "int"}]}
    size = {"type": "enum", "name": "Size", "symbols": ["S", "L"]}
    schema = {
        "type": "record",
        "name": "R",
        "fields": [
            {
                "name": "v",
                "type": ["null", "string", "long", point, size, {"type": "array", "items": "a.Point"}],
            },
            {"name": "p", "type": ["null", "a.Point"]},
            {"name": "s", "type": "Size"},
            {"name": "n", "type": ["null", "int", "long"]},
            {"name": "m", "type": {"type": "map", "values": ["string", "double"]}},
        ],
    }
    values = ["a", 7, ("a.Point", {"x": 1}), ("Size", "L"), [{"x": 2}], None]
    rest = {"p": {"x": 9}, "s": "S", "n": 5, "m": {"k": "t", "l": 0.5}}
    decoded = decode(avro(schema), [written(schema, {"v": value, **rest}) for value in values])
    names = ["string", "long", "Point", "Size", "array"]
    shown = [
        dict.fromkeys(names) | {name: value}
        for name, value in zip(names, ["a", 7, {"x": 1}, "L", [{"x": 2}]])
    ]
    assert decoded.frame["v"].to_list() == [*shown, None]
    reported = [
        {"key": "k", "value": {"string": "t", "double": None}},
        {"key": "l", "value": {"string": None, "double": 0.5}},
    ]
    assert decoded.frame.select("p", "s", "n", "m").rows() == [({"x": 9}, "S", 5, reported)] * 6
    assert decoded.frame.schema["n"] == pl.Int64


def test_each_reason_names_the_place() -> None:
    good = written(ORDER, order(1))
    assert why(ORDER, good[:3]) == "not Avro of the schema shop.Order: byte 3: Expected 2 bytes, read 1"
    assert why(ORDER, good + b"ab") == (
        f"not Avro of the schema shop.Order: 2 bytes too many, from byte {len(good)}"
    )
    assert why(ORDER, b"") == "not Avro of the schema shop.Order: byte 0: it ends too early"
    union = {"type": "record", "name": "U", "fields": [{"name": "u", "type": ["null", "string"]}]}
    assert "byte 1: an index beyond" in why(union, b"\x08")
    text = {"type": "record", "name": "S", "fields": [{"name": "s", "type": "string"}]}
    assert "UnicodeDecodeError" in why(text, b"\x02\xff")
    number = {"type": "record", "name": "I", "fields": [{"name": "i", "type": "int"}]}
    assert "too large" in why(number, written("long", 1 << 40))
    assert decode(avro(number), [None]).reasons == ["no value (a tombstone)"]


def test_a_schema_within_itself_neither_overflows_the_stack_nor_is_a_column() -> None:
    chain = {
        "type": "record",
        "name": "Link",
        "fields": [{"name": "n", "type": "int"}, {"name": "next", "type": ["null", "Link"]}],
    }
    with pytest.raises(TypeError, match=r"'\.next' holds Link within itself"):
        avro(chain)
    beside = avro(chain, columns=["n"])
    value: Any = None
    for n in range(20):
        value = {"n": n, "next": value}
    decoded = decode(beside, [written(chain, value), b"\x02\x02" * 500_000, b"\x02\0"])
    assert decoded.frame["n"].to_list() == [19, 1]
    assert "RecursionError" in decoded.reasons[0]


def test_what_takes_no_bytes_can_not_be_claimed_without_end() -> None:
    schema = {
        "type": "record",
        "name": "N",
        "fields": [{"name": "n", "type": {"type": "array", "items": "null"}}],
    }
    with pytest.raises(ValueError, match="values that take no bytes"):
        avro(schema)
    whole = {**schema, "fields": [{**schema["fields"][0], "type": {"type": "array", "items": "int"}}]}
    decoded = decode(avro(whole, many="records"), [container([{"n": [None] * 3}], schema)])
    assert "values that take no bytes" in decoded.reasons[0]


def test_a_schema_that_is_no_record_is_one_column() -> None:
    assert decode(avro("string"), [written("string", "a")]).frame.to_dicts() == [{"value": "a"}]
    assert decode(avro(["null", "long"]), [written(["null", "long"], 5)]).frame.to_dicts() == [{"value": 5}]
    with pytest.raises(ValueError, match="not a record"):
        avro("string", columns=["value"])


@pytest.mark.parametrize(
    "schema", ["{", "strin", '{"type": "record"}', {"type": "nope"}, 7, [{"type": "enum", "name": "E"}]]
)
def test_what_is_no_schema_is_refused(schema: Any) -> None:
    with pytest.raises(ValueError, match="not a schema of Avro"):
        avro(schema)


def container(records: list[Any], schema: Any = ORDER, codec: str = "deflate") -> bytes:
    file = io.BytesIO()
    fastavro.writer(file, fastavro.parse_schema(schema), records, codec=codec, sync_interval=200)
    return file.getvalue()


def test_container_files_are_lists_of_records_read_by_the_readers_schema() -> None:
    decoder = avro(ORDER, columns={"user": "user", "name": "actor.name", "at": "at"}, many="records")
    older = {**ORDER, "fields": [field for field in ORDER["fields"] if field["name"] != "actor"]}
    # The type of the other field is written out there then.
    older = json.loads(json.dumps(older).replace('"Actor"', json.dumps(ORDER["fields"][3]["type"][1])))
    many = [order(n, actor={"name": "ann"}) for n in range(50)]
    whole = container(many)
    decoded = decode(
        decoder, [whole, container([], codec="null"), whole[:-20], b"Obj\1", None, container(many[:1], older)]
    )
    assert decoded.rows is not None and decoded.rows.tolist() == [0, 1]
    rows = decoded.frame.explode("records").unnest("records").drop_nulls("user")
    assert rows["user"].to_list() == [f"u{n}" for n in range(50)] and set(rows["name"]) == {"ann"}
    assert rows["at"].unique().to_list() == [datetime(2026, 1, 1, tzinfo=UTC)]
    assert all("not an Avro container file" in decoded.reasons[i] for i in (0, 1, 3))
    assert "No default value for field actor" in decoded.reasons[3]
    for codec in ("null", "snappy", "bzip2", "xz"):
        assert decode(decoder, [container(many, codec=codec)]).frame["records"].list.len().to_list() == [50]


@pytest.mark.parametrize("codec", ["deflate", "bzip2", "xz", "snappy", "null"])
def test_what_is_packed_too_well_is_not_unpacked(codec: str) -> None:
    whole = container(["x" * 1_000_000], "string", codec)
    check_blocks(memoryview(whole), 1_000_010)
    with pytest.raises(Misread, match="unpacked, it has more than 999,999 bytes"):
        check_blocks(memoryview(whole), 999_999)
    claim = whole[: whole.index(b"x" * 9)] if codec == "null" else whole[:-40]
    assert "not an Avro container file" in decode(avro("string", many="r"), [claim]).reasons[0]


def test_it_pickles_and_is_written_down() -> None:
    decoder = avro(ORDER, columns=["user"])
    decode(decoder, [written(ORDER, order(1))])
    again = pickle.loads(pickle.dumps(decoder))
    assert again == decoder and decode(again, [written(ORDER, order(1))]).frame.rows() == [("u1",)]
    reported = decoder_definition(decoder)
    assert reported["decoder"] == "Avro" and reported["paths"] == {"user": ["user"]}
    # Plain messages are cut by the whole schema, so a field more is another definition.
    more = {**ORDER, "fields": [*ORDER["fields"], {"name": "more", "type": "int"}]}
    assert decoder_definition(avro(more, columns=["user"])) != reported
    assert decoder_definition(avro(json.dumps(ORDER), columns=["user"])) == reported
    said = {**ORDER, "doc": "Orders.", "fields": [{**field, "doc": "A field."} for field in ORDER["fields"]]}
    assert decoder_definition(avro(said, columns=["user"])) == reported


def test_a_column_of_a_registrys_schema_is_the_same_whatever_is_added_beside_it() -> None:
    more = {**ORDER, "fields": [*ORDER["fields"], {"name": "more", "type": "int"}]}
    one, two = (
        decoder_definition(avro(schema, columns=["user"], registry="http://localhost:8081"))
        for schema in (ORDER, more)
    )
    assert one == two and one["framed"] is True and "localhost" not in str(one)
