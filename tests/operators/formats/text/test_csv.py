"""CSV into typed columns: each message by itself, against Python's own reader."""

from __future__ import annotations

import csv as python_csv
import io
import pickle
import random
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import polars as pl
import pytest

from streamgauge.operators.definition.decoders import decoder_definition
from streamgauge.operators.formats.decode import Decoded
from streamgauge.operators.formats.messages import Messages
from streamgauge.operators.formats.text.csv import csv

from ....cases import each

SCHEMA = {"user": pl.String, "n": pl.Int64, "price": pl.Float64}


def decode(decoder: Any, values: list[bytes | None]) -> Decoded:
    return decoder.decode(Messages.of(values)).checked(len(values), decoder.schema)


def test_rows_and_each_bad_message_with_its_reason() -> None:
    good = b"ann,7,1.5"
    bad = {
        b"ann,7": "2 fields, where 3 were expected",
        b"ann,7,1.5,x": "4 fields, where 3 were expected",
        b'"ann,7,1.5': "not CSV: line 1: unexpected end of data",
        b'"ann"x,7,1.5': "not CSV: line 1: ',' expected after '\"'",
        b"ann,x,1.5": "\"n\" is 'x', not Int64",
        b"ann,7.0,1.5": "\"n\" is '7.0', not Int64",
        b"ann,9223372036854775808,1": "\"n\" is '9223372036854775808', not Int64",
        b"ann,7,1e999": "\"price\" is '1e999', not Float64",
        b"\xff,7,1.5": "not UTF-8 text",
        b"": "1 field, where 3 were expected",
        b"ann,7,1.5\nbob,8,2": "2 records in a message, where 1 was expected",
        None: "no value (a tombstone)",
    }
    values: list[bytes | None] = [good]
    for value in bad:
        values += [value, good]
    decoded = decode(csv(SCHEMA), values)
    assert decoded.frame.unique().rows() == [("ann", 7, 1.5)] and decoded.frame.height == len(bad) + 1
    assert decoded.refused.tolist() == list(range(1, len(values), 2))
    assert dict(zip(bad, decoded.reasons)) == bad


def test_what_a_field_may_be() -> None:
    values: list[bytes | None] = [
        b'"a, ""b""\nc",-7,.5',
        b",,",
        "é漢,+7,1e3\r\n".encode(),
        b'"",7,nan\n',
        b"NA,0,-0.0",
    ]
    rows = decode(csv(SCHEMA), values).frame.rows()
    assert rows[:3] == [('a, "b"\nc', -7, 0.5), (None, None, None), ("é漢", 7, 1000.0)]
    assert str(rows[3:]) == "[(None, 7, nan), ('NA', 0, -0.0)]"
    rows = decode(csv(SCHEMA, null_values=["NA"]), [b",7,1", b"NA,7,1"]).frame["user"].to_list()
    assert rows == ["", None]


@each(
    ("kind", "text", "value"),
    [
        (pl.Boolean, "True", True),
        (pl.Boolean, "1", None),
        (pl.UInt8, "255", 255),
        (pl.UInt8, "256", None),
        (pl.UInt8, "-1", None),
        (pl.Decimal(10, 2), "12.340", Decimal("12.34")),
        (pl.Decimal(10, 2), "12.345", None),
        (pl.Decimal(10, 2), "-.5", Decimal("-0.50")),
        (pl.Decimal(10, 2), ".", None),
        (pl.Decimal(4, 2), "123.45", None),
        (pl.Datetime("us", "UTC"), "2026-01-02 03:04", datetime(2026, 1, 2, 3, 4, tzinfo=UTC)),
        (pl.Datetime("ms"), "2026-01-02T03:04:05+01:00", datetime(2026, 1, 2, 2, 4, 5)),
        (pl.Date, "2026-02-30", None),
        (pl.Date, "2026-02-28", date(2026, 2, 28)),
        (pl.Time, "12:30:01", time(12, 30, 1)),
        (pl.Binary, "ab", b"ab"),
        (pl.Float32, "0.5", 0.5),
    ],
)
def test_types(kind: Any, text: str, value: Any) -> None:
    decoded = decode(csv({"x": kind}), [text.encode(), b""])
    assert decoded.frame["x"].to_list() == ([value, None] if value is not None else [None])
    assert decoded.refused.tolist() == ([] if value is not None else [0])


