"""Integers wider than int64 as Arrow decimals, without a Python object per value."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from ..protocol import SketchError

WHOLE = pa.decimal128(38, 0)
"""The widest integers that Arrow, Parquet, Polars and Spark all support."""


def whole(above: np.ndarray, below: np.ndarray, valid: np.ndarray, kind: pa.DataType = WHOLE) -> pa.Array:
    """Return decimals with the digits above · 2⁶⁴ + below (int64 bits, unsigned); null where not `valid`.

    >>> whole(np.array([0, -1]), np.array([7, -1]), np.array([True, True])).to_pylist()
    [Decimal('7'), Decimal('-1')]
    """
    pairs = np.empty((len(above), 2), "<i8")
    pairs[:, 0], pairs[:, 1] = below, above
    mask = pa.py_buffer(np.packbits(valid.astype(bool), bitorder="little"))
    return pa.Array.from_buffers(kind, len(above), [mask, pa.py_buffer(pairs)])


def halves(column: pa.Array, name: str, kind: pa.DataType = WHOLE) -> tuple[np.ndarray, np.ndarray]:
    """Split each value of a decimal column without nulls into the arguments of `whole`.

    Raises `SketchError` for decimals with a different scale than `kind`, or not of 128 bits.
    """
    if not pa.types.is_decimal128(column.type) or column.type.scale != kind.scale:
        raise SketchError(f"{name}: expected {kind} to merge, got {column.type}")
    data = column.buffers()[1]
    flat = np.empty(0, "<i8") if data is None else np.frombuffer(data, "<i8")
    pairs = flat[2 * column.offset : 2 * (column.offset + len(column))].reshape(-1, 2)
    return np.ascontiguousarray(pairs[:, 1]), np.ascontiguousarray(pairs[:, 0])
