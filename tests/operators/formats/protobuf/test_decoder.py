"""Protobuf into typed columns: against its own library's reading, each message judged by itself."""

from __future__ import annotations

import pickle
import random
from datetime import UTC, datetime, timedelta
from typing import Any

import polars as pl
import pytest

from streamgauge.operators.definition.decoders import decoder_definition
from streamgauge.operators.formats.decode import Decoded
from streamgauge.operators.formats.messages import Messages
from streamgauge.operators.formats.protobuf.decoder import protobuf
from streamgauge.operators.formats.protobuf.files import compiled, files_of, message_class

from ..schema_registry import SmallRegistry, framed

TEXT = """
syntax = "proto3";
package shop;
import "google/protobuf/timestamp.proto";
import "google/protobuf/duration.proto";
import "google/protobuf/wrappers.proto";
import "google/protobuf/struct.proto";

message Order {
  enum Kind { UNKNOWN = 0; BUY = 1; SELL = 2; }
  message Actor { string id = 1; optional string name = 2; Actor boss = 3; }
  int64 id = 1;
  string user = 2;
  optional double price = 3;
  Kind kind = 4;
  google.protobuf.Timestamp at = 5;
  Actor actor = 6;
  repeated string tags = 7;
  map<string, int32> counts = 8;
  oneof paid { string card = 9; uint64 cash = 10; }
  google.protobuf.Duration duration = 11;
  google.protobuf.StringValue note = 12;
  repeated Kind kinds = 13;
  bytes blob = 14;
  bool done = 15;
  google.protobuf.Struct more = 16;
  fixed32 small = 17;
  float ratio = 18;
  repeated google.protobuf.Timestamp times = 19;
}
message Refund { int64 id = 1; }
"""
FILES = compiled("shop.proto", {"shop.proto": TEXT})
ORDER = message_class(FILES, "shop.Order")
COLUMNS = [f.name for f in ORDER.DESCRIPTOR.fields if f.name != "actor"] + ["actor.id", "actor.name"]
AT = datetime(2026, 1, 1, tzinfo=UTC)


def decode(decoder: Any, values: list[bytes | None]) -> Decoded:
    return decoder.decode(Messages.of(values)).checked(len(values), decoder.schema)


def full() -> Any:
    order = ORDER(id=7, user="ann", price=0.0, kind=2, tags=["a", "b"], counts={"x": 1}, cash=9)
    order.at.FromDatetime(AT)
    order.duration.FromTimedelta(timedelta(seconds=-1.5))
    order.actor.id = "u1"
    order.note.value = ""
    order.kinds.extend([1, 7])
    order.blob, order.done, order.small, order.ratio = b"\xff", True, 2**32 - 1, 0.5
    order.more.update({"k": [1, "é"]})
    order.times.add().FromDatetime(AT)
    return order


def test_each_sort_of_field() -> None:
    decoder = protobuf("shop.Order", schema=TEXT, columns=COLUMNS)
    decoded = decode(decoder, [full().SerializeToString(), b"", ORDER(kind=9, card="c").SerializeToString()])
    first, empty, other = decoded.frame.to_dicts()
    assert first == {
        "id": 7,
        "user": "ann",
        "price": 0.0,
        "kind": "SELL",
        "at": AT,
        "tags": ["a", "b"],
        "counts": [{"key": "x", "value": 1}],
        "card": None,
        "cash": 9,
        "duration": timedelta(seconds=-1.5),
        "note": "",
        "kinds": ["BUY", "7"],
        "blob": b"\xff",
        "done": True,
        "more": '{"k": [1.0, "é"]}',
        "small": 2**32 - 1,
        "ratio": 0.5,
        "times": [AT],
        "actor.id": "u1",
        "actor.name": None,
    }
    # What has a presence is null, the rest has Protobuf's default.
    nulls = {name for name, value in empty.items() if value is None}
    assert nulls == {"price", "at", "card", "cash", "duration", "note", "more", "actor.id", "actor.name"}
    assert (empty["id"], empty["user"], empty["kind"], empty["tags"], empty["counts"]) == (
        0,
        "",
        "UNKNOWN",
        [],
        [],
    )
    assert (other["kind"], other["card"], other["cash"]) == ("9", "c", None)
    types = decoder.schema
    assert types["at"] == pl.Datetime("us", "UTC") and types["duration"] == pl.Duration("us")
    assert types["small"] == pl.UInt32 and types["ratio"] == pl.Float32 and types["blob"] == pl.Binary