def test_a_header_names_the_fields() -> None:
    decoder = csv({"n": pl.Int64, "user": pl.String}, delimiter="\t", header=True)
    values: list[bytes | None] = [
        b"user\tage\tn\nann\t9\t7\n",
        b"\xef\xbb\xbfn\tuser\r\n8\tbob",
        b"n\tname\n8\tbob",
        b"n\tuser",
        b"n\tuser\n8",
    ]
    decoded = decode(decoder, values)
    assert decoded.frame.rows() == [(7, "ann"), (8, "bob")]
    assert decoded.reasons == [
        "the first line names no user, only n, name",
        "0 records in a message, where 1 was expected",
        "1 field, where 2 were expected",
    ]


def test_several_records_a_message() -> None:
    decoder = csv({"u": pl.String, "n": pl.Int64}, many="records")
    decoded = decode(decoder, [b"a,1\nb,2\n", b"", b"c,3", b"d,4\n\ne,x\nf", b"g,5\ng,x", None, b"\xff"])
    assert decoded.frame["records"].to_list() == [
        [{"u": "a", "n": 1}, {"u": "b", "n": 2}],
        [],
        [{"u": "c", "n": 3}],
    ]
    assert decoded.reasons == [
        "1 field, where 2 were expected",
        "record 2: \"n\" is 'x', not Int64",
        "no value (a tombstone)",
        "not UTF-8 text",
    ]


@pytest.mark.parametrize("seed", range(5))
def test_random_records_and_broken_ones(seed: int) -> None:
    """What Python's writer wrote comes back; what is cut or flipped costs itself alone."""
    chance = random.Random(seed)
    letters = ["a", "é", ",", '"', ";", "\n", "\r\n", " ", "'", "\u2028", "\x0b"]
    records, values = [], []
    for n in range(300):
        name = "".join(chance.choice(letters) for _ in range(chance.randrange(1, 8)))
        file = io.StringIO()
        python_csv.writer(file).writerow([name, n, "" if n % 3 else n / 8])
        broken = bytearray(file.getvalue().encode())
        broken[chance.randrange(len(broken))] ^= 1 << chance.randrange(8)
        records.append((name, n, None if n % 3 else n / 8))
        values += [file.getvalue().encode(), bytes(broken)]
    decoded = decode(csv(SCHEMA), values)
    rows = decoded.rows.tolist()
    assert [row for row, n in zip(decoded.frame.rows(), rows) if n % 2 == 0] == records


def test_a_field_may_be_long() -> None:
    long = "x, " * 100_000
    assert decode(csv({"x": pl.String}), [f'"{long}"'.encode()]).frame["x"].to_list() == [long]


def test_what_can_not_be_is_refused_and_the_rest_is_written_down() -> None:
    for options, error in (
        ({"delimiter": ";;"}, "the delimiter must be one character"),
        ({"quote": ","}, "delimiter and quote are both"),
        ({"quote": "\n"}, "the quote must be one character"),
    ):
        with pytest.raises(ValueError, match=error):
            csv(SCHEMA, **options)
    with pytest.raises(TypeError, match=r"csv: 'x' can't be List\(String\)"):
        csv({"x": pl.List(pl.String)})
    with pytest.raises(TypeError, match="must be a list of strings"):
        csv(SCHEMA, null_values="NA")
    with pytest.raises(TypeError, match="name the column of records"):
        csv(SCHEMA, many=True)
    decoder = csv(SCHEMA, delimiter=";", quote=None)
    assert pickle.loads(pickle.dumps(decoder)) == decoder
    assert decode(decoder, [b'"a;7;1']).frame.rows() == [('"a', 7, 1.0)]
    assert decoder_definition(decoder) == {
        "decoder": "Csv",
        "fields": {"user": "string", "n": "int64", "price": "float64"},
        "delimiter": ";",
        "quote": None,
        "null_values": [""],
        "header": False,
        "many": None,
    }


def test_a_null_or_a_broken_message_may_be_the_first_of_a_batch() -> None:
    decoded = decode(csv({"x": pl.String}), [b'""', b'"a', b'"a\nb"', b"c"])
    assert decoded.frame["x"].to_list() == [None, "a\nb", "c"] and decoded.refused.tolist() == [1]
