"""Rows as JSON and as bytes, value by value as Python's own JSON has them."""

from __future__ import annotations

import json
import random
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import polars as pl
import pytest

from streamgauge.operators.formats.encode import as_bytes, as_json, json_bytes, key_bytes


def texts(chance: random.Random) -> Any:
    return chance.choice([None, "", 'quo"te\\', "é\n\x01", "🦆", "x" * 50])


VALUES: dict[str, Any] = {
    "text": (pl.String, texts),
    "whole": (pl.Int64, lambda chance: chance.choice([None, 0, -(2**63), 2**63 - 1])),
    "flag": (pl.Boolean, lambda chance: chance.choice([None, True, False])),
    "list": (pl.List(pl.String), lambda chance: chance.choice([None, [], [texts(chance), None]])),
    "struct": (
        pl.Struct({"a": pl.UInt64, "b": pl.List(pl.Int8)}),
        lambda chance: chance.choice([None, {"a": 2**64 - 1, "b": [1, None]}, {"a": None, "b": None}]),
    ),
    "real": (pl.Float64, lambda chance: chance.choice([None, 0.1, 1e300, float("nan"), float("-inf"), -0.0])),
    "at": (
        pl.Datetime("us", "UTC"),
        lambda chance: chance.choice([None, datetime(2026, 1, 1, 0, 0, 0, 120_000, UTC)]),
    ),
    "day": (pl.Date, lambda chance: date(2026, 1, chance.randrange(1, 30))),
    "bytes": (pl.Binary, lambda chance: chance.choice([None, b"", b"\x00\xff"])),
    "money": (pl.Decimal(20, 2), lambda chance: chance.choice([Decimal("1.50"), Decimal("7.00"), None])),
    "long": (pl.Duration("us"), lambda chance: timedelta(seconds=chance.randrange(9))),
}


@pytest.mark.parametrize("names", [["text", "whole", "flag", "list", "struct"], list(VALUES), ["real"]])
def test_json_of_every_type_is_that_of_the_answers(names: list[str]) -> None:
    chance = random.Random(3)
    given = [{name: VALUES[name][1](chance) for name in names} for _ in range(200)]
    frame = pl.DataFrame(given, schema={name: VALUES[name][0] for name in names})
    result = as_json().encode(frame)
    assert [json.loads(text) for text in result] == [json.loads(json_bytes(row)) for row in given]
    assert result == [json_bytes(row) for row in frame.iter_rows(named=True)]


def test_keys() -> None:
    assert [key_bytes([value]) for value in ("é", b"\xff", None, 7, True, 1.5)] == [
        "é".encode(), b"\xff", None, b"7", b"true", b"1.5"
    ]  # fmt: skip
    assert key_bytes([None, "a"]) == b'[null,"a"]'


def test_bytes_are_those_of_the_column() -> None:
    frame = pl.DataFrame({"raw": [b"\xff", None]})
    as_bytes("raw").check(frame.schema)
    assert as_bytes("raw").encode(frame) == [b"\xff", None]
    with pytest.raises(TypeError, match="as_bytes"):
        as_bytes(pl.col("raw"))  # type: ignore[arg-type]
