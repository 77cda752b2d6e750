"""A column of numbers in the one type a sketch holds: double, float or int64."""

from __future__ import annotations

import ctypes
from dataclasses import replace
from typing import Any

import numpy as np

from .columns import Kind, Values, as_values
from .protocol import SketchError


def as_numbers(values: Any, dtype: Any, family: str) -> Values:
    """`values` with `numbers` of `dtype` (float64, float32 or int64); `family` names the sketch in errors.

    Whole numbers become floats, also those above 2^63, and so do decimals; neither floats nor decimals become
    whole. Raises `TypeError` for types that are not numbers and `SketchError` for unsigned numbers beyond
    int64.

    >>> as_numbers([1, None, 2], np.float64, "KLL").numbers.tolist()
    [1.0, 2.0]
    """
    dtype = np.dtype(dtype)
    found = as_values(values, decimals=True)
    if found.kind in ("string", "binary"):
        raise TypeError(f"{family}: expected a column of numbers, got {found.kind}; cast it first")
    if dtype.kind == "i":
        check_signed(found, family)
    if found.numbers.dtype == dtype:
        return replace(found, numbers=_writable(found.numbers))
    if dtype.kind == "i" and len(found):
        raise TypeError(f"{family}: expected whole numbers, got floats; cast them or use a sketch of doubles")
    numbers = found.numbers.view(np.uint64) if found.unsigned else found.numbers
    with np.errstate(over="ignore"):
        numbers = numbers.astype(dtype)
    kind: Kind = "int64" if dtype.kind == "i" else "float64"
    return Values(kind, numbers, found.offsets, found.data, found.rows, found.height)


def check_signed(found: Values, family: str) -> None:
    """Raise `SketchError` for unsigned numbers beyond int64: `as_values` keeps their bits, for hashing."""
    if found.unsigned and len(found) and int(found.numbers.min()) < 0:
        most = int(found.numbers.view(np.uint64).max())
        raise SketchError(f"{family}: a sketch of longs holds int64 only, and {most} is beyond; cast it")


def _writable(array: np.ndarray) -> np.ndarray:
    """The same memory, not marked read-only: Numba compiles kernels apart for the two, ours only read it."""
    if array.flags.writeable or not array.nbytes:
        return array if len(array) else array.copy()
    memory: Any = (ctypes.c_char * array.nbytes).from_address(array.ctypes.data)
    memory.owner = array
    return np.frombuffer(memory, array.dtype)
