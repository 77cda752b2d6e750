"""Validation of columns' Polars types; errors for Python types and names suggest the type that was meant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, get_origin

from ...sketches.core.lazy import pl

_OURS = {
    "str": "pl.String",
    "string": "pl.String",
    "int": "pl.Int64",
    "integer": "pl.Int64",
    "long": "pl.Int64",
    "float": "pl.Float64",
    "double": "pl.Float64",
    "bool": "pl.Boolean",
    "boolean": "pl.Boolean",
    "bytes": "pl.Binary",
    "datetime": 'pl.Datetime("us")',
    "timestamp": 'pl.Datetime("us")',
    "date": "pl.Date",
    "time": "pl.Time",
    "Decimal": "pl.Decimal",
    "list": "pl.List(pl.String), or of another type",
    "dict": 'pl.Struct({"name": pl.String})',
}


def check_entries(verb: str, kind: Any, place: Sequence[str]) -> None:
    """Raise `ValueError` unless a type has a list of structs of a text `key` and a `value` at a place.

    A place is the fields that lead there, with ``"[]"`` for the elements of a list.

    >>> check_entries("field", pl.List(pl.Int64), ["[]"])
    Traceback (most recent call last):
    ValueError: field: entries must name lists of structs of a key and a value, got ['[]'], which is Int64
    """
    at: Any = kind
    for step in place:
        if isinstance(at, pl.Struct):
            at = {one.name: one.dtype for one in at.fields}.get(step)
        else:
            at = at.inner if isinstance(at, pl.List) and step == "[]" else None
    inner = at.inner if isinstance(at, pl.List) else None
    fields = [(one.name, one.dtype) for one in inner.fields] if isinstance(inner, pl.Struct) else []
    if [name for name, _ in fields] != ["key", "value"] or fields[0][1] != pl.String:
        raise ValueError(
            f"{verb}: entries must name lists of structs of a key and a value, got {list(place)}, which is "
            f"{at or 'not there'}"
        )


def check_polars_types(verb: str, schema: Mapping[str, Any], besides: tuple[type, ...] = ()) -> None:
    """Raise `TypeError` for a column without a Polars type; `besides` are other classes that are accepted.

    >>> check_polars_types("json", {"user": str})
    Traceback (most recent call last):
    TypeError: json: 'user' must be of a Polars type, such as pl.String, got <class 'str'>
    """
    for name, kind in schema.items():
        polars = isinstance(kind, pl.DataType) or (isinstance(kind, type) and issubclass(kind, pl.DataType))
        if polars or isinstance(kind, besides):
            continue
        word = kind.lower() if isinstance(kind, str) else getattr(get_origin(kind) or kind, "__name__", "")
        fitting = _OURS.get(word) or _OURS.get(type(kind).__name__, "pl.String")
        raise TypeError(f"{verb}: {name!r} must be of a Polars type, such as {fitting}, got {kind!r}")
