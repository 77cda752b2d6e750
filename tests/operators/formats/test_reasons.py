"""Every format takes any bytes: each message is a row or is refused, for a reason whose kind has one name."""

from __future__ import annotations

import json as plain_json
import pickle
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from io import BytesIO
from typing import Any

import fastavro
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from streamgauge import Stream, StreamTester, count
from streamgauge.apps.app import Feed
from streamgauge.apps.jobs.job import Job
from streamgauge.apps.registry import APPS, app_of
from streamgauge.operators.formats.avro.decoder import avro
from streamgauge.operators.formats.json.decoder import json
from streamgauge.operators.formats.json.fields import field
from streamgauge.operators.formats.messages import Messages
from streamgauge.operators.formats.protobuf.decoder import protobuf
from streamgauge.operators.formats.reasons import Reason, kind_of, preceded
from streamgauge.operators.formats.text.access_log import access_log
from streamgauge.operators.formats.text.csv import csv
from streamgauge.operators.formats.text.plain import raw, text
from streamgauge.operators.formats.text.syslog import syslog

from ...cases import each

KINDS: dict[str, Any] = {"user": pl.String, "n": pl.Int16, "x": pl.Float64, "at": pl.Datetime("us", "UTC")}
NESTED = {
    **KINDS,
    "text": field("in.text", pl.Float64, text=True),
    "blob": pl.Binary,
    "lists": pl.List(pl.Struct({"at": pl.Datetime("us"), "n": pl.List(pl.Int8)})),
}
AVRO = {
    "type": "record",
    "name": "Order",
    "fields": [{"name": "user", "type": "string"}, {"name": "n", "type": ["null", "int"]}],
}
PROTO = (
    'syntax = "proto3"; message Order { string user = 1; repeated int32 n = 2; Inner inner = 3; } '
    "message Inner { string name = 1; }"
)
PATTERN = r"^(?<user>\w+) (?<n>\S+) (?<x>\S+) (?<at>\S+)$"


def avro_bytes(files: bool) -> bytes:
    file, record = BytesIO(), {"user": "ann", "n": 7}
    schema = fastavro.parse_schema(AVRO)
    fastavro.writer(file, schema, [record]) if files else fastavro.schemaless_writer(file, schema, record)
    return file.getvalue()


OBJECT = (
    b'{"user":"ann","n":7,"x":1.5,"at":"2026-01-01T00:00:00Z","in":{"text":"1"},"blob":[],'
    b'"lists":[{"at":"2026-01-01","n":[1]}]}'
)
RECORD = b'"ann",7,1.5,2026-01-01T00:00:00Z\n'
LINE = b'::1 - ann [17/May/2015:10:05:03 +0200] "GET /a?b=1 HTTP/1.1" 200 17 "-" "curl/8" 0.25'
GOOD: dict[str, tuple[Any, bytes]] = {
    "json": (json(NESTED), OBJECT),
    "csv": (csv(KINDS), RECORD),
    "csv with a header": (csv(KINDS, header=True), b"user,n,x,at\n" + RECORD),
    "csv of many": (csv(KINDS, many="records"), RECORD + RECORD),
    "csv of one field": (csv({"user": pl.String}, quote=None), b"ann"),
    "text": (text(PATTERN, KINDS), b"ann 7 1.5 2026-01-01"),
    "text of many": (text(PATTERN, KINDS, many="lines"), b"ann 7 1.5 2026-01-01\nbob 8 2 2026-01-02"),
    "access log": (access_log(), LINE),
    "syslog": (syslog("Europe/Berlin"), b"<34>Dec 31 23:59:58 web su[7]: failed"),
    "new syslog": (syslog(), b'<165>1 2026-01-01T00:00:03Z web app 8 ID47 [a b="c"] up'),
    "raw": (raw("line", pl.String), b"line"),
    "avro": (avro(AVRO), avro_bytes(False)),
    "avro files": (avro(AVRO, many="records"), avro_bytes(True)),
    "protobuf": (protobuf("Order", schema=PROTO), b"\x0a\x03ann\x10\x07\x1a\x05\x0a\x03bob"),
}


