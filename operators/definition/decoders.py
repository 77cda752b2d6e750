"""A decoder's JSON form. It determines which rows exist, so it is part of a stream's definition.

The columns that it returns are stored beside it, like the source's columns.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import re
from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import PurePath
from typing import Any

from ...sketches.core.lazy import pl
from ..formats.decode import Decoder
from .expression_text import expression_text, type_text
from .function_text import function_text


def decoder_definition(decoder: Decoder) -> dict[str, Any]:
    """A decoder's class, its `version` if it has one, and its parameters, as plain JSON.

    The parameters come from the decoder's `definition` method or, without one, from its attributes except the
    schema. Raises `TypeError` for an attribute that has no JSON form.

    >>> from ..formats.json.decoder import json
    >>> decoder_definition(json({"user": pl.String}))
    {'decoder': 'Json'}
    """
    kind = type(decoder)
    definition: dict[str, Any] = {"decoder": kind.__qualname__.rpartition("<locals>.")[2]}
    own = getattr(decoder, "definition", None)
    given = own() if callable(own) else {"version": getattr(decoder, "version", None), **_attributes(decoder)}
    for name, value in given.items():
        if name == "schema" or (name == "version" and value is None):
            continue
        try:
            definition[name] = _plain(value)
        except TypeError as error:
            raise TypeError(
                f"value: the decoder {kind.__name__} has {error} as its {name!r}, which can't be stored in "
                "the stream's definition; give the decoder a method definition() that returns its version "
                'and its parameters as plain JSON, such as {"version": 1, "separator": ";"}'
            ) from None
    return definition


def _attributes(decoder: Decoder) -> dict[str, Any]:
    """An object's attributes: a dataclass's fields, or the state that another class would pickle."""
    if dataclasses.is_dataclass(decoder):
        return {field.name: getattr(decoder, field.name) for field in dataclasses.fields(decoder)}
    state = decoder.__getstate__()
    parts = state if isinstance(state, tuple) else (state,)
    attributes = {name: value for part in parts if part for name, value in part.items()}
    computed_later = functools.cached_property
    return {
        n: v for n, v in attributes.items() if not isinstance(getattr(type(decoder), n, None), computed_later)
    }


def _plain(value: Any) -> Any:
    """A parameter as plain JSON. Raises `TypeError`, naming its type, if it has no JSON form."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (pl.DataType, type(pl.Int64))):
        return type_text(value)
    if isinstance(value, Mapping):
        return {str(_plain(key)): _plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(inner) for inner in value]
    if isinstance(value, (set, frozenset)):
        return sorted((_plain(inner) for inner in value), key=repr)
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, enum.Enum):
        return value.name
    if isinstance(value, re.Pattern):
        return {"pattern": _plain(value.pattern), "flags": value.flags}
    if isinstance(value, (datetime, date, time, timedelta, Decimal, PurePath)):
        return str(value)
    if isinstance(value, pl.Expr):
        return expression_text(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
        return {type(value).__qualname__: fields}
    if (text := function_text(value)) is not None:
        return text
    raise TypeError(f"a {type(value).__qualname__}")


def decoded_columns(value: Decoder, key: Decoder | None) -> dict[str, Any]:
    """The columns of values and of keys. Raises for anything but a decoder, and for names that both use."""
    for name, decoder in {"value": value, **({} if key is None else {"key": key})}.items():
        if not hasattr(decoder, "decode") or not hasattr(decoder, "schema"):
            raise TypeError(
                f'{name} must be a decoder, such as {name}=json({{"user": pl.String}}), got {decoder!r}'
            )
    columns = dict(value.schema)
    for column in {} if key is None else key.schema:
        if column in columns:
            raise ValueError(
                f"key: {column!r} is already a column of the value; rename one of the two, as in "
                f'json({{"key_{column}": field("{column}", pl.String)}})'
            )
    return {**columns, **({} if key is None else key.schema)}
