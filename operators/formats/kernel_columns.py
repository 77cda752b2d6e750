"""What kernels that read many messages return: their cells as Arrow's columns, and rows beside other rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl
import pyarrow as pa

from .decode import Decoded

MOST_BYTES = (1 << 31) - 1
"""Views have offsets of 31 bits."""


def words_of(dtype: pa.DataType) -> int:
    """The number of 8-byte words of a cell: two for a view of a string or bytes."""
    return 2 if pa.types.is_string(dtype) or pa.types.is_binary(dtype) else 1


def column(dtype: pa.DataType, cells: np.ndarray, present: np.ndarray, lines: np.ndarray) -> pa.Array:
    """The cells of a column (int64), of which `present` are not null, as an array.

    Views of strings and bytes point into `lines`. Nothing is copied if Arrow has the same layout.
    """
    n = len(present)
    nulls = n - int(np.count_nonzero(present))
    if pa.types.is_boolean(dtype):
        return pa.array(cells[:n] != 0, mask=present == 0 if nulls else None)
    valid = pa.py_buffer(np.packbits(present, bitorder="little")) if nulls else None
    values = cells[: words_of(dtype) * n]
    buffers = [valid, pa.py_buffer(values)]
    if words_of(dtype) == 2:
        dtype = pa.string_view() if pa.types.is_string(dtype) else pa.binary_view()
        buffers.append(pa.py_buffer(lines))
    elif dtype.bit_width == 32:
        buffers[1] = pa.py_buffer(values.astype(np.int32))
    return pa.Array.from_buffers(dtype, n, buffers, null_count=nulls)


def together(
    batches: Sequence[tuple[pl.DataFrame, np.ndarray]], others: Decoded | None, rest: np.ndarray
) -> Decoded:
    """All rows in the order of the messages.

    Each batch has the numbers of its messages; `rest` are the numbers of the messages of `others`.
    """
    frames, rows = [frame for frame, _ in batches], [numbers for _, numbers in batches]
    if others is not None and others.frame.height:
        frames.append(others.frame)
        rows.append(rest if others.rows is None else rest[others.rows])
    frame, numbers = frames[0], rows[0]
    if len(frames) > 1:
        numbers = np.concatenate(rows)
        order = np.argsort(numbers)
        frame, numbers = pl.concat(frames)[order], numbers[order]
    if others is None or not others.refused.size:
        return Decoded(frame)
    return Decoded(frame, numbers, rest[others.refused], others.reasons)
