"""The kernel reads flat records as fastavro does: it gives the same rows, and refuses the same messages."""

from __future__ import annotations

import io
import random
from typing import Any

import fastavro
import numpy as np
import pytest

from streamgauge.operators.formats.avro.decoder import Avro, avro
from streamgauge.operators.formats.messages import Messages
from streamgauge.tests.operators.formats.schema_registry import SmallRegistry, framed

from ....cases import each
from ..avro_records import LEAVES, Maker, written

HUGE = b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01"
A, B = {"name": "a", "type": "long"}, {"name": "b", "type": ["null", "string"]}
LEAF_TYPES = [kind for name, (kind, _) in LEAVES.items() if name != "decimal"]


def flat_schema(seed: int) -> dict[str, Any]:
    """A record of some fields of all kinds, half of them optional, with null first or last."""
    chance = random.Random(seed)
    named = [
        {"type": "enum", "name": "E", "symbols": ["RED", "GREEN"]},
        {"type": "fixed", "name": "F", "size": 3},
    ]
    kinds = [*chance.sample(LEAF_TYPES, 6), *named]
    fields = []
    for i, kind in enumerate(kinds):
        union = chance.choice([kind, kind, ["null", kind], [kind, "null"]])
        fields.append({"name": f"f{i}", "type": union})
    return {"type": "record", "name": "R", "fields": fields}


def record(maker: Maker, schema: dict[str, Any]) -> dict[str, Any]:
    values = {}
    for field in schema["fields"]:
        kind = field["type"]
        if isinstance(kind, list):
            kind = next(one for one in kind if one != "null")
            if maker.random.random() < 0.3:
                values[field["name"]] = None
                continue
        values[field["name"]] = maker.value(kind)
    return values


def damaged(good: bytes) -> list[bytes]:
    """Every cut, every byte changed in two ways, trailing bytes, and lengths beyond the message."""
    cuts = [good[:at] for at in range(len(good))]
    changed = [
        good[:at] + bytes([good[at] ^ mask]) + good[at + 1 :] for at in range(len(good)) for mask in (1, 128)
    ]
    drowned = [good[:at] + HUGE + good[at:] for at in range(len(good))]
    return [*cuts, *changed, *drowned, good + b"\0", good + good]


def agree(decoder: Avro, values: list[bytes | None]) -> Any:
    """What the decoder returns, the same as if fastavro read every message."""
    messages = Messages.of(values)
    fast, slow = decoder.decode(messages), decoder._read_each(messages)
    assert fast.frame.equals(slow.frame, null_equal=True) and fast.frame.schema == slow.frame.schema
    rows, others = (np.arange(len(values)) if one.rows is None else one.rows for one in (fast, slow))
    assert rows.tolist() == others.tolist()
    assert fast.refused.tolist() == slow.refused.tolist() and fast.reasons == slow.reasons
    return fast.checked(len(values), decoder.schema)


@each("seed", range(25))
def test_every_cut_and_damaged_byte_is_as_fastavro_has_it(seed: int) -> None:
    schema, maker = flat_schema(seed), Maker(seed)
    decoder = avro(schema)
    assert decoder._flat is not None
    good = [written(schema, record(maker, schema)) for _ in range(3)]
    bad = [value for one in good for value in damaged(one)]
    mixed: list[bytes | None] = [None, *good, *bad, *good]
    agree(decoder, mixed)
    whole = agree(decoder, [*good, *good])
    assert whole.frame.height == 6 and whole.rows is None
    some = avro(schema, columns={"x": "f5", "y": "f7", "z": "f0"})
    agree(some, mixed)


def test_good_messages_never_reach_fastavro(monkeypatch: pytest.MonkeyPatch) -> None:
    schema = flat_schema(1)
    decoder = avro(schema)
    values = [written(schema, record(Maker(2), schema)) for _ in range(50)]
    reached: list[int] = []
    monkeypatch.setattr(Avro, "_read_each", lambda self, messages: reached.append(len(messages)))
    assert decoder.decode(Messages.of(values)).frame.height == 50 and not reached


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("int", b"\x80\x80\x80\x80\x10"),  # 2**31
        ("int", b"\xfe\xff\xff\xff\x0f"),  # 2**31 - 1
        ("long", b"\x80\x00"),  # a zero of two bytes
        ("long", b"\xff" * 9 + b"\x01"),
        ("long", b"\xff" * 9 + b"\x03"),  # 65 bits
        ("boolean", b"\x07"),
        ("string", b"\x01"),  # a length of -1
        ("string", b"\x06\xed\xa0\x80"),  # a surrogate
        ("bytes", b"\x06\xed\xa0\x80"),
        ("float", b"\x00\x00\xc0\x7f"),
        (["null", "long"], b"\x04\x02"),  # no branch 2
        (["null", "long"], b"\x01\x02"),
        (["long"], b"\x00\x02"),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, b"\x02"),
        ({"type": "fixed", "name": "Z", "size": 0}, b""),
        ("null", b""),
    ],
)
def test_values_at_the_edge_are_as_fastavro_has_them(kind: Any, value: bytes) -> None:
    decoder = avro({"type": "record", "name": "R", "fields": [{"name": "f", "type": kind}]})
    assert decoder._flat is not None
    agree(decoder, [value, value + b"\0", None, value])


