"""Row weights: non-negative integers for the counting families, or doubles."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from .arrays import as_input, is_scalar
from .columns import Values

_MOST = 1 << 62


def as_weights(weights: Any, rows: int) -> np.ndarray:
    """Return one int64 per row; a single number applies to all rows.

    Raises `ValueError` for nulls, fractions, negative numbers or a different length.

    >>> as_weights([2, 0], rows=2).tolist(), as_weights(3, rows=2).tolist()
    ([2, 0], [3, 3])
    """
    array = as_input("weight", weights)
    if pa.types.is_null(array.type) or not pa.types.is_integer(array.type) or array.null_count:
        raise ValueError(f"weights must be whole numbers without nulls, got {array.type}")
    numbers = np.ascontiguousarray(array.to_numpy(zero_copy_only=False))
    if is_scalar(weights) and len(numbers) == 1:
        numbers = np.repeat(numbers, rows)
    if len(numbers) != rows:
        raise ValueError(f"expected one weight a row, {rows} in all, got {len(numbers)}")
    if rows and int(numbers.min()) < 0:
        raise ValueError(f"weights must not be negative, got {numbers.min()}")
    if rows and int(numbers.max()) >= 1 << 63:
        raise ValueError(f"weights must be below 2^63, got {numbers.max()}")
    return np.ascontiguousarray(numbers, np.int64)


def optional_weights(family: str, weight: Any, column: Values, whole: bool) -> tuple[np.ndarray, float]:
    """Return the weight of each value of a column, 0 for a null weight, and an upper limit of the weights.

    Weights are int64 if `whole` or if they came as integers, else float64. The limit is at most twice the
    largest weight.

    A single number applies to all rows. Raises `ValueError` for negative, infinite or NaN weights, for
    fractions if `whole`, and for a different length; `TypeError` for anything but numbers.

    >>> from .columns import as_values
    >>> weights, most = optional_weights("KLL", [2, None, 3], as_values([7, 8, 9]), whole=True)
    >>> weights.tolist(), most
    ([2, 0, 3], 3.0)
    """
    wanted = f"{family}: weights must be {'whole ' if whole else ''}numbers from 0 to below 2^62"
    array, types = as_input(f"{family}: weight", weight), pa.types
    sorts = (types.is_integer, types.is_floating, types.is_decimal, types.is_null)
    if not any(belongs(array.type) for belongs in sorts):
        raise TypeError(f"{wanted}, got {array.type}; cast them")
    if is_scalar(weight) and len(array) == 1:
        array = pa.repeat(array[0], column.length)
    if len(array) != column.length:
        message = f"expected one weight a row, {column.length} in all, got {len(array)}"
        raise ValueError(f"{family}: {message}")
    if types.is_decimal(array.type):
        array = array.cast(pa.float64(), safe=False)
    if types.is_null(array.type):
        array = array.cast(pa.int64())
    if array.null_count:
        array = array.fill_null(0)
    numbers = np.ascontiguousarray(column.per_value(array.to_numpy(zero_copy_only=False)))
    if not len(numbers):
        return np.zeros(0, np.int64), 0.0
    if numbers.dtype.kind in "iu" and numbers.dtype != np.uint64:
        numbers = numbers.astype(np.int64, copy=False)
        least = most = np.bitwise_or.reduce(numbers)  # has the bits of all: negative if any number is
    else:
        least, most = numbers.min(), numbers.max()  # NaN if any number is
    if not (least >= 0 and most < _MOST):
        raise ValueError(f"{wanted}, got {numbers[~((numbers >= 0) & (numbers < _MOST))][0]}")
    if whole and numbers.dtype.kind == "f" and (numbers != np.floor(numbers)).any():
        raise ValueError(f"{wanted}, got {numbers[numbers != np.floor(numbers)][0]}")
    integers = whole or numbers.dtype.kind in "iu"
    return np.ascontiguousarray(numbers, np.int64 if integers else np.float64), float(most)


def as_doubles(given: Any, rows: int, expected: str) -> np.ndarray:
    """Return one float64 per row; a single number applies to all rows, null becomes NaN.

    Raises `ValueError` for a different length and `TypeError` for values that are not numbers; `expected`
    begins the messages.

    >>> as_doubles([2, 0], 2, "expected one weight").tolist()
    [2.0, 0.0]
    """
    if type(given) is np.ndarray and given.dtype == np.float64 and given.shape == (rows,):
        return np.ascontiguousarray(given)
    array = as_input(expected, given)
    types = pa.types
    sorts = (types.is_integer, types.is_floating, types.is_decimal, types.is_boolean, types.is_null)
    if not any(belongs(array.type) for belongs in sorts):
        raise TypeError(f"{expected} a row, a number, got {array.type}; cast it")
    numbers = array.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    if is_scalar(given) and len(numbers) == 1:
        return np.full(rows, numbers[0])
    if len(numbers) != rows:
        raise ValueError(f"{expected} a row, {rows} in all, got {len(numbers)}")
    return np.ascontiguousarray(numbers)


def total(weights: np.ndarray) -> int:
    """Return the exact sum of weights; this is slow only if it might not fit int64."""
    rough = float(weights.sum(dtype=np.float64))
    return int(weights.sum()) if rough < 2.0**62 else sum(weights.tolist())
