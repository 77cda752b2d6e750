"""JSON into typed columns: every row judged by itself, nothing silently null, against Python's own reader."""

from __future__ import annotations

import json as python_json
import math
import pickle
import struct
from datetime import UTC, date, datetime, time
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from streamgauge.operators.formats.decode import Decoded
from streamgauge.operators.formats.json.decoder import json
from streamgauge.operators.formats.messages import Messages

from ....cases import each

SCHEMA = {"s": pl.String, "i": pl.Int64, "f": pl.Float64, "b": pl.Boolean, "tags": pl.List(pl.String)}


def decode(values: list[bytes | None], schema: dict[str, Any] | None = None) -> Decoded:
    return json(SCHEMA if schema is None else schema).decode(Messages.of(values))


def one(value: bytes, dtype: Any) -> Any:
    """The value that ``{"x": value}`` gives, or the reason why it gives none."""
    decoded = decode([b'{"x": %b}' % value], {"x": dtype})
    return decoded.frame["x"].to_list()[0] if decoded.frame.height else decoded.reasons[0]


def test_rows_columns_and_types() -> None:
    decoded = decode(
        [
            b'{"s":"a","i":1,"f":1.5,"b":true,"tags":["x","y"]}',
            b' { "tags" : [ ] , "b" : false , "other" : {"deep":[1,{"s":"no"}]} , "s" : "" } ',
            b"{}",
            b'{"s":null,"i":null,"f":null,"b":null,"tags":null}',
            b'{"tags":["x",null],"f":3,"i":-9223372036854775808}',
        ]
    )
    assert dict(decoded.frame.schema) == SCHEMA
    assert decoded.frame.rows() == [
        ("a", 1, 1.5, True, ["x", "y"]),
        ("", None, None, False, []),
        (None,) * 5,
        (None,) * 5,
        (None, -(2**63), 3.0, None, ["x", None]),
    ]
    assert decoded.rows is None
    assert (decoded.refused.tolist(), decoded.reasons) == ([], [])


def test_each_bad_message_is_found_with_its_reason() -> None:
    good = b'{"s":"good","i":5}'
    bad = {
        b"": "an empty value",
        b" ": "not JSON: byte 1",
        b"hello": "not JSON: byte 0",
        b'{"s":"a"': "not JSON: byte 8",
        b'{"s":"a",}': "not JSON: byte 9",
        b'{"s" "a"}': "not JSON: byte 5",
        b'{"s":"a"}{"s":"b"}': "not JSON: byte 9",
        b'{"s":"a\nb"}': "not JSON: byte 7",
        b'{"other":[1,]}': "not JSON: byte 12",
        b'{"other":tru}': "not JSON: byte 9",
        b'{"i":01}': "not JSON: byte 5",
        b"[1]": "not a JSON object",
        b'"text"': "not a JSON object",
        b"null": "not a JSON object",
        b'{"s":"\xff"}': "text that is not Unicode: byte 6",
        b'{"other":"\xed\xa0\x80"}': "text that is not Unicode: byte 10",
        rb'{"s":"\ud800"}': "text that is not Unicode: byte 0",
        b'{"s":5}': '"s" is 5, not String',
        b'{"s":{"a":1}}': '"s" is an object, not String',
        b'{"s":[1,2]}': '"s" is a list, not String',
        b'{"s":true}': '"s" is true, not String',
        b'{"i":"7"}': '"i" is a string, not Int64',
        b'{"i":7.0}': '"i" is 7.0, not a whole number (Int64)',
        b'{"i":1e3}': '"i" is 1e3, not a whole number (Int64)',
        b'{"i":9223372036854775808}': '"i" is 9223372036854775808, out of the range of Int64',
        b'{"f":"1.5"}': '"f" is a string, not Float64',
        b'{"f":1e999}': '"f" is 1e999, out of the range of Float64',
        b'{"b":1}': '"b" is 1, not Boolean',
        b'{"tags":"x"}': '"tags" is a string, not List(String)',
        b'{"tags":["x",1]}': '"tags" holds a value that is not String',
        b'{"tags":["x"': "not JSON: byte 12",
    }
    values: list[bytes | None] = [good]
    for value in bad:
        values += [value, good]
    values += [None]
    decoded = decode(values)
    assert decoded.frame.height == len(bad) + 1
    assert decoded.frame["s"].unique().to_list() == ["good"]
    assert decoded.rows is not None
    assert decoded.rows.tolist() == list(range(0, len(values), 2))
    assert decoded.refused.tolist() == [*range(1, len(values), 2)]
    assert dict(zip([*bad, None], decoded.reasons)) == {**bad, None: "no value (a tombstone)"}


