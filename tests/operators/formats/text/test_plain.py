"""Text into columns by a regular expression, or as it is."""

from __future__ import annotations

import pickle
import re
from typing import Any

import polars as pl
import pytest

from streamgauge.operators.definition.decoders import decoder_definition
from streamgauge.operators.formats.decode import Decoded
from streamgauge.operators.formats.messages import Messages
from streamgauge.operators.formats.text.plain import raw, text

LOG = r'^(?P<ip>\S+) "(?<path>[^"]*)" (?<status>\d+)(?: (?<ms>\S+))?$'
SCHEMA = {"status": pl.Int16, "ip": pl.String, "ms": pl.Float64}


def decode(decoder: Any, values: list[bytes | None]) -> Decoded:
    return decoder.decode(Messages.of(values)).checked(len(values), decoder.schema)


def test_named_groups_are_columns() -> None:
    values: list[bytes | None] = [
        b'::1 "/a b" 200 1.5\n',
        b'::2 "" 404\r\n',
        b'::1 "/a" 99999',
        b'::1 "/a" 200 fast',
        b"hello",
        b"",
        b"\xff",
        None,
        '::3 "/ü漢" 200 0'.encode(),
    ]
    decoded = decode(text(LOG, SCHEMA), values)
    assert decoded.frame.rows() == [(200, "::1", 1.5), (404, "::2", None), (200, "::3", 0.0)]
    assert decoded.refused.tolist() == [2, 3, 4, 5, 6, 7]
    assert decoded.reasons == [
        "\"status\" is '99999', not Int16",
        "\"ms\" is 'fast', not Float64",
        "no match: 'hello'",
        "no match: ''",
        "not UTF-8 text",
        "no value (a tombstone)",
    ]


def test_python_reads_the_same() -> None:
    pattern = r"^(?P<a>\d*)-(?P<b>[a-z]+)?-(?P<c>.*)$"
    values = [f"{i % 7 or ''}-{'xyz'[: i % 4]}-{'é' * (i % 3)} {i}" for i in range(200)]
    decoded = decode(text(pattern, dict.fromkeys("abc", pl.String)), [value.encode() for value in values])
    assert decoded.frame.rows() == [re.search(pattern, value).groups() for value in values]


def test_several_lines_a_message() -> None:
    decoder = text(r"^(?<k>\w+)=(?<v>\d+)$", {"k": pl.String, "v": pl.UInt8}, many="lines")
    decoded = decode(decoder, [b"a=1\r\nb=2\n", b"", b"c=3", b"d=4\nnope\ne=x", b"f=1\nf=300", None])
    assert decoded.frame["lines"].to_list() == [
        [{"k": "a", "v": 1}, {"k": "b", "v": 2}],
        [],
        [{"k": "c", "v": 3}],
    ]
    assert decoded.reasons == [
        "line 2: no match: 'nope'",
        "line 2: \"v\" is '300', not UInt8",
        "no value (a tombstone)",
    ]
    assert decode(decoder, []).frame.height == 0 and decode(decoder, [b""]).frame["lines"].to_list() == [[]]


def test_an_expression_that_would_run_for_ever_elsewhere_ends() -> None:
    decoder = text(r"^(?<x>(a+)+)$", {"x": pl.String})
    assert decode(decoder, [b"a" * 5_000 + b"b"]).refused.tolist() == [0]


def test_what_can_not_be_is_refused_and_the_rest_is_written_down() -> None:
    with pytest.raises(ValueError, match="is not a regular expression of Rust"):
        text("(?<x>a", {"x": pl.String})
    with pytest.raises(
        ValueError, match=r"y is not a named group of the expression, as in \(\?<y>…\); it has x"
    ):
        text("(?<x>a)", {"y": pl.String})
    with pytest.raises(ValueError, match="it has none"):
        text("(a)", {"y": pl.String})
    with pytest.raises(TypeError, match="the pattern must be"):
        text(re.compile("a"), {"y": pl.String})
    with pytest.raises(TypeError, match="text: the schema must map"):
        text("(?<x>a)", {})
    decoder = text(LOG, SCHEMA)
    assert pickle.loads(pickle.dumps(decoder)) == decoder
    reported = decoder_definition(decoder)
    assert reported["pattern"] == LOG and reported["fields"]["ms"] == "float64"


def test_values_as_they_are() -> None:
    values: list[bytes | None] = [b"a\n", b"", b"\xff", None]
    decoded = decode(raw(), values)
    assert decoded.frame["value"].to_list() == [b"a\n", b"", b"\xff"]
    decoded = decode(raw("line", pl.String), values)
    assert decoded.frame["line"].to_list() == ["a\n", ""]
    assert decoded.reasons == ["not UTF-8 text", "no value (a tombstone)"]
    with pytest.raises(TypeError, match=r"must be pl.Binary or pl.String, got Int64"):
        raw("n", pl.Int64)
