"""Validate group numbers for kernels: one int64 per value, each the number of an existing group."""

from __future__ import annotations

from typing import Any

import numpy as np


def as_groups(groups: Any, rows: int, n: int) -> np.ndarray:
    """Return `groups` as contiguous int64, validated for `rows` rows and `n` groups; one number is for all.

    Kernels write to ``array[group]`` unchecked, so every family validates here first. Raises `ValueError` for
    a length other than `rows`, a gap or a fraction, and `IndexError` for a number outside 0 … n − 1.

    >>> as_groups([0, 2, 1], rows=3, n=3).dtype.name, as_groups(2, rows=2, n=3).tolist()
    ('int64', [2, 2])
    """
    return np.ascontiguousarray(checked_groups(groups, rows, n), np.int64)


def checked_groups(groups: Any, rows: int, n: int) -> np.ndarray:
    """Like `as_groups`, but an array keeps its integer type and strides, so it isn't copied."""
    numbers = groups
    if type(groups) is not np.ndarray or groups.dtype.kind not in "iu" or groups.ndim != 1:
        numbers = _integers(groups, rows)
    if len(numbers) != rows:
        raise ValueError(f"expected one group number a row, {rows} in all, got {len(numbers)}")
    some = numbers[:1] if numbers.strides == (0,) else numbers
    if some.dtype == np.int64 and some.flags.c_contiguous:
        beyond = rows and int(some.view(np.uint64).max()) >= n  # one pass: a negative number is a huge one
    else:
        beyond = rows and not (int(some.min()) >= 0 and int(some.max()) < n)
    if beyond:
        message = f"group numbers run from {some.min()} to {some.max()}, but there are {n} groups"
        raise IndexError(message)
    return numbers


def _integers(groups: Any, rows: int) -> np.ndarray:
    """Convert any integers to group numbers; a single number applies to all rows."""
    # Imported here: kernels' modules import this one, and kernels are recompiled if an import changes.
    import pyarrow as pa

    from ..arguments import shown
    from ..columns.arrays import as_array, is_scalar

    try:
        array = as_array(groups)
    except (TypeError, ValueError):
        array = None
    if array is None or not (pa.types.is_integer(array.type) or (not len(array) and not is_scalar(groups))):
        kind = shown(groups) if array is None else array.type
        raise ValueError(f"expected whole group numbers, one a row, got {kind}")
    if array.null_count:
        raise ValueError("expected one group number a row, but some are masked or null; filter them out")
    if not len(array):
        return np.empty(0, np.int64)
    numbers = array.to_numpy(zero_copy_only=False)
    return np.repeat(numbers, rows) if is_scalar(groups) else numbers


def frozen(array: np.ndarray) -> np.ndarray:
    """Return a read-only view: Numba compiles a kernel again for writable arrays, so inputs never are."""
    view = array.view()
    view.flags.writeable = False
    return view


def grown(array: np.ndarray, n: int, fill: Any = 0) -> np.ndarray:
    """Grow the first axis of `array` to `n`, with `fill` in new rows; spare room is up to the caller."""
    if n <= len(array):
        return array
    larger = np.full((n, *array.shape[1:]), fill, array.dtype)
    larger[: len(array)] = array
    return larger
