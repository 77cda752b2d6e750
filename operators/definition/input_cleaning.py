"""An aggregate's inputs: rows without a usable time, weight or number are dropped."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ...sketches.core.columns.lists import elements
from ...sketches.core.lazy import np, pa, pc

if TYPE_CHECKING:
    from ...sketches.core.protocol import Groups
    from .aggregate import Aggregate

_LIMITS = {"weight": (1e-280, 1e280), "value": (-1e300, 1e300)}
"""Numeric inputs and their valid ranges; other inputs are keys, which may have any value.

Rows of weight 0 are never sampled, so they may be dropped like the others.
"""


_WIDE = ("s", "ms")
"""Units in which int64 can hold times that overflow in microseconds."""


def check_input(name: str, column: str, kind: pa.DataType) -> None:
    """Raise `TypeError` for a column that can't be this input."""
    sorts = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
    if name in _LIMITS and not any(belongs(kind) for belongs in sorts):
        raise TypeError(f"{name}={column!r} must name a column of numbers, got one of {kind}; cast it first")


def usable(column: pa.Array, inputs: Mapping[str, Any]) -> tuple[pa.Array, dict[str, Any]]:
    """Set the column to null, which every family skips, in rows with null, NaN or out-of-range inputs.

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
        numbers = sizes if pa.types.is_decimal(numbers.type) else numbers
        fine = pc.fill_null(pc.and_(pc.greater_equal(sizes, least), pc.less_equal(sizes, most)), False)
        given[name] = pc.if_else(fine, numbers, pa.scalar(0, numbers.type))
        column = pc.if_else(fine, column, pa.scalar(None, column.type))
    return column, given


def update(
    groups: Groups, aggregate: Aggregate, numbers: np.ndarray, column: Any, given: Mapping[str, Any]
) -> None:
    """Add values to an aggregate's groups. Raises `ValueError`, naming the column, for impossible weights."""
    try:
        groups.update(numbers, column, **given)
    except (TypeError, ValueError) as error:
        optional = [one for one in aggregate.family.optional if one in aggregate.inputs]
        if not optional:
            raise
        named = ", ".join(f"{one}={aggregate.inputs[one]!r}" for one in optional)
        message = f"{aggregate.name}({aggregate.column!r}, {named}): {error}"
        raise type(error)(message) from None


def within_reach(column: pa.Array) -> pa.Array:
    """The column with null for times that overflow microseconds, 292,000 years off and more, also in lists.

    Broken producers write such dates, and one of them is no reason to end a stream.

    >>> within_reach(pa.array([1, 1 << 60], pa.int64()).view(pa.timestamp("ms"))).null_count
    1
    >>> within_reach(pa.array([[1, None, 1 << 60], None], pa.list_(pa.timestamp("ms")))).to_pylist()
    [[datetime.datetime(1970, 1, 1, 0, 0, 0, 1000), None, None], None]
    """
    kind, types = column.type, pa.types
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        items, rows = elements(column)
        near = within_reach(items)
        if near is items:
            return column
        ends = pa.array(np.searchsorted(rows, np.arange(len(column) + 1)))
        return pa.LargeListArray.from_arrays(ends, near, mask=column.is_null())
    if kind == pa.date32():
        most, counts = (1 << 63) // 86_400_000_000, column.view(pa.int32())
    elif kind == pa.date64() or (getattr(kind, "unit", "") in _WIDE and not types.is_time(kind)):
        each = 1_000_000 if kind != pa.date64() and kind.unit == "s" else 1_000
        most, counts = (1 << 63) // each, column.view(pa.int64())
    else:
        return column
    near = pc.and_(pc.less(counts, most), pc.greater(counts, -most))
    if pc.all(near, min_count=0).as_py():
        return column
    return pc.if_else(near, column, pa.scalar(None, kind))
