"""Whole numbers wider than int64 as Arrow's decimals, without a Python object a value."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from .protocol import SketchError

WHOLE = pa.decimal128(38, 0)
"""The widest whole numbers that Arrow, Parquet, Polars and Spark have in common."""


def whole(above: np.ndarray, below: np.ndarray, valid: np.ndarray) -> pa.Array:
    """A column of `WHOLE`: above · 2⁶⁴ + below (int64 bits, unsigned); null where not `valid`.

    >>> whole(np.array([0, -1]), np.array([7, -1]), np.array([True, True])).to_pylist()
    [Decimal('7'), Decimal('-1')]
    """
    pairs = np.empty((len(above), 2), "<i8")
    pairs[:, 0], pairs[:, 1] = below, above
    mask = pa.py_buffer(np.packbits(valid.astype(bool), bitorder="little"))
    return pa.Array.from_buffers(WHOLE, len(above), [mask, pa.py_buffer(pairs)])


def halves(column: pa.Array, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Of each value of a decimal column without nulls, what `whole` takes.

    Raises `SketchError` for decimals with digits after the point, or of other than 128 bits.
    """
    if not pa.types.is_decimal128(column.type) or column.type.scale != 0:
        raise SketchError(f"{name}: expected {WHOLE} to merge, got {column.type}")
    data = column.buffers()[1]
    flat = np.empty(0, "<i8") if data is None else np.frombuffer(data, "<i8")
    pairs = flat[2 * column.offset : 2 * (column.offset + len(column))].reshape(-1, 2)
    return np.ascontiguousarray(pairs[:, 1]), np.ascontiguousarray(pairs[:, 0])
