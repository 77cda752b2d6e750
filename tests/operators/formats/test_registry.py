"""A schema registry: versions resolved, unknown ids refused, waiting while it is away, no secret shown."""

from __future__ import annotations

import logging
import pickle
import subprocess
from pathlib import Path
from typing import Any

import pytest

from streamgauge.operators.formats.avro.decoder import avro
from streamgauge.operators.formats.decode import Decoded
from streamgauge.operators.formats.messages import Messages
from streamgauge.operators.formats.registry import Registry, UnknownSchema
from streamgauge.operators.formats.retryable_error import Unavailable

from .avro_records import written
from .schema_registry import SmallRegistry, framed

FIRST = {
    "type": "record",
    "name": "Post",
    "fields": [{"name": "user", "type": "string"}, {"name": "likes", "type": "int"}],
}
SECOND = {
    "type": "record",
    "name": "Post",
    "fields": [
        {"name": "lang", "type": ["null", "string"], "default": None},
        {"name": "author", "type": "string", "aliases": ["user"]},
        {"name": "likes", "type": "long"},
        {"name": "score", "type": "double", "default": 0.5},
    ],
}


def decode(decoder: Any, values: list[bytes | None]) -> Decoded:
    return decoder.decode(Messages.of(values)).checked(len(values), decoder.schema)


def first(user: str, likes: int) -> bytes:
    return written(FIRST, {"user": user, "likes": likes})


def second(author: str, likes: int, lang: str | None = None, score: float = 1.0) -> bytes:
    return written(SECOND, {"author": author, "likes": likes, "lang": lang, "score": score})


def test_versions_are_resolved_to_the_readers_schema(registry: SmallRegistry) -> None:
    one, two = registry.add("posts-value", FIRST), registry.add("posts-value", SECOND)
    values: list[bytes | None] = [framed(one, first("ann", 7)), framed(two, second("bob", 1 << 40, "en"))]
    decoded = decode(avro(SECOND, registry=registry.url), values)
    assert decoded.frame.rows() == [(None, "ann", 7, 0.5), ("en", "bob", 1 << 40, 1.0)]
    # The subject's latest version is the reader's where none is given.
    latest = avro(registry=registry.url, subject="posts-value", columns=["author", "score"])
    assert decode(latest, values).frame.rows() == [("ann", 0.5), ("bob", 1.0)]
    # Backwards, a long may not be an int.
    decoded = decode(avro(FIRST, registry=registry.url), values)
    assert decoded.frame.rows() == [("ann", 7)] and decoded.refused.tolist() == [1]
    assert "not Avro of the schema Post" in decoded.reasons[0]
    assert len([path for path in registry.requests if "/schemas/ids/" in path]) == 6


def test_each_schema_is_asked_for_once(registry: SmallRegistry) -> None:
    one = registry.add("posts-value", FIRST)
    decoder = avro(FIRST, registry=registry.url)
    for _ in range(3):
        assert decode(decoder, [framed(one, first("ann", 7))] * 5).frame.height == 5
    assert len(registry.requests) == 1


