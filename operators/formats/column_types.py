"""Columns are of Polars types; an error names the one meant by a type of Python, or by a name."""

from __future__ import annotations

from collections.abc import Mapping
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


def check_polars_types(verb: str, schema: Mapping[str, Any], besides: tuple[type, ...] = ()) -> None:
    """Raise `TypeError` for a column that is of no Polars type; `besides` are other values that may stand.

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
