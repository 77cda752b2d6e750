"""The arguments of a function call in SQL: columns and constants, by position or by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from decimal import Decimal
from inspect import Parameter, Signature
from math import isfinite
from typing import Any

import pyarrow as pa

from ...sketches.core.protocol import SketchError


def signature(columns: Sequence[str], options: Mapping[str, Any]) -> Signature:
    """Return the signature: required columns, then options with their defaults.

    >>> str(signature(["column"], {"lg_k": 12}))
    '(column, lg_k=12)'
    """
    either = Parameter.POSITIONAL_OR_KEYWORD
    needed = [Parameter(name, either) for name in columns]
    return Signature([*needed, *(Parameter(name, either, default=d) for name, d in options.items())])


def bound(
    function: str,
    columns: Sequence[str],
    options: Mapping[str, Any],
    given: Sequence[Any],
    named: Mapping[str, Any],
) -> dict[str, Any]:
    """Return a call's arguments by name, without omitted ones. Raises `TypeError` for invalid calls.

    >>> bound("sketch_distinct", ["column"], {"lg_k": 12}, ["user"], {"lg_k": 11})
    {'column': 'user', 'lg_k': 11}
    """
    takes = signature(columns, options)
    try:
        return dict(takes.bind(*given, **named).arguments)
    except TypeError as error:
        raise TypeError(f"{function}{takes}: {error}") from None


def constant(function: str, name: str, column: pa.Array, default: Any) -> Any:
    """Return the constant value of an option's column, converted to the type of its default.

    An interval becomes seconds. Raises `SketchError` for a column with several values, for null, and for
    values of another type.

    >>> constant("sketch_quantiles", "relative_accuracy", pa.array([Decimal("0.01")] * 2), 0.02)
    0.01
    """
    values = column.unique().to_pylist()
    if len(values) != 1 or values[0] is None:
        got = "null" if values == [None] else f"{len(values)} values"
        raise SketchError(f"{function}: {name} must be one constant for all rows of a group, got {got}")
    return converted(function, name, values[0], default)


def converted(function: str, name: str, value: Any, default: Any) -> Any:
    """Convert a Python value to the type of an option's default. Raises `SketchError` for other types.

    >>> converted("sketch_distinct", "lg_k", Decimal(11), 12)
    11
    """
    wanted = type(default)
    if isinstance(value, timedelta):
        value = value.total_seconds()
    if isinstance(value, bool) is (wanted is bool):
        if wanted is float and isinstance(value, (int, float, Decimal)):
            return float(value)
        number = isinstance(value, (int, float, Decimal)) and isfinite(value)
        if wanted is int and number and value == int(value):
            return int(value)
        if wanted in (str, bool) and isinstance(value, wanted):
            return value
    raise SketchError(
        f"{function}: {name} must be of the same type as its default {default!r}, got {value!r}"
    )