def test_what_the_registry_does_not_know_is_refused(registry: SmallRegistry) -> None:
    one = registry.add("posts-value", FIRST)
    other = registry.add("other", 'syntax = "proto3"; message M {}', "PROTOBUF")
    broken = registry.add("broken", {"type": "nope"})
    alien = registry.add("alien", {"type": "record", "name": "Alien", "fields": []})
    good = framed(one, first("ann", 7))
    values = [
        good,
        framed(77, first("bob", 1)),
        first("bob", 1),
        b"\0\0",
        b"",
        framed(other, b"\x02"),
        framed(broken, b"\x02"),
        framed(alien, b""),
        framed(one, b"\x06an"),
        None,
        good,
    ]
    decoder = avro(FIRST, registry=registry.url)
    decoded = decode(decoder, values)
    assert decoded.frame.rows() == [("ann", 7)] * 2 and decoded.refused.tolist() == list(range(1, 10))
    reported = [
        "the schema registry knows no schema 77",
        "not in the wire format of a schema registry: it begins with byte 6, not 0",
        "not in the wire format of a schema registry: it has 2 bytes",
        "not in the wire format of a schema registry: it has 0 bytes",
        f"its schema {other} is of PROTOBUF, not Avro",
        f"its schema {broken}: not a schema of Avro",
        "not Avro of the schema Alien: byte 5: SchemaResolutionError",
        "not Avro of the schema Post: byte 8: Expected 3 bytes, read 2",
        "no value (a tombstone)",
    ]
    assert [reason[: len(words)] for reason, words in zip(decoded.reasons, reported, strict=True)] == reported
    requested = len(registry.requests)
    assert decode(decoder, [framed(77, b"")]).refused.tolist() == [0]
    assert len(registry.requests) == requested  # not requested again at once


def test_a_schema_may_refer_to_others(registry: SmallRegistry) -> None:
    name = {"type": "record", "name": "x.Name", "fields": [{"name": "text", "type": "string"}]}
    actor = {"type": "record", "name": "x.Actor", "fields": [{"name": "name", "type": "x.Name"}]}
    post = {"type": "record", "name": "x.Post", "fields": [{"name": "actor", "type": "x.Actor"}]}
    registry.add("name", name)
    registry.add("actor", actor, references=[{"name": "x.Name", "subject": "name", "version": 1}])
    number = registry.add("post", post, references=[{"name": "x.Actor", "subject": "actor", "version": 1}])
    decoder = avro(registry=registry.url, subject="post", columns=["actor.name.text"])
    assert decode(decoder, [framed(number, b"\x06ann")]).frame.rows() == [("ann",)]


def test_units_of_time_are_converted_between_versions(registry: SmallRegistry) -> None:
    """Both are longs: read as they stand, they would be a thousand times off."""

    def timed(unit: str) -> dict[str, Any]:
        at = {"type": "long", "logicalType": f"timestamp-{unit}"}
        name = {"name": "id", "type": {"type": "string", "logicalType": "uuid"}, "default": ""}
        return {"type": "record", "name": "T", "fields": [{"name": "at", "type": ["null", at]}, name]}

    millis = registry.add("t", timed("millis"))
    micros = registry.add("t", timed("micros"))
    plain = registry.add("t", {"type": "record", "name": "T", "fields": [{"name": "at", "type": "long"}]})
    some_id = written("string", "5a1b0000-0000-4000-8000-000000000000")
    values = [
        framed(number, written(["null", "long"], at) + some_id)
        for number, at in ((millis, 5_000), (micros, 5_000_000))
    ]
    values.append(framed(plain, written("long", 5_000)))
    decoded = decode(avro(timed("millis"), registry=registry.url), values).frame["at"]
    assert decoded.dt.timestamp("ms").to_list() == [5_000] * 3


def test_a_registry_that_is_away_is_nobodys_fault(registry: SmallRegistry) -> None:
    number = registry.add("posts-value", FIRST)
    quick = {"url": registry.url, "max.retries": 0}
    decoder = avro(FIRST, registry=quick)
    values = [framed(number, first("ann", 7))]
    for status, passing in ((503, True), (429, True), (500, True), (401, False), (403, False), (400, False)):
        registry.fails = status
        with pytest.raises(
            Unavailable, match=f"{registry.url} failed to return schema {number}: it answers {status}"
        ) as reported:
            decoder.decode(Messages.of(values))
        assert reported.value.passing is passing
        assert pickle.loads(pickle.dumps(reported.value)).passing is passing
    registry.fails = None
    assert decode(decoder, values).frame.height == 1


