"""Decimals as bytes that compare like the numbers."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from ..core.columns.columns import Values, flattened

_BYTES = 16


def ordered_bytes(column: pa.Array) -> Values:
    """Convert a column of decimals to binary values: big-endian, with the sign bit flipped.

    >>> low, high = ordered_bytes(pa.array([-1, 2]).cast(pa.decimal128(20, 0))).to_arrow().to_pylist()
    >>> low < high, len(low)
    (True, 16)
    """
    items, rows = flattened(column)
    stored = items.buffers()[1]
    data = np.empty((len(items), _BYTES), np.uint8)
    if len(items):
        own = np.frombuffer(stored, np.uint8)[_BYTES * items.offset :][: data.size]
        data[:] = own.reshape(data.shape)[:, ::-1]
        data[:, 0] ^= 0x80
    offsets = np.arange(len(items) + 1, dtype=np.int64) * _BYTES
    return Values("binary", np.empty(0, np.int64), offsets, data.reshape(-1), rows, len(column))


def of_ordered_bytes(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """Convert the result of `ordered_bytes` back to decimals of this type; nulls stay null."""
    there = values.is_valid().to_numpy(zero_copy_only=False)
    data = np.zeros((len(values), _BYTES), np.uint8)
    data[there] = np.frombuffer(b"".join(values.drop_null().to_pylist()), np.uint8).reshape(-1, _BYTES)
    data[there, 0] ^= 0x80
    mask = None if there.all() else pa.array(there).buffers()[1]
    return pa.Array.from_buffers(kind, len(values), [mask, pa.py_buffer(np.ascontiguousarray(data[:, ::-1]))])