@each(
    ("value", "dtype", "expected"),
    [
        (b'"2026-01-02T03:04:05Z"', pl.Datetime("us", "UTC"), datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)),
        (b'"2026-01-02T03:04:05.25+01:00"', pl.Datetime("us"), datetime(2026, 1, 2, 2, 4, 5, 250_000)),
        (b'"2026-01-02 03:04:05"', pl.Datetime("ms"), datetime(2026, 1, 2, 3, 4, 5)),
        (b'"2026-01-02T03:04:05.123456"', pl.Datetime("us"), datetime(2026, 1, 2, 3, 4, 5, 123_456)),
        (b'"1970-01-01T00:00:00Z"', pl.Datetime("us", "UTC"), datetime(1970, 1, 1, tzinfo=UTC)),
        (b'"2100-12-31T23:59:59Z"', pl.Datetime("us", "UTC"), datetime(2100, 12, 31, 23, 59, 59, tzinfo=UTC)),
        (b'"yesterday"', pl.Datetime("us", "UTC"), "\"x\" is 'yesterday', not Datetime"),
        (b"1700000000", pl.Datetime("us", "UTC"), '"x" is 1700000000, not Datetime'),
        (b'"2026-02-30"', pl.Date, "\"x\" is '2026-02-30', not Date"),
        (b'"2026-02-28"', pl.Date, date(2026, 2, 28)),
        (b'"12:30:01.5"', pl.Time, time(12, 30, 1, 500_000)),
        (b"127", pl.Int8, 127),
        (b"-128", pl.Int8, -128),
        (b"128", pl.Int8, '"x" is 128, out of the range of Int8'),
        (b"-129", pl.Int8, '"x" is -129, out of the range of Int8'),
        (b"-1", pl.UInt32, '"x" is -1, out of the range of UInt32'),
        (b"-0", pl.UInt32, 0),
        (b"4294967295", pl.UInt32, 2**32 - 1),
        (b"18446744073709551615", pl.UInt64, 2**64 - 1),
        (b"18446744073709551616", pl.UInt64, '"x" is 18446744073709551616, out of the range of UInt64'),
        (b"-9223372036854775808", pl.Int64, -(2**63)),
        (b"-9223372036854775809", pl.Int64, '"x" is -9223372036854775809, out of the range of Int64'),
        (b"0.5", pl.Float32, 0.5),
        (b"[1,null,2]", pl.List(pl.Int32), [1, None, 2]),
        (b"[1.5,0.1234567890123456789,null]", pl.List(pl.Float64), [1.5, 0.12345678901234568, None]),
        (b"[1,1e999]", pl.List(pl.Float64), '"x" is 1e999, out of the range of Float64'),
        (b"[true,null,false]", pl.List(pl.Boolean), [True, None, False]),
        (b'{"a": [1, "\\n"]}', pl.Binary, b'{"a": [1, "\\n"]}'),
        (b"  7 ", pl.Binary, b"7"),
        (b"null", pl.Binary, None),
        (rb'"\u00e9\ud83d\ude00\"\\\/\b\f\n\r\t"', pl.String, 'é😀"\\/\b\f\n\r\t'),
        (b'"' + b"long " * 50 + b'"', pl.String, "long " * 50),
        ('"ein längeres Wort, 日本語 😀"'.encode(), pl.String, "ein längeres Wort, 日本語 😀"),
    ],
)
def test_types(value: bytes, dtype: Any, expected: Any) -> None:
    result = one(value, dtype)
    if isinstance(result, str) and isinstance(expected, str) and dtype != pl.String:
        assert result.startswith(expected)
    else:
        assert result == expected


