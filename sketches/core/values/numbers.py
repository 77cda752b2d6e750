"""A column of numbers in the type that a sketch stores: double, float or int64."""

from __future__ import annotations

import ctypes
from dataclasses import replace
from typing import Any

import numpy as np

from ..columns.columns import Kind, Values, as_values
from ..protocol import SketchError
from .item_kinds import as_longs


def as_numbers(values: Any, dtype: Any, family: str) -> Values:
    """Convert the `numbers` of `values` to `dtype` (float64, float32 or int64); `family` is for errors.

    For floats, integers (even above 2^63) and decimals are converted. For int64, floats are converted if all
    are whole, without NaN. Raises `TypeError` for types that are not numbers and `SketchError` for unsigned
    numbers beyond int64.

    >>> as_numbers([1, None, 2], np.float64, "KLL").numbers.tolist()
    [1.0, 2.0]
    """
    dtype = np.dtype(dtype)
    column = as_values(values, decimals=True)
    if column.kind in ("string", "binary"):
        raise TypeError(f"{family}: expected a column of numbers, got {column.kind}; cast it first")
    if dtype.kind == "i":
        check_signed(column, family)
    if column.numbers.dtype == dtype:
        numbers = _writable(column.numbers)
        return column if numbers is column.numbers else replace(column, numbers=numbers)
    if dtype.kind == "i" and len(column):
        if (longs := as_longs(column)) is None:
            message = "expected whole numbers, got floats; cast them or use a sketch of doubles"
            raise TypeError(f"{family}: {message}")
        return longs
    numbers = column.numbers.view(np.uint64) if column.unsigned else column.numbers
    with np.errstate(over="ignore"):
        numbers = numbers.astype(dtype)
    kind: Kind = "int64" if dtype.kind == "i" else "float64"
    return Values(kind, numbers, column.offsets, column.data, column.rows, column.height)


def check_signed(column: Values, family: str) -> None:
    """Raise `SketchError` for unsigned numbers beyond int64: `as_values` keeps their bits, for hashing."""
    if column.unsigned and len(column) and int(column.numbers.min()) < 0:
        most = int(column.numbers.view(np.uint64).max())
        raise SketchError(f"{family}: a sketch of longs holds int64 only, and {most} is beyond; cast it")


def _writable(array: np.ndarray) -> np.ndarray:
    """Mark memory as writable: Numba compiles a separate kernel for read-only arrays, and ours only read."""
    if array.flags.writeable or not array.nbytes:
        return array if len(array) else array.copy()
    memory: Any = (ctypes.c_char * array.nbytes).from_address(array.ctypes.data)
    memory.owner = array
    return np.frombuffer(memory, array.dtype)
