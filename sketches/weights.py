"""Row weights as the counting families take them: whole numbers from 0."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from .columns import as_array


def as_weights(weights: Any, rows: int) -> np.ndarray:
    """One int64 a row. Raises `ValueError` for nulls, fractions, negative numbers or another length.

    >>> as_weights([2, 0], rows=2).tolist()
    [2, 0]
    """
    array = as_array(weights)
    if pa.types.is_null(array.type) or not pa.types.is_integer(array.type) or array.null_count:
        raise ValueError(f"weights must be whole numbers without nulls, got {array.type}")
    numbers = np.ascontiguousarray(array.to_numpy(zero_copy_only=False), np.int64)
    if len(numbers) != rows:
        raise ValueError(f"expected one weight a row, {rows} in all, got {len(numbers)}")
    if rows and int(numbers.min()) < 0:
        raise ValueError(f"weights must not be negative, got {numbers.min()}")
    return numbers


def total(weights: np.ndarray) -> int:
    """Their exact sum, slowly only where it might not fit int64."""
    rough = float(weights.sum(dtype=np.float64))
    return int(weights.sum()) if rough < 2.0**62 else sum(weights.tolist())
