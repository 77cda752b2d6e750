"""The further inputs of an aggregate, row by row: what no weight and no number can be made of is left out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

_LIMITS = {"weight": (1e-280, 1e280), "value": (-1e300, 1e300)}
"""Inputs that are numbers, and between which they must lie; other inputs are keys, which may be anything.

Rows of weight 0 are in no sample, so they may be left out like the others.
"""


def check_input(name: str, column: str, kind: pa.DataType) -> None:
    """Raise `TypeError` for a column that can't be that input."""
    if name in _LIMITS and not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        raise TypeError(f"{name}={column!r} must name a column of numbers, got one of {kind}; cast it first")


def usable(column: pa.Array, inputs: Mapping[str, Any]) -> tuple[pa.Array, dict[str, Any]]:
    """The column with null, which every family skips, in rows whose inputs are null, NaN or out of range.

    One bad weight in a stream is no reason to end it.

    >>> column, inputs = usable(pa.array(["a", "b", "c"]), {"weight": pa.array([1.5, None, -2.0])})
    >>> column.to_pylist(), inputs["weight"].to_pylist()
    (['a', None, None], [1.5, 0.0, 0.0])
    """
    given = dict(inputs)
    for name, (least, most) in _LIMITS.items():
        if name not in given:
            continue
        numbers = given[name]
        sizes = numbers.cast(pa.float64(), safe=False)
        fine = pc.fill_null(pc.and_(pc.greater_equal(sizes, least), pc.less_equal(sizes, most)), False)
        given[name] = pc.if_else(fine, numbers, pa.scalar(0, numbers.type))
        column = pc.if_else(fine, column, pa.scalar(None, column.type))
    return column, given
