"""Group numbers as kernels take them: one int64 a value, each within the groups there are."""

from __future__ import annotations

from typing import Any

import numpy as np


def as_groups(groups: Any, rows: int, n: int) -> np.ndarray:
    """`groups` as contiguous int64, checked against `rows` rows and `n` groups.

    Kernels write to ``array[group]`` unchecked, so every family checks here first. Raises `ValueError` for
    another length than `rows`, a masked or a fractional number, and `IndexError` for one outside 0 … n − 1.

    >>> as_groups([0, 2, 1], rows=3, n=3).dtype.name
    'int64'
    """
    if isinstance(groups, np.ma.MaskedArray) and np.ma.is_masked(groups):
        raise ValueError("expected one group number a row, but some are masked; filter those rows out")
    numbers = np.asarray(groups)
    if numbers.ndim != 1 or len(numbers) != rows:
        raise ValueError(f"expected one group number a row, {rows} in all, got an array of {numbers.shape}")
    if rows and numbers.dtype.kind not in "iu":
        raise ValueError(f"expected whole group numbers, got an array of {numbers.dtype}")
    numbers = np.ascontiguousarray(numbers, np.int64)
    if rows and int(numbers.view(np.uint64).max()) >= n:  # one pass: a negative number is a huge one
        raise IndexError(
            f"group numbers run from {numbers.min()} to {numbers.max()}, but there are {n} groups"
        )
    return numbers


def frozen(array: np.ndarray) -> np.ndarray:
    """A read-only view: Numba compiles a kernel again for arrays that may be written, so inputs never are."""
    view = array.view()
    view.flags.writeable = False
    return view


def grown(array: np.ndarray, n: int, fill: Any = 0) -> np.ndarray:
    """`array` with its first axis grown to `n`, the new rows holding `fill`; spare room is the caller's."""
    if n <= len(array):
        return array
    larger = np.full((n, *array.shape[1:]), fill, array.dtype)
    larger[: len(array)] = array
    return larger
