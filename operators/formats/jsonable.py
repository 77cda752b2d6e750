"""Answers as JSON, in the same form on the command line, over HTTP and in messages."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Sequence
from decimal import Decimal
from itertools import accumulate, pairwise
from json.encoder import encode_basestring
from typing import Any

from ...sketches.core.lazy import pl


def jsonable(value: Any) -> Any:
    """A value in JSON's types: times in ISO 8601, bytes in hexadecimal, numbers that aren't finite as text.

    These are "NaN", "Infinity" and "-Infinity", so that no number is mistaken for a missing one. Integers
    have all their digits, and decimals with a scale are text with all digits of their scale.

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
    if isinstance(value, Decimal):
        return int(value) if value.as_tuple().exponent == 0 else format(value, "f")
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def json_text(value: Any) -> str:
    """A value as compact JSON (`jsonable`)."""
    return json.dumps(jsonable(value), ensure_ascii=False, separators=(",", ":"))


def json_texts(column: pl.Series, entries: Collection[tuple[str, ...]] = ()) -> list[str]:
    """A column's values as `json_text` writes them, processed type by type instead of value by value.

    `entries` are the places of lists of structs of `key` and `value` that are written as objects: the fields
    that lead there, with ``[]`` for the elements of a list. Raises `ValueError` for a key that is null.

    >>> json_texts(pl.Series([{"n": 1, "at": [0.5, None]}, {"n": None, "at": []}]))
    ['{"n":1,"at":[0.5,null]}', '{"n":null,"at":[]}']
    >>> json_texts(pl.Series([[{"key": "a", "value": 1}, {"key": "b", "value": None}]]), [()])
    ['{"a":1,"b":null}']
    """
    kind = column.dtype
    if isinstance(kind, pl.Struct) and kind.fields:
        parts = [
            json_texts(column.struct.field(field.name), _below(entries, field.name)) for field in kind.fields
        ]
        return _with_nulls(column, objects([field.name for field in kind.fields], parts))
    if isinstance(kind, pl.List):
        lengths = column.list.len().fill_null(0)
        inner = column.filter(lengths > 0).explode()
        cuts = pairwise(accumulate(lengths.to_list(), initial=0))
        if () in entries:
            keys, entry_values = (inner.struct.field(name) for name in ("key", "value"))
            if keys.null_count():
                raise ValueError("a key of an object must not be null")
            named = zip(json_texts(keys), json_texts(entry_values, _below(entries, "[]", "value")))
            items = [f"{key}:{value}" for key, value in named]
            return _with_nulls(column, [f"{{{','.join(items[low:high])}}}" for low, high in cuts])
        items = json_texts(inner, _below(entries, "[]"))
        return _with_nulls(column, [f"[{','.join(items[low:high])}]" for low, high in cuts])
    values = column.to_list()
    if kind.is_integer():
        return ["null" if value is None else int.__repr__(value) for value in values]
    if kind.is_float():
        return [_float_text(value) for value in values]
    if kind == pl.String:
        return ["null" if value is None else encode_basestring(value) for value in values]
    if kind.is_temporal():
        texts = {value: json_text(value) for value in set(values)}  # windows have few distinct edges
        return [texts[value] for value in values]
    return [json_text(value) for value in values]


def _below(entries: Collection[tuple[str, ...]], *step: str) -> list[tuple[str, ...]]:
    """The places within a part of a type, relative to that part."""
    return [place[len(step) :] for place in entries if place[: len(step)] == step]


def objects(names: Sequence[str], columns: Sequence[list[str]]) -> list[str]:
    """JSON objects with these member names, from columns of their values' texts."""
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