def test_structs_inside_structs() -> None:
    schema = {
        "did": pl.String,
        "commit": pl.Struct(
            {"n": pl.Int64, "record": pl.Struct({"text": pl.String, "langs": pl.List(pl.String)})}
        ),
        "last": pl.Int64,
    }
    decoded = decode(
        [
            b'{"did":"a","commit":{"record":{"langs":["de","en"],"text":"hi"},"n":1},"last":1}',
            b'{"did":"b","commit":{"n":2},"last":2}',
            b'{"did":"c","commit":{},"last":3}',
            b'{"did":"d","commit":null,"last":4}',
            b'{"did":"e","commit":{"record":{"text":5}}}',
            b'{"did":"f","commit":{"record":7}}',
            b'{"did":"g","commit":{"record":{"langs":[]}},"last":5}',
            b'{"did":"h","commit":{"record":{"langs":[]}}',
        ],
        schema,
    )
    assert decoded.frame["last"].to_list() == [1, 2, 3, 4, 5]
    assert decoded.frame["commit"].to_list() == [
        {"n": 1, "record": {"text": "hi", "langs": ["de", "en"]}},
        {"n": 2, "record": None},
        {"n": None, "record": None},
        None,
        {"n": None, "record": {"text": None, "langs": []}},
    ]
    assert decoded.reasons == [
        '"commit.record.text" is 5, not String',
        '"commit.record" is 7, not an object',
        "not JSON: byte 43",
    ]


def test_of_a_name_that_comes_twice_the_last_counts() -> None:
    decoded = decode(
        [
            b'{"s":"a long string at first","s":"b","tags":["1","2"],"tags":["3"],"i":1,"i":null}',
            b'{"tags":["4"]}',
        ]
    )
    assert decoded.frame.select("s", "tags", "i").rows() == [("b", ["3"], None), (None, ["4"], None)]
    nested = decode(
        [b'{"a":{"t":["x","y"],"s":"one"},"a":{"t":["z"]}}', b'{"a":{"t":["w"]}}'],
        {"a": pl.Struct({"t": pl.List(pl.String), "s": pl.String})},
    )
    assert nested.frame["a"].to_list() == [{"t": ["z"], "s": None}, {"t": ["w"], "s": None}]