OF_APPS = {
    "csv": b"Date,Close\n2026-01-02,5",
    "zeek": b"#separator \\x09\n#fields\tts\tuid\n1767225600\ta",
    "access": LINE,
}


def app_decoders() -> dict[str, tuple[Any, bytes]]:
    """Those of the apps that need no further package, no settings and no broker."""
    by_key = {}
    for name in APPS:
        for form in app_of(name).formats:
            if form.name == "sparkplug":  # its decoder reads births from a broker
                continue
            try:
                job = Job.of(app_of(name), form.name, {})
                stream = next(iter(job.streams(Feed("t", "localhost:1")).values()))
            except (ImportError, ValueError):
                continue
            by_key[f"{name} {form.name}"] = stream.reading.kafka_source.value, OF_APPS.get(form.name, OBJECT)
    return by_key


def decoders() -> Iterator[Any]:
    for name, case in {**GOOD, **app_decoders()}.items():
        yield pytest.param(*case, id=name)


def damaged(good: bytes) -> st.SearchStrategy[bytes]:
    """A message as it is, cut, with some bytes in place of others, or any bytes at all."""
    place = st.integers(0, len(good))
    put = st.binary(max_size=4) | st.sampled_from([b'"', b"\n", b"\r", b","])
    cut = st.tuples(place, place, put).map(lambda at: good[: at[0]] + at[2] + good[at[1] :])
    return st.just(good) | cut | st.binary(max_size=40) | st.text(max_size=20).map(str.encode)


SLOW = HealthCheck.too_slow
"""What a busy machine is: no reason to fail."""


@pytest.mark.slow
@pytest.mark.parametrize("examples", [6, pytest.param(60, marks=pytest.mark.soak)])
@each(("decoder", "good"), decoders)
def test_any_bytes_are_rows_or_refused_and_each_message_is_judged_alone(
    decoder: Any, good: bytes, examples: int
) -> None:
    @settings(max_examples=examples, deadline=None, derandomize=True, suppress_health_check=[SLOW])
    @given(st.lists(damaged(good) | st.none(), max_size=4))
    def check(values: list[bytes | None]) -> None:
        decoded = decoder.decode(Messages.of(values)).checked(len(values), decoder.schema)
        alone = [decoder.decode(Messages.of([value])).checked(1, decoder.schema) for value in values]
        assert decoded.refused.tolist() == [row for row, one in enumerate(alone) if len(one.refused)]
        assert decoded.frame.rows() == [row for one in alone for row in one.frame.rows()] or "nan" in str(
            decoded
        )
        assert decoded.reasons == [reason for one in alone for reason in one.reasons]

    check()


def texts(pattern: str) -> list[bytes]:
    """Messages that differ in one value."""
    return [(pattern % word).encode() for word in ("cheap", "9,5", "it's", 'a"b', "x1", "77-", "é", "Int16")]


