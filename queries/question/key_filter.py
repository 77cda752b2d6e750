"""Selecting groups by the values of their keys: parses text from a URL as the keys' own types."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from ...operators.table.schema import keys_of
from .question import BadQuestion


def wanted_keys(
    schema: pa.Schema, given: Sequence[tuple[str, Sequence[Any]]]
) -> tuple[tuple[str, tuple[Any, ...]], ...]:
    """The values of each key in its own type; None selects the group without one. Raises `BadQuestion`.

    Bytes are written in hexadecimal, times in ISO 8601.
    """
    keys = keys_of(schema)
    filters = []
    for key, values in given:
        if key not in keys:
            raise BadQuestion(
                f"key.{key}: {key} is not a key of this table; its keys are {', '.join(keys) or 'none'}"
            )
        kind = schema.field(key).type
        filters.append((key, tuple(_value(key, value, kind) for value in values)))
    return tuple(sorted(filters, key=lambda pair: pair[0]))


def _value(key: str, value: Any, kind: pa.DataType) -> Any:
    if value is None:
        return None
    try:
        if pa.types.is_binary(kind):
            return bytes.fromhex(value)
        if pa.types.is_string(kind):
            if not isinstance(value, str):
                raise ValueError
            value.encode()  # raises `ValueError` for lone surrogates
            return value
        if pa.types.is_boolean(kind):
            return {"true": True, "false": False}[str(value).lower()]
        text = pa.array([str(value)])
        if pa.types.is_floating(kind):
            return pa.array([float(value)]).cast(kind)[0].as_py()
        return text.cast(kind)[0].as_py()
    except (ValueError, TypeError, KeyError, OverflowError, pa.ArrowException):
        raise BadQuestion(f"key.{key} is {value!r}, which is not a {kind}, the type of that key") from None
