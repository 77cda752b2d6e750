"""Answers as JSON has them: on the command line, over HTTP and in messages alike."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from decimal import Decimal
from itertools import accumulate, pairwise
from json.encoder import encode_basestring
from typing import Any

from ...sketches.core.lazy import pl


def jsonable(value: Any) -> Any:
    """A value as JSON has it: times in ISO 8601, bytes in hexadecimal, numbers that aren't finite as text.

    Those are "NaN", "Infinity" and "-Infinity", so that no number is mistaken for a missing one. Whole
    numbers have all their digits, and decimals that aren't whole are text.

    >>> from datetime import date
    >>> jsonable({"at": date(2026, 6, 1), "key": b"\\x01\\xff", "sums": [1.5, float("nan"), Decimal(2**64)]})
    {'at': '2026-06-01', 'key': '01ff', 'sums': [1.5, 'NaN', 18446744073709551616]}
    """
    if isinstance(value, dict):
        return {key: jsonable(part) for key, part in value.items()}
    if isinstance(value, list):
        return [jsonable(part) for part in value]
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, float):
        if math.isnan(value):
            return "NaN"
        return value if math.isfinite(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, int | str | None):
        return value
    if isinstance(value, Decimal) and value == int(value):
        return int(value)
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def json_text(value: Any) -> str:
    """A value as compact JSON (`jsonable`)."""
    return json.dumps(jsonable(value), ensure_ascii=False, separators=(",", ":"))


def json_texts(column: pl.Series) -> list[str]:
    """Each of a column's values as `json_text` writes it, a type at a time and not a value at a time.

    >>> json_texts(pl.Series([{"n": 1, "at": [0.5, None]}, {"n": None, "at": []}]))
    ['{"n":1,"at":[0.5,null]}', '{"n":null,"at":[]}']
    """
    kind = column.dtype
    if isinstance(kind, pl.Struct) and kind.fields:
        parts = [json_texts(column.struct.field(field.name)) for field in kind.fields]
        return _with_nulls(column, objects([field.name for field in kind.fields], parts))
    if isinstance(kind, pl.List):
        lengths = column.list.len().fill_null(0)
        items = json_texts(column.filter(lengths > 0).explode())
        cuts = pairwise(accumulate(lengths.to_list(), initial=0))
        return _with_nulls(column, [f"[{','.join(items[low:high])}]" for low, high in cuts])
    values = column.to_list()
    if kind.is_integer():
        return ["null" if value is None else int.__repr__(value) for value in values]
    if kind.is_float():
        return [_float_text(value) for value in values]
    if kind == pl.String:
        return ["null" if value is None else encode_basestring(value) for value in values]
    if kind.is_temporal():
        texts = {value: json_text(value) for value in set(values)}  # windows have few edges
        return [texts[value] for value in values]
    return [json_text(value) for value in values]


def objects(names: Sequence[str], columns: Sequence[list[str]]) -> list[str]:
    """JSON objects with members of these names, from columns of their values' texts."""
    members = ",".join(encode_basestring(name).replace("%", "%%") + ":%s" for name in names)
    return [f"{{{members}}}" % row for row in zip(*columns)]


def _with_nulls(column: pl.Series, texts: list[str]) -> list[str]:
    if not column.null_count():
        return texts
    return ["null" if null else text for null, text in zip(column.is_null(), texts)]


def _float_text(value: float | None) -> str:
    if value is None:
        return "null"
    return float.__repr__(value) if math.isfinite(value) else json_text(value)
