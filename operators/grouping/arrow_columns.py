"""Polars columns as Arrow arrays of the types that kernels read."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from ...sketches.core.compilation.jit import lean
from ...sketches.core.groups.group_numbers import frozen
from ...sketches.core.hashing.words import load32, load64, store32, store64
from ...sketches.core.lazy import pl

_INLINE = 12
"""A view of 16 bytes holds a string up to this length itself, after its length in 4 bytes."""
_SLACK = 16


@lean
def _copy_inline(views, first, ends, out):
    """Copy strings one after another to `out`; ``ends[i + 1]`` becomes the end of string i.

    Returns False, with some of them copied, if a view doesn't hold its string itself.
    """
    at = np.int64(0)
    for i in range(len(ends) - 1):
        view = np.int64(16) * (first + i)
        length = np.int64(load32(views, view))
        if length > _INLINE:
            return False
        # Always 12 bytes: the next string overwrites those that are too many.
        store64(out, at, load64(views, view + 4))
        store32(out, at + 8, load32(views, view + 12))
        at += length
        ends[i + 1] = at
    return True


def inline_strings(views: np.ndarray, first: int, n: int) -> pa.Array | None:
    """`n` strings from their views (uint8), number `first` on; None if a view doesn't hold its string itself.

    >>> views = np.array([2, 0, 0, 0, *b"en", *[0] * 10], np.uint8)
    >>> inline_strings(views, 0, 1).to_pylist()
    ['en']
    """
    ends, out = np.zeros(n + 1, np.int64), np.empty(_INLINE * n + _SLACK, np.uint8)
    if not _copy_inline(frozen(views), first, ends, out):
        return None
    return pa.LargeStringArray.from_buffers(n, pa.py_buffer(ends), pa.py_buffer(out))


def arrow_column(column: pl.Series) -> pa.Array:
    """The column as one Arrow array of the older types, without views.

    Polars keeps strings as views of 16 bytes, and its own conversion takes three to five times as long for
    strings that views hold themselves.

    >>> arrow_column(pl.Series(["en", "fr", "en"])).type, arrow_column(pl.Series([1, 2])).type
    (DataType(large_string), DataType(int64))
    """
    if column.dtype == pl.String and not column.null_count():
        views = column.to_arrow(compat_level=pl.CompatLevel.newest())
        strings = inline_strings(np.frombuffer(views.buffers()[1], np.uint8), views.offset, len(views))
        if strings is not None:
            return strings
    return column.to_arrow(compat_level=pl.CompatLevel.oldest())