@pytest.mark.parametrize(
    "kind",
    [
        {"type": "array", "items": "int"},
        {"type": "map", "values": "int"},
        {"type": "record", "name": "S", "fields": []},
        ["null", "int", "string"],
        ["null"],
        LEAVES["decimal"][0],
    ],
)
def test_fields_with_parts_are_read_by_fastavro(kind: Any) -> None:
    assert avro({"type": "record", "name": "R", "fields": [{"name": "f", "type": kind}]})._flat is None


def versions(changed: list[dict[str, Any]]) -> tuple[dict[str, Any], dict[str, Any]]:
    """A writer's schema of the fields `A` and `B`, and a reader's."""
    both = [A, B], changed
    writer, reader = ({"type": "record", "name": "R", "fields": fields} for fields in both)
    return writer, reader


@pytest.mark.parametrize(
    ("fields", "fast"),
    [
        ([A, B], True),
        ([B, A], True),
        ([B], True),
        ([A, {"name": "b", "type": ["string", "null"]}], True),
        ([{"name": "a", "type": ["null", "long"]}], True),
        ([A, {"name": "c", "type": "string", "default": "none"}], True),
        ([A, {"name": "c", "type": ["null", "int"], "default": None}], True),
        ([A, {"name": "c", "type": "float", "default": 1.5}], True),
        ([A, {"name": "c", "type": LEAVES["millis"][0], "default": 7}], True),
        ([A, {"name": "c", "type": "bytes", "default": "\u00ff"}], False),
        ([A, {"name": "c", "type": "int"}], False),
        ([{"name": "a", "type": "double"}], False),
        ([{"name": "b", "type": "string"}], False),
        ([{"name": "a2", "type": "long", "aliases": ["a"]}], False),
    ],
)
def test_a_registrys_versions_are_as_fastavro_resolves_them(fields: list[dict[str, Any]], fast: bool) -> None:
    writer, reader = versions(fields)
    registry = SmallRegistry()
    old, new = registry.add("r-value", writer), registry.add("r-value", reader)
    other = registry.add("other-value", {"type": "record", "name": "O", "fields": [A]})
    old_values = [written(writer, {"a": n, "b": None if n % 2 else f"b{n}"}) for n in range(4)]
    new_value = {
        "a": 9,
        "a2": 9,
        "b": "b",
        "c": None if "null" in str(fields) else fields[-1].get("default", 1),
    }
    if fields[-1].get("default") == "\u00ff":
        new_value["c"] = b"\xff"
    new_values = [written(reader, new_value)] * 2
    values: list[bytes | None] = []
    for one in old_values:
        values += [framed(old, one), framed(new, new_values[0]), None, b"{}", framed(old, one[:1] + b"\x09")]
    values += [
        framed(9_999, b"x"),
        framed(other, b"\x02"),
        framed(old, b""),
        framed(new, new_values[1] + b"x"),
    ]
    with registry.served():
        decoder = avro(reader, registry=registry.url)
        agree(decoder, values)
        assert (decoder._flat_of(old) is not None) == fast
        agree(decoder, [values[0]] * 3)
        agree(decoder, [None, b"{}"])


def test_times_of_another_unit_are_resolved_by_fastavro() -> None:
    writer = {"type": "record", "name": "R", "fields": [{"name": "t", "type": LEAVES["millis"][0]}]}
    reader = {"type": "record", "name": "R", "fields": [{"name": "t", "type": LEAVES["micros"][0]}]}
    registry = SmallRegistry()
    number = registry.add("r-value", writer)
    with registry.served():
        decoder = avro(reader, registry=registry.url)
        agree(decoder, [framed(number, b"\x08"), framed(number, b"\x0a")])
        assert decoder._flat_of(number) is None


def test_random_bytes_are_as_fastavro_has_them() -> None:
    chance = random.Random(3)
    for seed in range(10):
        schema = flat_schema(seed)
        values: list[bytes | None] = [chance.randbytes(chance.randrange(40)) for _ in range(300)]
        file = io.BytesIO()
        fastavro.schemaless_writer(file, fastavro.parse_schema(schema), record(Maker(seed), schema))
        agree(avro(schema), [*values, file.getvalue()])
