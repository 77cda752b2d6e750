"""The items of many samples as bytes: plain numbers, strings with their ends, anything else as Arrow IPC."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from ...sketches.core.columns.columns import as_values
from .items import kept_type

NONE, IPC = 0, 5
_PLAIN = {1: pa.int64(), 2: pa.float64(), 3: pa.string(), 4: pa.binary()}
_TEXTS = (3, 4)
_NO_ENDS = np.empty(0, np.uint32)


def code_of(kind: pa.DataType) -> int:
    """Return the code of a type of items in the bytes."""
    return next((code for code, plain in _PLAIN.items() if plain == kind), IPC)


def pack(items: pa.Array, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Pack items, `sizes[i]` for sample i; return their ends (strings only), bytes, and bytes per sample."""
    at = np.concatenate([[0], np.cumsum(sizes)])
    code = code_of(items.type)
    if code == IPC:
        images = [
            # Gathered, not sliced: a slice is written as different bytes than an array of its own.
            _stream(items.take(pa.array(np.arange(start, end)))) if end > start else b""
            for start, end in pairwise(at.tolist())
        ]
        data = np.frombuffer(b"".join(images), np.uint8)
        return _NO_ENDS, data, np.array([len(image) for image in images], np.int64)
    values = as_values(items)
    if code not in _TEXTS:
        return _NO_ENDS, values.numbers.view(np.uint8), sizes * 8
    offsets = values.offsets.astype(np.int64)
    firsts = offsets[at]
    ends = offsets[1:] - np.repeat(firsts[:-1], sizes)
    return ends.astype(np.uint32), values.data[offsets[0] : offsets[-1]], np.diff(firsts)


def unpack(
    code: int, sizes: np.ndarray, left_over: np.ndarray, section: Callable[[np.ndarray, Any], np.ndarray]
) -> pa.Array:
    """Unpack items; `section` reads the next bytes of each image. Raises `ValueError` for invalid bytes."""
    text = code in _TEXTS
    expected = np.where(sizes > 0, left_over, 0) if code == IPC else sizes * (8 if code in (1, 2) else 0)
    if not text and (left_over != expected).any():
        raise ValueError("the image is longer or shorter than its items")
    if code == NONE:
        return pa.array([], pa.null())
    if code == IPC:
        return _streams(section(left_over, np.uint8).tobytes(), sizes, left_over)
    if not text:
        return pa.array(section(expected, np.int64 if code == 1 else np.float64))
    if (left_over < 4 * sizes).any():
        raise ValueError("the image is shorter than its items' ends")
    ends = section(4 * sizes, np.uint32).astype(np.int64)
    lengths = left_over - 4 * sizes
    offsets = np.zeros(len(ends) + 1, np.int64)
    offsets[1:] = ends + np.repeat(np.cumsum(lengths) - lengths, sizes)
    lasts = np.cumsum(sizes)[sizes > 0]
    if (np.diff(offsets) < 0).any() or (offsets[lasts] != np.cumsum(lengths)[sizes > 0]).any():
        raise ValueError("the items' ends don't rise to the end of the image")
    if (lengths[sizes == 0] != 0).any():
        raise ValueError("the image holds bytes beside its items")
    data = section(lengths, np.uint8)
    wide = pa.large_string() if code == 3 else pa.large_binary()
    items = pa.Array.from_buffers(wide, len(ends), [None, pa.py_buffer(offsets), pa.py_buffer(data)])
    items.validate(full=True)
    return items.cast(_PLAIN[code])


def _stream(items: pa.Array) -> bytes:
    batch = pa.record_batch([items], ["item"])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return sink.getvalue().to_pybytes()


def _streams(data: bytes, sizes: np.ndarray, lengths: np.ndarray) -> pa.Array:
    chunks, at = [], 0
    for size, length in zip(sizes.tolist(), lengths.tolist()):
        if size:
            table = pa.ipc.open_stream(data[at : at + length]).read_all()
            table.validate(full=True)
            if table.num_columns != 1 or table.num_rows != size:
                raise ValueError(f"expected one column of {size} items, got {table.shape}")
            kept_type(table.schema.types[0])  # reads the names of fields, which `validate` doesn't check
            chunks.append(table.column(0).combine_chunks())
        at += length
    if any(chunk.type != chunks[0].type for chunk in chunks):
        raise ValueError("the images hold items of different types")
    return pa.concat_arrays(chunks)
