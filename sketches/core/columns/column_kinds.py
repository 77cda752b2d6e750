"""Which columns a family accepts as an aggregate, and what their type determines.

Each check gets the Arrow type of a column's values, with lists flattened, and returns the parameters that it
determines, none for most families. It raises `TypeError`, naming the type and what to do, for a column that
the family doesn't accept.
"""

from __future__ import annotations

from typing import Any

from ..arguments import shown
from ..lazy import pa


def column_kind(leaf: pa.DataType) -> str:
    """Return the kind, as in `columns.Values`, for a column of this type. Raises `TypeError` for others.

    >>> column_kind(pa.int16()), column_kind(pa.large_string())
    ('int64', 'string')
    """
    types = pa.types
    if types.is_floating(leaf):
        return "float64"
    if types.is_string(leaf) or types.is_large_string(leaf) or types.is_string_view(leaf):
        return "string"
    if types.is_binary(leaf) or types.is_large_binary(leaf) or types.is_binary_view(leaf):
        return "binary"
    if types.is_fixed_size_binary(leaf):
        return "binary"
    if types.is_integer(leaf) or types.is_boolean(leaf):
        return "int64"
    if types.is_temporal(leaf) and not types.is_interval(leaf):
        return "int64"
    raise TypeError(f"a column of {leaf} can't be aggregated; cast it to an integer, a double or a string")


def as_type(family: str, type: Any) -> pa.DataType:
    """Return an Arrow type, from the type itself or its name. Raises `ValueError` for anything else.

    >>> as_type("sum", "double")
    DataType(double)
    """
    if isinstance(type, pa.DataType):
        return type
    try:
        return pa.type_for_alias(type if isinstance(type, str) else "")
    except ValueError:
        message = "type must be an Arrow type, or the name of one such as 'double'"
        raise ValueError(f"{family}: {message}, got {shown(type)}") from None


def anything(leaf: pa.DataType) -> dict[str, Any]:
    """Accept values of any type."""
    return {}


def hashable(leaf: pa.DataType) -> dict[str, Any]:
    """Accept values that have a hash; only the hash is stored."""
    column_kind(leaf)
    return {}


def countable(leaf: pa.DataType) -> dict[str, Any]:
    """Accept values of which equal ones can be counted together, which excludes floats."""
    if column_kind(leaf) == "float64":
        raise TypeError(f"values of {leaf} can't be counted as equal ones; cast them to whole numbers")
    return {}


def numeric(leaf: pa.DataType) -> dict[str, Any]:
    """Accept integers, floats, decimals and times, which are all numbers internally."""
    if not pa.types.is_decimal(leaf) and column_kind(leaf) not in ("int64", "float64"):
        raise TypeError(f"a column of {leaf} can't be added up; cast it to a number")
    return {}


def summands(leaf: pa.DataType) -> dict[str, Any]:
    """Accept numbers with a meaningful sum, which excludes timestamps."""
    if pa.types.is_temporal(leaf):
        raise TypeError(f"a column of {leaf} can't be added up; cast it to a number")
    return numeric(leaf)


def kind_of(leaf: pa.DataType, **kinds: str) -> dict[str, Any]:
    """Return the parameter `kind` for a column, by its `column_kind`.

    ``unsigned=`` is for numbers that may exceed int64, ``decimal=`` for decimals.

    >>> kind_of(pa.int8(), int64="long", float64="double")
    {'kind': 'long'}
    """
    if pa.types.is_decimal(leaf) and "decimal" in kinds:
        return {"kind": kinds["decimal"]}
    kind = kinds.get("unsigned" if leaf == pa.uint64() else column_kind(leaf))
    if kind is None:
        raise TypeError(f"a column of {leaf} can't be used here, only {', '.join(kinds)}; cast it")
    return {"kind": kind}


def long_or_double(leaf: pa.DataType) -> dict[str, Any]:
    """Accept numbers, stored as longs if int64 can hold them all, else as doubles."""
    return kind_of(leaf, int64="long", float64="double", unsigned="double", decimal="double")


def frequent(leaf: pa.DataType) -> dict[str, Any]:
    """Accept numbers, strings, bytes, and times, stored as microseconds; answers have the times' `type`.

    >>> frequent(pa.int8()), frequent(pa.date32())
    ({'kind': 'long'}, {'kind': 'long', 'type': 'date32[day]'})
    >>> frequent(pa.timestamp("ns", "Asia/Kolkata"))["type"]
    'timestamp[us, tz=UTC]'
    """
    decided = kind_of(leaf, int64="long", string="string", float64="double", binary="binary")
    types = pa.types
    if not types.is_temporal(leaf):
        return decided
    if types.is_date(leaf):
        kind = pa.date32()
    elif types.is_timestamp(leaf):
        kind = pa.timestamp("us", None if leaf.tz is None else "UTC")
    else:
        kind = pa.time64("us") if types.is_time(leaf) else pa.duration("us")
    return {**decided, "type": str(kind)}


def long_double_or_string(leaf: pa.DataType) -> dict[str, Any]:
    """Accept numbers, stored as longs or doubles, and strings."""
    return kind_of(leaf, int64="long", float64="double", string="string")