def test_all_ways_to_describe_a_message_are_one() -> None:
    from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet

    described = FileDescriptorSet(file=[FileDescriptorProto.FromString(file) for file in FILES])
    alone = FileDescriptorSet(file=described.file[-1:])  # those of Protobuf itself are known
    value = full().SerializeToString()
    decoders = [
        protobuf(ORDER, columns=["id", "at"]),
        protobuf("shop.Order", schema=TEXT, columns=["id", "at"]),
        protobuf("shop.Order", schema=described, columns=["id", "at"]),
        protobuf("shop.Order", schema=alone.SerializeToString(), columns=["id", "at"]),
    ]
    assert [decode(decoder, [value]).frame.rows() for decoder in decoders] == [[(7, AT)]] * 4
    (reported,) = {str(decoder_definition(decoder)) for decoder in decoders}
    assert "'message': 'shop.Order'" in reported
    again = pickle.loads(pickle.dumps(decoders[0]))
    assert again == decoders[0] and decode(again, [value]).frame.rows() == [(7, AT)]


def test_another_number_is_another_definition_and_another_field_is_not() -> None:
    one = 'syntax = "proto3"; message M { int32 a = 1; }'
    more = 'syntax = "proto3"; message M { int32 a = 1; int32 b = 2; }'
    moved = 'syntax = "proto3"; message M { int32 a = 2; }'
    reported = [decoder_definition(protobuf("M", schema=text, columns=["a"])) for text in (one, more, moved)]
    assert reported[0] == reported[1] != reported[2]


def test_unknown_fields_are_ignored() -> None:
    more = 'syntax = "proto3"; message M { int32 a = 1; string b = 2; M c = 3; }'
    cls = message_class(files_of(more), "M")
    value = cls(a=5, b="x", c=cls(a=6)).SerializeToString()
    less = protobuf(schema='syntax = "proto3"; message M { int32 a = 1; }')
    assert decode(less, [value]).frame.rows() == [(5,)]


@pytest.mark.parametrize("seed", range(6))
def test_broken_bytes_cost_themselves_alone(seed: int) -> None:
    """A message is what the library makes of it, or a dead letter; the good ones between are all there."""
    chance = random.Random(seed)
    good = full().SerializeToString()
    values: list[bytes] = []
    for _ in range(100):
        at = chance.randrange(len(good))
        flipped = bytearray(good)
        flipped[at] ^= 1 << chance.randrange(8)
        huge = good[:at] + b"\xff\xff\xff\xff\xff\xff\xff\xff\x7f" + good[at:]
        values += [good, good[:at], bytes(flipped), huge, chance.randbytes(20)]
    decoded = decode(protobuf(ORDER, columns=["id", "user", "price", "tags"]), values)
    rows = dict(zip(decoded.rows.tolist(), decoded.frame.rows()))
    for number, value in enumerate(values):
        try:
            reported = ORDER.FromString(value)
        except Exception:
            reported = None
        assert (reported is not None) is (number in rows)
        if reported is not None:
            price = reported.price if reported.HasField("price") else None
            assert str(rows[number]) == str((reported.id, reported.user, price, list(reported.tags)))
    assert all(number in rows for number in range(0, 500, 5)) and decoded.refused.size > 50
    assert all("not Protobuf of the message shop.Order" in reason for reason in decoded.reasons)


def test_what_is_required_must_be_there() -> None:
    text = 'syntax = "proto2"; message M { required int32 a = 1; optional M m = 2; optional string s = 3; }'
    decoder = protobuf("M", schema=text, columns=["a", "s"])
    decoded = decode(decoder, [b"\x08\x05", b"", b"\x08\x05\x12\x00", b"\x12" * 5_000])
    assert decoded.frame.rows() == [(5, None)]
    assert decoded.reasons[:2] == [
        "not Protobuf of the message M: it has no a",
        "not Protobuf of the message M: it has no m.a",
    ]


