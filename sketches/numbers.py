"""A column of numbers in the one type a sketch holds: double, float or int64."""

from __future__ import annotations

import ctypes
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from .columns import Values, as_array, as_values
from .protocol import SketchError


def as_numbers(values: Any, dtype: Any, family: str) -> Values:
    """`values` with `numbers` of `dtype` (float64, float32 or int64); `family` names the sketch in errors.

    Whole numbers become floats, also those above 2^63; floats never become whole. Raises `TypeError` for
    types that are no numbers and `SketchError` for unsigned numbers beyond int64.

    >>> as_numbers([1, None, 2], np.float64, "KLL").numbers.tolist()
    [1.0, 2.0]
    """
    dtype = np.dtype(dtype)
    found = values if isinstance(values, Values) else as_values(without_unsigned(values, dtype, family))
    if found.kind in ("string", "binary"):
        raise TypeError(f"{family}: expected a column of numbers, got {found.kind}; cast it first")
    if found.numbers.dtype == dtype:
        return replace(found, numbers=_writable(found.numbers))
    if dtype.kind == "i" and len(found):
        raise TypeError(f"{family}: expected whole numbers, got floats; cast them or use a sketch of doubles")
    with np.errstate(over="ignore"):
        numbers = found.numbers.astype(dtype)
    return Values("int64" if dtype.kind == "i" else "float64", numbers, found.offsets, found.data, found.rows)


def _writable(array: np.ndarray) -> np.ndarray:
    """The same memory, not marked read-only: Numba compiles kernels apart for the two, ours only read it."""
    if array.flags.writeable or not array.nbytes:
        return array if len(array) else array.copy()
    memory: Any = (ctypes.c_char * array.nbytes).from_address(array.ctypes.data)
    memory.owner = array
    return np.frombuffer(memory, array.dtype)


def without_unsigned(values: Any, dtype: np.dtype, family: str) -> Any:
    """uint64 columns as doubles, or as int64 where they fit: `as_values` keeps the bits, for hashing.

    Raises `SketchError` for numbers beyond int64.
    """
    if isinstance(values, (Values, float)) or (isinstance(values, np.ndarray) and values.dtype != np.uint64):
        return values
    array = as_array(values)
    target = _signed_type(array.type, pa.int64() if dtype.kind == "i" else pa.float64())
    if target == array.type:
        return array
    try:
        return array.cast(target, safe=dtype.kind == "i")
    except pa.ArrowInvalid as error:
        raise SketchError(f"{family}: a sketch of longs holds int64 only: {error}") from None


def _signed_type(kind: pa.DataType, target: pa.DataType) -> pa.DataType:
    if pa.types.is_uint64(kind):
        return target
    if pa.types.is_dictionary(kind):
        return target if pa.types.is_uint64(kind.value_type) else kind
    if pa.types.is_list(kind):
        return pa.list_(_signed_type(kind.value_type, target))
    if pa.types.is_large_list(kind):
        return pa.large_list(_signed_type(kind.value_type, target))
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(_signed_type(kind.value_type, target), kind.list_size)
    return kind
