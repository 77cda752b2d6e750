"""Rows that are written by columns are those written one by one."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal

import polars as pl
import pytest

from streamgauge.operators.formats.encode import json_bytes, json_rows, key_bytes, keys_bytes

from ...cases import each

ROWS = pl.DataFrame(
    {
        "int": [1, None, -3],
        "uint": pl.Series([2**64 - 1, 0, None], dtype=pl.UInt64),
        "float": [1e16, float("nan"), None],
        "short": pl.Series([0.1, float("-inf"), -0.0], dtype=pl.Float32),
        "text": ['a"%s\n\u2028é', None, ""],
        "bytes": [b"\x01", None, b""],
        "bool": [True, None, False],
        "at": [datetime(2026, 1, 1, tzinfo=UTC), None, datetime(2026, 1, 1, 0, 0, 0, 5, tzinfo=UTC)],
        "date": [date(2026, 1, 1), None, date(1, 1, 1)],
        "time": [time(0), None, time(3, 0, 0, 7)],
        "span": [timedelta(1), None, timedelta(0)],
        "decimal": [Decimal("1.5"), Decimal("2.0"), None],
        "list": [[1.5, None], [], None],
        "items": [[{"item": "x", "estimate": 1, "q": [1]}], [], None],
        "struct": [{"estimate": 1.0, "%l": None}, None, {"estimate": None, "%l": "x"}],
        "null": [None, None, None],
        "nested": [[[1], []], None, [None, [2, 3]]],
        "array": pl.Series([[1, 2], None, [3, 4]], dtype=pl.Array(pl.Int64, 2)),
        "category": pl.Series(["a", None, "b"], dtype=pl.Categorical),
        'na"me%d': [1, 2, 3],
    }
)


@pytest.mark.parametrize("rows", [ROWS, ROWS[:1], ROWS[1:2], ROWS[:0], ROWS.select("float")], ids=str)
def test_json(rows: pl.DataFrame) -> None:
    assert json_rows(rows) == [json_bytes(row) for row in rows.iter_rows(named=True)]


@each("names", [[], *([name] for name in ROWS.columns), ["text", "int"], ["at", "float", "bytes"]], ids=str)
def test_keys(names: list[str]) -> None:
    rows = [key_bytes([row[name] for name in names]) for row in ROWS.iter_rows(named=True)]
    assert keys_bytes(ROWS, names) == rows