def test_what_can_not_be_is_refused() -> None:
    with pytest.raises(TypeError, match=r"'actor\.boss' holds shop\.Order\.Actor within itself"):
        protobuf(ORDER)
    with pytest.raises(ValueError, match="no field 'usr'; there are id, user"):
        protobuf(ORDER, columns=["usr"])
    with pytest.raises(ValueError, match=r"no field 'at\.seconds'; it leads into what has no fields"):
        protobuf(ORDER, columns=["at.seconds"])
    with pytest.raises(
        ValueError, match=r"there is no message 'Order'; there are shop\.Order, shop\.Order\.Actor"
    ):
        protobuf("Order", schema=TEXT)
    with pytest.raises(ValueError, match=r"name one of the messages: shop\.Order"):
        protobuf(schema=TEXT)
    with pytest.raises(ValueError, match=r"given\.proto:1:1"):
        protobuf("M", schema="mesage M {}")
    with pytest.raises(ValueError, match=r"other\.proto: File not found"):
        protobuf("M", schema='syntax = "proto3"; import "other.proto"; message M {}')
    with pytest.raises(ValueError, match="not a FileDescriptorSet"):
        protobuf("M", schema=b"\xff\xff")
    with pytest.raises(TypeError, match="not int"):
        protobuf("M", schema=7)
    with pytest.raises(TypeError, match="give a message class"):
        protobuf("M")


def test_a_registry_names_the_message(registry: SmallRegistry) -> None:
    number = registry.add("orders-value", TEXT, "PROTOBUF", serialized=FILES[-1])
    plain = registry.add("plain", TEXT, "PROTOBUF")  # a registry that gives text only
    other = registry.add("other", {"type": "string"})
    order, refund = full().SerializeToString(), b"\x08\x05"
    values: list[bytes | None] = [
        framed(number, b"\x00" + order),
        framed(number, b"\x02\x00" + order),
        framed(plain, b"\x00" + order),
        framed(number, b"\x02\x02" + refund),
        framed(number, b"\x02\x08" + refund),
        framed(number, b"\x04\x00\x00" + b""),
        framed(number, b""),
        framed(number, b"\xff\xff\xff\xff\xff\xff"),
        framed(77, b"\x00" + order),
        framed(other, b"\x00" + order),
        order,
        framed(number, b"\x00" + order[:-1]),
        None,
    ]
    latest = protobuf("shop.Order", registry=registry.url, subject="orders-value", columns=["id", "at"])
    for decoder in (latest, protobuf(ORDER, registry=registry.url, columns=["id", "at"])):
        decoded = decode(decoder, values)
        assert decoded.frame.rows() == [(7, AT)] * 3 and decoded.refused.tolist() == list(range(3, 13))
        reported = [
            "its message is shop.Refund, not shop.Order",
            f"its message is none that its schema {number} has, at [4], not shop.Order",
            "its message is shop.Order.Actor, not shop.Order",
            "not in the wire format of a schema registry: its message indexes end too early",
            "not in the wire format of a schema registry",
            "the schema registry knows no schema 77",
            f"its schema {other} is of AVRO, not Protobuf",
            "not in the wire format of a schema registry: it begins with byte 8, not 0",
            "not Protobuf of the message shop.Order",
            "no value (a tombstone)",
        ]
        assert [
            reason[: len(words)] for reason, words in zip(decoded.reasons, reported, strict=True)
        ] == reported
    assert decoder_definition(latest)["framed"] is True


def test_a_registered_schema_may_import_another(registry: SmallRegistry) -> None:
    actor = 'syntax = "proto3"; package a; message Actor { string id = 1; }'
    post = 'syntax = "proto3"; import "lib/actor.proto"; message Post { a.Actor actor = 1; }'
    files = compiled("post.proto", {"post.proto": post, "lib/actor.proto": actor})
    refers = [{"name": "lib/actor.proto", "subject": "actor", "version": 1}]
    registry.add("actor", actor, "PROTOBUF", serialized=files[0])
    one = registry.add("post", post, "PROTOBUF", refers, serialized=files[1])
    registry.add("actor-text", actor, "PROTOBUF")
    refers = [{"name": "lib/actor.proto", "subject": "actor-text", "version": 1}]
    two = registry.add("post-text", post, "PROTOBUF", refers)
    value = b"\x00\x0a\x05\x0a\x03ann"
    for subject in ("post", "post-text"):
        decoder = protobuf(registry=registry.url, subject=subject, columns=["actor.id"])
        decoded = decode(decoder, [framed(one, value), framed(two, value)])
        assert decoded.frame.rows() == [("ann",), ("ann",)]