def test_numbers_of_every_length() -> None:
    digits = "9876543210987654321"
    wholes = [(digits[-length:].lstrip("0") or "0") for length in range(1, len(digits) + 1)]
    signed = [sign + whole for sign in ("", "-") for whole in wholes]
    fractions = [f"{whole}.{(digits * 2)[:places]}" for whole in signed for places in range(1, 21)]
    for kind, texts in ((pl.Int64, signed), (pl.Float64, signed + fractions)):
        read = int if kind == pl.Int64 else float
        lines = [(b'{"x":%b}' % text.encode(), read(text)) for text in texts]
        if kind == pl.Int64:
            lines = [(line, value) for line, value in lines if -(2**63) <= value < 2**63]
        assert decode([line for line, _ in lines], {"x": kind}).frame["x"].to_list() == [v for _, v in lines]
        # Alone, so near the end of the buffer that no eight bytes can be read at once.
        for line, value in lines[:: 1 + len(lines) // 60]:
            assert decode([line], {"x": kind}).frame["x"].to_list() == [value]
    for text in signed:
        wrong = [text + end for end in ("x", "1x", "12345678x", ".5x", ".", ".123456789x", "e", "1e+")]
        refused = decode([b'{"x":%b}' % value.encode() for value in wrong], {"x": pl.Float64}).refused
        assert len(refused) == len(wrong)


def test_strings_of_every_length() -> None:
    for length in range(100):
        text = ("abcdefghijklmnopqrstuvwxyz" * 4)[:length]
        rows = decode([b'{"x":"%b"}' % text.encode()] * 3, {"x": pl.String})
        assert rows.frame["x"].to_list() == [text] * 3


def test_names_that_json_writes_otherwise() -> None:
    names = ["", "a", "é", 'q"', "back\\slash", "new\nline", "n" * 13, "n" * 14, "n" * 40]
    schema = dict.fromkeys(names, pl.Int64)
    row = {name: at for at, name in enumerate(names)}
    for separators in ((",", ":"), (" , ", " : ")):
        for ascii_only in (True, False):
            line = python_json.dumps(row, separators=separators, ensure_ascii=ascii_only).encode()
            backwards = python_json.dumps(dict(reversed(row.items())), separators=separators).encode()
            assert decode([line, backwards], schema).frame.rows(named=True) == [row, row]
    assert decode([b'{"q":1,"q"":2}'], {'q"': pl.Int64}).refused.tolist() == [0]


def test_names_are_compared_whole() -> None:
    schema = dict.fromkeys(("a", "b", "eight888", "eight8889", "größe", "a_rather_long_name_1"), pl.Int64)
    decoded = decode(
        [
            rb'{"eight8889":1,"eight888":2,"gr\u00f6\u00dfe":3,"\u0062":4,"a_rather_long_name_2":9}',
            '{"größe":5,"a_rather_long_name_1":6,"a_rather_long_name":9,"":7,"eight88":8}'.encode(),
        ],
        schema,
    )
    assert decoded.frame.rows() == [(None, 4, 2, 1, 3, None), (None, None, None, None, 5, 6)]


def test_too_deep_is_refused_and_deep_is_not() -> None:
    def nested(depth: int) -> bytes:
        return b'{"other":' + b"[" * depth + b"]" * depth + b"}"

    decoded = decode([nested(500), nested(5000), b'{"other":' + b"[" * 100_000])
    assert decoded.refused.tolist() == [1, 2]


def test_a_schema_of_other_types_is_refused_by_name() -> None:
    for dtype, path in ((pl.Object, ""), (pl.Duration, ""), (pl.List(pl.List(pl.Duration)), r"\[\]\[\]")):
        with pytest.raises(TypeError, match=rf"the JSON field 'a\.x{path}' can't be"):
            json({"a": pl.Struct({"x": dtype})})


def test_nothing_at_all() -> None:
    decoded = decode([])
    assert dict(decoded.frame.schema) == SCHEMA
    assert (decoded.frame.height, decoded.rows, decoded.refused.tolist()) == (0, None, [])
    assert decode([b'{"a":1}', b"{}"], {}).frame.height == 2
    assert decode([None, b""]).frame.height == 0


def test_it_can_be_pickled_and_compared() -> None:
    decoder = json(SCHEMA)
    decoder.decode(Messages.of([b"{}"]))
    again = pickle.loads(pickle.dumps(decoder))
    assert again == decoder
    assert again != json({"s": pl.String})
    assert again.decode(Messages.of([b'{"i":4}'])).frame["i"].to_list() == [4]


def test_polars_reads_the_same_from_regular_lines() -> None:
    rng = np.random.default_rng(7)
    values: list[bytes | None] = [
        python_json.dumps(
            {
                "s": f"user {rng.integers(1000)} {'ü' * int(rng.integers(3))}",
                "i": int(rng.integers(-(2**62), 2**62)),
                "f": float(rng.lognormal()) * 10.0 ** int(rng.integers(-30, 30)),
                "b": bool(rng.integers(2)),
                "tags": [f"t{t}" for t in rng.integers(100, size=rng.integers(4))],
            },
            ensure_ascii=bool(n % 2),
        ).encode()
        for n in range(2000)
    ]
    messages = Messages.of(values)
    decoded = json(SCHEMA).decode(messages)
    expected = pl.read_ndjson(messages.lines.tobytes(), schema=SCHEMA)
    assert decoded.frame.equals(expected)


# Texts near the edge of JSON: real values, written in several ways, then cut and changed.
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=20),
)
TREES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)
FIELDS = st.dictionaries(
    st.sampled_from([*SCHEMA, "other"]), TREES | st.lists(st.text(max_size=15), max_size=4)
)


@st.composite
def texts(draw: st.DrawFn) -> bytes:
    text = python_json.dumps(
        draw(FIELDS), ensure_ascii=draw(st.booleans()), indent=draw(st.sampled_from([None, 1]))
    ).encode("utf-8", "surrogatepass")
    for _ in range(draw(st.integers(0, 2))):
        at = draw(st.integers(0, len(text)))
        cut = draw(st.integers(0, 2))
        text = (
            text[:at]
            + draw(
                st.binary(max_size=2)
                | st.sampled_from(list(b'"{}[],:\\0')).map(
                    lambda b: b if isinstance(b, bytes) else bytes([b])
                )
            )
            + text[at + cut :]
        )
    return text