BAD: dict[str, tuple[Any, Sequence[bytes]]] = {
    "a string for a number": (json(NESTED), [b'{"n":"%d"}' % n for n in range(9)]),
    "out of range": (json(NESTED), [b'{"n":%d}' % n for n in range(40_000, 40_009)]),
    "a fraction": (json(NESTED), [b'{"n":%d.5}' % n for n in range(9)]),
    "a double too large": (json(NESTED), [b'{"x":%de400}' % n for n in range(1, 9)]),
    "an invalid time": (json(NESTED), [b'{"at":"%d"}' % n for n in range(9)]),
    "text that is no number": (json(NESTED), [b'{"in":{"text":"%dx"}}' % n for n in range(9)]),
    "an element": (json(NESTED), [b'{"lists":[{},{"at":"%d"}]}' % n for n in range(9)]),
    "some element": (json(NESTED), [b'{"lists":[%s{"n":1}]}' % (n * b"{},") for n in range(9)]),
    "not json": (json(NESTED), [n * b" " + b"{a" for n in range(9)]),
    "not unicode": (json(NESTED), [b'{"%s":"\\ud800"}' % (n * b"k") for n in range(9)]),
    "a cell": (csv(KINDS, delimiter=";"), [one.replace(b'"', b"") for one in texts("ann;%s;1;2026-01-01")]),
    "a number of cells": (csv(KINDS), [n * b"," for n in (0, 1, 2, 4, 5, 6)]),
    "quotes": (csv(KINDS), [n * b"\n" + b'"a"b' for n in range(1, 9)]),
    "some record": (csv(KINDS, many="r"), [n * RECORD + b"ann,x,1,2026-01-01" for n in range(9)]),
    "no match": (text(PATTERN, KINDS), texts("%s")),
    "some line": (text(PATTERN, KINDS, many="r"), [n * b"a 1 1 2026-01-01\n" + b"b" for n in range(9)]),
    "no access": (access_log(), texts("%s")),
    "no time of access": (access_log(), [LINE.replace(b"May", b"M%dy" % n) for n in range(9)]),
    "no syslog": (syslog(), texts("%s")),
    "no time in syslog": (syslog(), [b"<34>Dxx 3%d 23:59:58 web su: failed" % n for n in range(9)]),
    "a priority": (syslog(), [b"<%d>1 2026-01-01T00:00:03Z a b - - - c" % n for n in range(200, 209)]),
    "avro": (avro(AVRO), [bytes([2 * n]) + n * b"a" + b"\x07" for n in range(9)]),
    "avro files": (avro(AVRO, many="r"), [avro_bytes(True)[:cut] for cut in range(5, 60, 9)]),
    "protobuf": (protobuf("Order", schema=PROTO), [bytes([10, n]) for n in range(1, 9)]),
}


@each(("decoder", "values"), BAD.values(), ids=BAD)
def test_messages_with_the_same_fault_have_reasons_of_one_kind(decoder: Any, values: Sequence[bytes]) -> None:
    decoded = decoder.decode(Messages.of(values, timestamps=[1_767_225_602_000] * len(values)))
    assert len(decoded.refused) == len(values)
    kinds = {kind_of(reason) for reason in decoded.reasons}
    assert len(kinds) == 1 and all(isinstance(reason, Reason) for reason in decoded.reasons), kinds


class Fails:
    """A decoder of somebody's own, whose errors hold values."""

    schema = {"n": pl.Int64}  # noqa: RUF012

    def decode(self, messages: Messages) -> Any:
        return pl.Series([int(value) for value in messages.text])


def test_what_steps_times_and_decoders_fail_with_groups_too() -> None:
    def reasons(stream: Stream, values: Sequence[bytes]) -> set[str]:
        tester = StreamTester(stream.tumbling("1m").agg(n=count()), start=datetime(2026, 1, 1, tzinfo=UTC))
        tester.feed_messages(list(values))
        assert len(tester.refused) == len(values)
        return {kind_of(letter.reason) for letter in tester.refused}

    values = [plain_json.dumps({"at": f"soon {n}", "word": f"w{n}"}).encode() for n in range(20)]
    rows = Stream.from_kafka("t", value=json({"at": pl.String, "word": pl.String}))
    timed = Stream.from_kafka("t", value=json({"at": pl.String, "word": pl.String}), time="at")
    assert reasons(timed, values) == {'no event time: "at" is not a time in ISO 8601'}
    (cast,) = reasons(rows.filter(pl.col("word").cast(pl.Int64) > 0), values)
    assert cast.startswith("conversion from `str` to `i64` failed")
    assert reasons(Stream.from_kafka("t", value=Fails()), [b"a", b"b"]) == {"the decoder failed: ValueError"}


def test_reasons_are_text_that_pickles() -> None:
    reason = preceded("the key: ", Reason("no price", "no price: 'x'"))
    again = pickle.loads(pickle.dumps(reason))
    assert again == "the key: no price: 'x'" and kind_of(again) == "the key: no price"
    assert type(again) is Reason
