"""Convert doubles and bytes to the longs and strings in tables and images, and back.

A double is stored as its IEEE bits, as in DataSketches' `ArrayOfDoublesSerDe`, with one zero and one NaN.
Bytes are stored as the text with these code points (Latin-1): Java reads items of images as UTF-8, in which
arbitrary bytes would be lost.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from ..core.columns.columns import Values
from ..core.protocol import SketchError

STORED = {"string": "string", "long": "int64", "double": "float64", "binary": "binary"}
"""The kind of a column's values by the kind of items that a sketch counts."""


def stored_doubles(column: Values) -> Values:
    """Convert doubles to longs.

    >>> from ..core.columns.columns import as_values
    >>> stored_doubles(as_values([0.0, -0.0, 1.5])).numbers.tolist()
    [0, 0, 4609434218613702656]
    """
    # −0.0 + 0.0 is 0.0.
    numbers = column.numbers + 0.0
    numbers[np.isnan(numbers)] = np.nan
    return replace(column, kind="int64", numbers=numbers.view(np.int64))


def stored_bytes(column: Values) -> Values:
    """Convert bytes to text.

    >>> from ..core.columns.columns import as_values
    >>> stored_bytes(as_values([b"a\\xff", b""])).to_arrow().to_pylist()
    ['aÿ', '']
    """
    begin, end = int(column.offsets[0]), int(column.offsets[-1])
    data = column.data[begin:end]
    high = data >= 0x80
    # Each byte's position: one further for each earlier byte that takes two.
    ends = np.cumsum(1 + high.astype(np.int64))
    text = np.empty(int(ends[-1]) if len(ends) else 0, np.uint8)
    text[ends - 1] = np.where(high, 0x80 | data & 0x3F, data)
    text[ends[high] - 2] = 0xC0 | data[high] >> 6
    offsets = np.concatenate([np.zeros(1, np.int64), ends])[column.offsets.astype(np.int64) - begin]
    return replace(column, kind="string", offsets=offsets, data=text)


def doubles_of(items: pa.Array) -> pa.Array:
    """Convert the result of `stored_doubles` back."""
    return pa.array(items.to_numpy(zero_copy_only=False).astype(np.int64).view(np.float64))


def bytes_of(items: pa.Array) -> pa.Array:
    """Convert the result of `stored_bytes` back. Raises `SketchError` for other code points.

    >>> bytes_of(pa.array(["aÿ", ""])).to_pylist()
    [b'a\\xff', b'']
    """
    items = items.cast(pa.large_string())
    _, offsets, buffer = items.buffers()
    ends = np.frombuffer(offsets, np.int64, len(items) + 1, 8 * items.offset) if len(items) else np.zeros(1)
    ends = ends.astype(np.int64)
    text = (
        np.frombuffer(buffer, np.uint8)[ends[0] : ends[-1]] if buffer is not None else np.empty(0, np.uint8)
    )
    first = (text < 0x80) | (text >= 0xC0)
    if (text > 0xC3).any():
        raise SketchError("frequent items: a sketch of bytes, but an item is no text of bytes; name its kind")
    leads = np.flatnonzero(text >= 0xC0)
    data = text.copy()
    data[leads] = (text[leads] & 3) << 6 | text[leads + 1] & 0x3F
    kept = np.concatenate([np.zeros(1, np.int64), np.cumsum(first)])[ends - ends[0]].astype(np.int32)
    buffers = [None, pa.py_buffer(kept), pa.py_buffer(data[first])]
    return pa.Array.from_buffers(pa.binary(), len(items), buffers)
