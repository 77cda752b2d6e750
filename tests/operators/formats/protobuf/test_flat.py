"""The kernel reads flat messages as Protobuf's library does: the same rows, and the same refusals."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from streamgauge.operators.formats.messages import Messages
from streamgauge.operators.formats.protobuf.decoder import Protobuf, protobuf
from streamgauge.operators.formats.protobuf.files import compiled, message_class

from ....cases import each
from ..schema_registry import SmallRegistry, framed

TEXT = """
syntax = "proto3";
enum Color { NONE = 0; RED = 1; BLUE = -7; }
message All {
  int64 a = 1; uint64 b = 2; sint64 c = 3; int32 d = 4; uint32 e = 5; sint32 f = 6; bool g = 7;
  fixed64 h = 8; sfixed64 i = 9; fixed32 j = 10; sfixed32 k = 11; double l = 12; float m = 13;
  string n = 14; bytes o = 15; Color p = 16;
  optional int64 q = 17; optional string r = 18; optional float s = 2000; optional Color t = 20;
}
message Mixed {
  string name = 1; repeated int32 many = 2; All inner = 3; oneof x { int32 y = 4; int32 z = 5; }
}
"""
FILES = compiled("flat.proto", {"flat.proto": TEXT})
ALL, MIXED = message_class(FILES, "All"), message_class(FILES, "Mixed")
OLD = """
syntax = "proto2";
enum Size { S = 1; L = 2; }
message Old { optional string name = 1; optional int32 n = 2 [default = 7]; optional bool b = 3; }
message Needs { required int32 n = 1; }
message More { optional int32 n = 1; extensions 100 to 200; }
message Sized { optional Size size = 1; optional int32 n = 2; }
"""
OLD_FILES = compiled("old.proto", {"old.proto": OLD})
HUGE = b"\xff" * 9 + b"\x01"


def message(chance: random.Random) -> Any:
    """A message of which about half of the fields are there."""
    values = {
        **{name: chance.choice([0, 1, 2**62, 2**31 - 1]) for name in "abhq"},
        **{name: chance.choice([0, -1, 2**31 - 1, -(2**31)]) for name in "cdfik"},
        **{name: chance.choice([0, 1, 2**32 - 1]) for name in "ej"},
        **{name: chance.choice([0.0, -1.5, float("inf")]) for name in "lms"},
        **{name: chance.choice(["", "aé漢", "x" * 13, "\0"]) for name in "nr"},
        "g": True,
        "o": chance.randbytes(chance.randrange(20)),
        **{name: chance.choice([0, 1, -7, 99]) for name in "pt"},
    }
    return ALL(**{name: value for name, value in values.items() if chance.random() < 0.5})


def damaged(good: bytes) -> list[bytes]:
    """Every cut, every byte changed in four ways, trailing bytes, and integers beyond 64 bits."""
    places = range(len(good))
    changed = [
        good[:at] + bytes([good[at] ^ mask]) + good[at + 1 :] for at in places for mask in (1, 3, 8, 128)
    ]
    drowned = [good[:at] + HUGE + good[at:] for at in places]
    return [*(good[:at] for at in places), *changed, *drowned, good + b"\0", good + b"\x08", good + good]


def agree(decoder: Protobuf, values: list[bytes | None]) -> Any:
    """What the decoder returns, the same as if the library read every message."""
    messages = Messages.of(values)
    fast, slow = decoder.decode(messages), decoder._read_each(messages)
    assert fast.frame.equals(slow.frame, null_equal=True) and fast.frame.schema == slow.frame.schema
    rows, others = (np.arange(len(values)) if one.rows is None else one.rows for one in (fast, slow))
    assert rows.tolist() == others.tolist()
    assert fast.refused.tolist() == slow.refused.tolist() and fast.reasons == slow.reasons
    return fast.checked(len(values), decoder.schema)


@each("seed", range(12))
def test_every_cut_and_damaged_byte_is_as_the_library_has_it(seed: int) -> None:
    chance = random.Random(seed)
    good = [message(chance).SerializeToString() for _ in range(3)]
    values: list[bytes | None] = [None, b"", *good, *(one for each in good for one in damaged(each)), *good]
    agree(protobuf("All", schema=TEXT), values)
    agree(protobuf("All", schema=TEXT, columns={"x": "n", "y": "a", "z": "t"}), values)
    whole = agree(protobuf("All", schema=TEXT), [*good, b"", *good])
    assert whole.frame.height == 7 and whole.rows is None


def test_good_messages_never_reach_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    decoder, chance, reached = protobuf("All", schema=TEXT), random.Random(1), []
    values = [message(chance).SerializeToString() for _ in range(50)]
    monkeypatch.setattr(Protobuf, "_read_each", lambda self, messages: reached.append(len(messages)))
    assert decoder.decode(Messages.of(values)).frame.height == 50 and not reached


@pytest.mark.parametrize(
    "value",
    [
        b"\x08" + b"\xff" * 9 + b"\x01",  # int64 -1
        b"\x08" + b"\xff" * 9 + b"\x03",  # 65 bits
        b"\x20\xff\xff\xff\xff\x0f",  # int32 of 32 ones, of which the library makes -1
        b"\x20" + b"\xff" * 9 + b"\x01",  # int32 -1
        b"\x28\xff\xff\xff\xff\x1f",  # uint32 of 33 bits
        b"\x30\xff\xff\xff\xff\x1f",  # sint32 of 33 bits
        b"\x38\x02",  # a Boolean 2
        b"\x88\x00\x05",  # a tag of two bytes where one is enough
        b"\x72\x81\x00a",  # such a length
        b"\x08\x80\x00",  # such an integer
        b"\x08\x01\x08\x02",  # the last one counts
        b"\x72\x01a\x72\x00",
        b"\x72\x02\xc3\x28",  # no UTF-8
        b"\x72\x03\xed\xa0\x80",
        b"\x0a\x01a",  # an int64 with another wire type
        b"\xfa\x01\x03abc",  # an unknown field
        b"\xfa\x01\x02\xff\xff",
        b"\x0b\x0c",  # a group
        b"\xfb\x01\xfc\x01",
        b"\x0e",  # wire type 6
        b"\x00\x00",  # field 0
        b"\x80\x01\x63",  # an enum's unknown number
        b"\x80\x01" + b"\xff" * 9 + b"\x01",
    ],
)
def test_values_at_the_edge_are_as_the_library_has_them(value: bytes) -> None:
    agree(protobuf("All", schema=TEXT), [value, b"", value + b"\x08\x07", None])


def test_fields_with_parts_are_read_by_the_library() -> None:
    assert protobuf("Mixed", schema=TEXT)._flat is None
    assert protobuf("Mixed", schema=TEXT, columns=["inner.a"])._flat is None
    assert protobuf("Mixed", schema=TEXT, columns=["y"])._flat is None
    beside = protobuf("Mixed", schema=TEXT, columns=["name"])
    assert beside._flat is not None
    some = [MIXED(name="a"), MIXED(name="b", many=[1]), MIXED(name="c", y=1), MIXED(inner={"a": 1})]
    values = [one.SerializeToString() for one in some]
    agree(beside, [*values, b"\x1a\x01\xff", *values])


def test_older_descriptions_are_as_the_library_has_them() -> None:
    for name in ("Needs", "More"):
        assert protobuf(name, schema=OLD)._flat is None
    old = protobuf("Old", schema=OLD)
    assert old._flat is not None
    agree(old, [b"", b"\x10\x05", b"\x0a\x01\xff", b"\x0a\x01a\x18\x01", None])
    assert protobuf("Sized", schema=OLD)._flat is None
    agree(protobuf("Sized", schema=OLD, columns=["n"]), [b"\x10\x05", b"\x08\x63\x10\x05", b"\x08\x01"])


def test_random_bytes_are_as_the_library_has_them() -> None:
    chance = random.Random(4)
    values: list[bytes | None] = [chance.randbytes(chance.randrange(12)) for _ in range(3_000)]
    agree(protobuf("All", schema=TEXT), values)


def test_a_registrys_messages_are_as_the_library_has_them() -> None:
    registry = SmallRegistry()
    number = registry.add("all-value", TEXT, kind="PROTOBUF")
    good = ALL(a=5, n="x").SerializeToString()
    values: list[bytes | None] = [
        *[framed(number, b"\0" + good)] * 3,
        framed(number, b"\x02\x02" + MIXED(name="x").SerializeToString()),
        framed(number, b"\x02\0" + good),  # its index written in full
        framed(number, b""),
        framed(number, b"\0" + good[:1]),
        framed(9_999, b"\0" + good),
        None,
        b"{}",
    ]
    with registry.served():
        decoder = protobuf("All", schema=TEXT, registry=registry.url)
        decoded = agree(decoder, values)
        assert decoded.frame["a"].to_list() == [5] * 4
        agree(decoder, values[3:])
        agree(protobuf("Mixed", schema=TEXT, columns=["name"], registry=registry.url), values)
