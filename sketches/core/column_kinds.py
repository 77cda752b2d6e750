"""Which columns a family takes as an aggregate, and what their type decides.

Each check takes the Arrow type of a column's values, lists flattened, and gives the parameters that it
decides, none for most families. It raises `TypeError`, naming the type and what to do, for a column that the
family can't take.
"""

from __future__ import annotations

from typing import Any

from .arguments import shown
from .lazy import pa


def column_kind(leaf: pa.DataType) -> str:
    """The kind, as in `columns.Values`, that a column of this type becomes. Raises `TypeError` for others.

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
    """An Arrow type, given as one or by its name. Raises `ValueError` for all else.

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
    """Values of any type."""
    return {}


def hashable(leaf: pa.DataType) -> dict[str, Any]:
    """Values that have a hash; nothing more is kept of them."""
    column_kind(leaf)
    return {}


def countable(leaf: pa.DataType) -> dict[str, Any]:
    """Values whose equal ones are counted together, which floats are not fit for."""
    if column_kind(leaf) == "float64":
        raise TypeError(f"values of {leaf} can't be counted as equal ones; cast them to whole numbers")
    return {}


def numeric(leaf: pa.DataType) -> dict[str, Any]:
    """Whole numbers, floats, decimals and times, all numbers in the end."""
    if not pa.types.is_decimal(leaf) and column_kind(leaf) not in ("int64", "float64"):
        raise TypeError(f"a column of {leaf} can't be added up; cast it to a number")
    return {}


def summands(leaf: pa.DataType) -> dict[str, Any]:
    """Numbers whose sum means something, which that of points in time does not."""
    if pa.types.is_temporal(leaf):
        raise TypeError(f"a column of {leaf} can't be added up; cast it to a number")
    return numeric(leaf)


def kind_of(leaf: pa.DataType, **kinds: str) -> dict[str, Any]:
    """The parameter `kind` for a column, by its `column_kind`.

    ``unsigned=`` is for numbers that may be beyond int64, ``decimal=`` for decimals.

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
    """Numbers, kept as longs where int64 holds them all and as doubles else."""
    return kind_of(leaf, int64="long", float64="double", unsigned="double", decimal="double")


def long_or_string(leaf: pa.DataType) -> dict[str, Any]:
    """Whole numbers and times, kept as longs, and strings."""
    return kind_of(leaf, int64="long", string="string")


def long_double_or_string(leaf: pa.DataType) -> dict[str, Any]:
    """Numbers, kept as longs or doubles, and strings."""
    return kind_of(leaf, int64="long", float64="double", string="string")
