"""Types that are made of raw JSON text: objects with any keys, beside Python's own reader, and decimals."""

from __future__ import annotations

import json
import random
from decimal import Decimal
from typing import Any

import polars as pl

import streamgauge as sg


def _decoded(kind: Any, *texts: str) -> Any:
    decoder = sg.json({"m": sg.field("m", kind, entries=True)})
    return decoder.decode(sg.formats.Messages.of([f'{{"m":{text}}}'.encode() for text in texts]))


def _maps(decoded: Any) -> list[Any]:
    return [
        None if entries is None else {one["key"]: one["value"] for one in entries}
        for entries in decoded.frame["m"].to_list()
    ]


def test_objects_with_any_keys_are_those_of_python() -> None:
    rng = random.Random(7)
    keys = ["a", "b", "", "é", 'q"', "\\", "a b", "{", "]", "\n", "😀", ":"]
    texts = []
    for _ in range(300):
        members = [(rng.choice(keys), rng.choice([None, -7, 0, 2**31])) for _ in range(rng.randrange(6))]
        space = rng.choice(["", " ", "\n\t"])
        parts = (
            f"{space}{json.dumps(key, ensure_ascii=rng.random() < 0.5)}{space}:{space}{json.dumps(value)}"
            for key, value in members
        )
        texts.append("{" + ",".join(parts) + space + "}")
    decoded = _decoded(pl.Int64, *texts)
    assert _maps(decoded) == [json.loads(text) for text in texts]
    # A key has the place where it came first, as in a dict.
    assert [[one["key"] for one in row] for row in decoded.frame["m"].to_list()] == [
        list(json.loads(text)) for text in texts
    ]


def test_values_of_objects_are_of_any_type() -> None:
    texts = ('{"a":["]",{"x":"}"}],"b":[]}', "{}", "null")
    decoded = _decoded(pl.List(pl.Binary), *texts)
    assert decoded.frame["m"].to_list()[0][0]["value"] == [b'"]"', b'{"x":"}"}']
    structs = _decoded(pl.Struct({"x": pl.Int8}), '{"a":{"x":1,"y":{"z":[2]}},"b":null}')
    assert _maps(structs) == [{"a": {"x": 1}, "b": None}]
    assert _maps(_decoded(pl.String, *texts[1:])) == [{}, None]


def test_a_message_with_another_type_within_an_object_is_refused() -> None:
    texts = (
        '{"a":1}',
        '{"a":1,"b":"x"}',
        "7",
        "[1]",
        '"x"',
        '{"a":1.5}',
        "true",
        '{"a":128}',
        '{"\\ud800":1}',
    )
    decoded = _decoded(pl.Int8, *texts)
    assert _maps(decoded) == [{"a": 1}]
    assert dict(zip(decoded.refused.tolist(), decoded.reasons)) == {
        1: "\"m['b']\" is a string, not Int8",
        2: '"m" is 7, not an object',
        3: '"m" is a list, not an object',
        4: '"m" is a string, not an object',
        5: "\"m['a']\" is 1.5, not a whole number (Int8)",
        6: '"m" is true, not an object',
        7: "\"m['a']\" is 128, out of the range of Int8",
        8: "text that is not Unicode: byte 0",
    }


def test_decimals_are_read_exactly() -> None:
    texts = ("1.5", '"1.25"', "-0.005e1", "1E+2", "12345678901234567890123456.78", "null", "1.50000")
    decoder = sg.json({"x": pl.Decimal(28, 2), "l": pl.List(pl.Decimal(28, 2))})
    decoded = decoder.decode(
        sg.formats.Messages.of([f'{{"x":{text},"l":[{text}]}}'.encode() for text in texts])
    )
    expected = [None if text == "null" else Decimal(text.strip('"')) for text in texts]
    assert decoded.frame["x"].to_list() == expected
    assert decoded.frame["l"].to_list() == [[one] for one in expected]


def test_decimals_that_a_column_does_not_hold_are_refused() -> None:
    texts = ("1.234", "12345678901", "1e400", "1e-3", "true", '"x"', "[1]", "99999999.995")
    decoder = sg.json({"x": pl.Decimal(10, 2)})
    decoded = decoder.decode(sg.formats.Messages.of([f'{{"x":{text}}}'.encode() for text in texts]))
    assert decoded.refused.tolist() == list(range(len(texts)))
    assert decoded.reasons[0] == '"x" is 1.234, not Decimal(precision=10, scale=2)'
