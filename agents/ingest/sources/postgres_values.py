"""Convert PostgreSQL values from the server's text format to JSON, with all digits."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from psycopg import pq
from psycopg.adapt import Transformer

_NUMBER = re.compile(r"-?\d+(\.\d+)?([eE][+-]?\d+)?")
_TIMESTAMP = re.compile(r"(\d{4,6}-\d\d-\d\d) (\d\d:\d\d:\d\d(?:\.\d+)?)(\+00)?")
_TEXTS = 1009
"""The OID of the type of text arrays."""

SESSION = {
    "client_encoding": "UTF8",
    "datestyle": "ISO",
    "timezone": "UTC",
    "intervalstyle": "iso_8601",
    "extra_float_digits": "1",
    "bytea_output": "hex",
    "lc_monetary": "C",
}
"""The session settings for the server's text format."""


@dataclass(frozen=True, slots=True)
class TypeInfo:
    """A type: its name, a domain's base type, and the type of an array's elements (0: none)."""

    name: str
    base: int = 0
    element: int = 0


Json = Callable[[str], str]


class ValueTypes:
    """Converts values of all types to JSON; `look_up` fetches unknown types from the catalog."""

    def __init__(self, look_up: Callable[[Iterable[int]], Mapping[int, TypeInfo]]) -> None:
        self._look_up = look_up
        self._known: dict[int, Json] = {}

    def to_json(self, text: str, type_oid: int) -> str:
        """Convert a value to JSON."""
        convert = self._known.get(type_oid)
        if convert is None:
            convert = self._known[type_oid] = self._converter(type_oid)
        return convert(text)

    def _converter(self, type_oid: int) -> Json:
        info = self._look_up([type_oid]).get(type_oid, TypeInfo(""))
        if info.base:
            return self._converter(info.base)
        if info.element:
            element = self._converter(info.element)
            return lambda text: array_json(text, element)
        return _BY_NAME.get(info.name, json_text)


def json_text(text: str) -> str:
    """Write a JSON string."""
    return json.dumps(text, ensure_ascii=False)


def number_json(text: str) -> str:
    """Write a number with all its digits; values that JSON numbers can't represent become strings.

    >>> number_json("12.50"), number_json("NaN"), number_json("1e+300")
    ('12.50', '"NaN"', '1e+300')
    """
    return text if _NUMBER.fullmatch(text) else json_text(text)


def timestamp_json(text: str) -> str:
    """Write a time in ISO 8601, with Z if it has a zone; keep values that ISO 8601 can't represent.

    >>> timestamp_json("2026-01-02 03:04:05.6+00"), timestamp_json("infinity")
    ('"2026-01-02T03:04:05.6Z"', '"infinity"')
    """
    match = _TIMESTAMP.fullmatch(text)
    return f'"{match[1]}T{match[2]}{"Z" if match[3] else ""}"' if match else json_text(text)


def array_json(text: str, element: Json) -> str:
    """Write an array as nested lists, without its bounds.

    >>> array_json('[0:1]={{1,NULL},{3,4}}', number_json)
    '[[1,null],[3,4]]'
    """
    loader = Transformer().get_loader(_TEXTS, pq.Format.TEXT)
    return _list_json(loader.load(text.encode()), element)


def _list_json(value: Any, element: Json) -> str:
    if value is None:
        return "null"
    if isinstance(value, list):
        return f"[{','.join(_list_json(one, element) for one in value)}]"
    return element(value)


_BY_NAME: dict[str, Json] = {
    **dict.fromkeys(("int2", "int4", "int8", "oid", "float4", "float8", "numeric"), number_json),
    **dict.fromkeys(("timestamp", "timestamptz"), timestamp_json),
    **dict.fromkeys(("json", "jsonb"), str),
    "bool": lambda text: "true" if text == "t" else "false",
}