def test_no_connection_is_waited_for() -> None:
    registry = SmallRegistry()
    with registry.served():
        number = registry.add("posts-value", FIRST)
        decoder = avro(FIRST, registry={"url": registry.url, "max.retries": 0})
    with pytest.raises(Unavailable, match="failed to return schema") as raised:
        decoder.decode(Messages.of([framed(number, first("ann", 7))]))
    assert raised.value.passing
    with registry.served():
        assert decode(decoder, [framed(number, first("ann", 7))]).frame.height == 1


def test_an_address_of_something_else_ends_the_run(registry: SmallRegistry) -> None:
    with pytest.raises(Unavailable, match="it answers 404") as raised:
        Registry.of(f"{registry.url}/nothing-here").schema(1)
    assert not raised.value.passing
    with pytest.raises(UnknownSchema, match="no latest version of the subject 'nope'"):
        avro(registry=registry.url, subject="nope")


def test_a_login_is_sent_and_never_shown(registry: SmallRegistry, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    registry.login = "me:tr0ut"
    number = registry.add("posts-value", FIRST)
    known = Registry.of({"url": registry.url, "basic.auth.user.info": "me:tr0ut"})
    assert known.schema(number).schema_type in (None, "AVRO")
    within = Registry.of(registry.url.replace("//", "//me:tr0ut@"))
    assert within.schema(number) is not None
    wrong = Registry.of({"url": registry.url, "basic.auth.user.info": "me:c4rp"})
    with pytest.raises(Unavailable, match=r"look at its settings, such as basic\.auth\.user\.info") as raised:
        wrong.schema(number)
    for shown in (repr(known), repr(within), within.address, str(raised.value), repr(wrong)):
        assert "tr0ut" not in shown and "c4rp" not in shown
    decoder = avro(FIRST, registry={"url": registry.url, "basic.auth.user.info": "me:tr0ut"})
    assert "/schemas/ids/" in caplog.text and "tr0ut" not in caplog.text
    assert "tr0ut" not in repr(decoder) and "tr0ut" not in str(decoder.definition())
    assert decode(pickle.loads(pickle.dumps(decoder)), [framed(number, first("ann", 1))]).frame.height == 1


def test_it_may_be_asked_by_tls(tmp_path: Path) -> None:
    named = "req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -days 2 -subj /CN=box"
    command = ["openssl", *named.split(), "-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run(command, cwd=tmp_path, capture_output=True, check=True)
    registry = SmallRegistry(certificate=tmp_path)
    number = registry.add("posts-value", FIRST)
    with registry.served():
        settings = {"url": registry.url, "ssl.ca.location": str(tmp_path / "cert.pem")}
        decoded = decode(avro(FIRST, registry=settings), [framed(number, first("ann", 7))])
        assert registry.url.startswith("https://") and decoded.frame.rows() == [("ann", 7)]
        with pytest.raises(Unavailable, match="certificate"):
            Registry.of({"url": registry.url, "max.retries": 0}).schema(number)
    with pytest.raises(ValueError, match=r"registry: .*No such file.*; look at ssl\.ca\.location=.*nowhere"):
        Registry.of({"url": registry.url, "ssl.ca.location": str(tmp_path / "nowhere.pem")})


def test_settings_that_its_client_does_not_take_are_refused() -> None:
    with pytest.raises(ValueError, match=r"registry: Unrecognized properties: basic\.auth"):
        Registry.of({"url": "http://box", "basic.auth": "me:tr0ut"})
    with pytest.raises(ValueError, match=r"registry: basic\.auth\.user\.info must be") as raised:
        Registry.of({"url": "http://box", "basic.auth.user.info": "tr0ut"})
    assert "tr0ut" not in str(raised.value)
    with pytest.raises(TypeError, match="name its address"):
        Registry.of({"basic.auth.user.info": "me:tr0ut"})
    with pytest.raises(ValueError, match="registry: Invalid url box:8081"):
        Registry.of("box:8081")
    with pytest.raises(TypeError, match="give a schema, or a registry and a subject"):
        avro(registry="http://box")
    with pytest.raises(ValueError, match="not both"):
        avro("string", registry="http://box", subject="posts-value")