def strict(text: bytes) -> Any:
    """Python's reader without its leniences."""

    def refuse(word: str) -> None:
        raise ValueError(word)

    return python_json.loads(text.decode("utf-8"), parse_constant=refuse)


FITS = {
    "s": lambda v: isinstance(v, str),
    "i": lambda v: type(v) is int and -(2**63) <= v < 2**63,
    "f": lambda v: type(v) in (int, float) and math.isfinite(float(v)),
    "b": lambda v: isinstance(v, bool),
    "tags": lambda v: isinstance(v, list) and all(e is None or isinstance(e, str) for e in v),
}


def expected(text: bytes) -> dict[str, Any] | None:
    try:
        result = strict(text)
        text.decode("utf-8")
    except (ValueError, RecursionError):
        return None
    if not isinstance(result, dict):
        return None
    row = {name: result.get(name) for name in SCHEMA}
    if any(value is not None and not FITS[name](value) for name, value in row.items()):
        return None
    try:
        python_json.dumps(result, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return None
    return row


def bits(row: dict[str, Any]) -> dict[str, Any]:
    """A row whose double is compared to the bit."""
    return {k: struct.pack("d", v) if k == "f" and v is not None else v for k, v in row.items()}


# How fast a busy machine draws examples is no reason to fail.
drawn = settings(
    max_examples=150, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)


@pytest.mark.slow
@drawn
@given(st.lists(texts(), min_size=1, max_size=8))
def test_python_takes_and_refuses_the_same(values: list[bytes]) -> None:
    _takes_and_refuses_as_python(values)


SKIPPED = [
    "o",
    "other",
    "other2",
    "ü",
    'a"b',
    "a name of more than sixteen bytes",
    *(f"n{i}" for i in range(14)),
]


@st.composite
def alike(draw: st.DrawFn) -> list[bytes]:
    """Messages of mostly the same members in the same places, most of which no field is of."""
    names = draw(st.lists(st.sampled_from([*SCHEMA, *SKIPPED]), max_size=24, unique=True))
    values: list[bytes] = []
    for _ in range(draw(st.integers(2, 8))):
        if draw(st.integers(0, 3)) == 0:
            names = draw(st.permutations(names))
        members = [
            python_json.dumps(name, ensure_ascii=False) + ":" + python_json.dumps(draw(TREES | st.text("ab")))
            for name in names
        ]
        text = ("{" + ",".join(members) + "}").encode("utf-8", "surrogatepass")
        if draw(st.integers(0, 3)) == 0:
            at = draw(st.integers(0, len(text)))
            text = text[:at] + draw(st.sampled_from([b"", b" ", b'"', b"}", b",", b"\xff"])) + text[at + 1 :]
        values.append(text)
    return values


@pytest.mark.slow
@drawn
@given(alike())
def test_members_that_are_skipped_are_read_as_python_reads_them(values: list[bytes]) -> None:
    _takes_and_refuses_as_python(values)


@pytest.mark.parametrize(
    "piece", ["", "\\n", '\\"', '"', "\x01", "\\x", "\\ud800", "é", "日本", "😀", "\udcff", "ü\udcc3"]
)
def test_long_strings_may_hold_anything_anywhere(piece: str) -> None:
    texts = ["a" * at + piece + "b" * (70 - at) for at in range(70)]
    lines = [line % text for text in texts for line in ('{"s":"%s"}', '{"o":"%s","i":1}')]
    _takes_and_refuses_as_python([line.encode(errors="surrogateescape") for line in lines])


def _takes_and_refuses_as_python(values: list[bytes]) -> None:
    decoded = decode(list(values))
    wanted = [(i, row) for i, row in enumerate(map(expected, values)) if row is not None]
    rows = decoded.rows if decoded.rows is not None else np.arange(len(values))
    assert list(zip(rows.tolist(), map(bits, decoded.frame.to_dicts()))) == [(i, bits(r)) for i, r in wanted]
    assert sorted([*rows.tolist(), *decoded.refused.tolist()]) == list(range(len(values)))
    # However the batch is cut.
    decoder = json(SCHEMA)
    alone = [decoder.decode(Messages.of([value])) for value in values]
    assert pl.concat([a.frame for a in alone]).equals(decoded.frame)
    assert [reason for a in alone for reason in a.reasons] == decoded.reasons
