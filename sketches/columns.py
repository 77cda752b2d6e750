"""Whatever a caller has, as the few plain arrays that kernels take.

Scalars, lists, NumPy, Arrow, Polars and pandas columns become `Values`: int64 or float64 numbers, or the
offsets and data buffers of strings, without a Python object a value. Nulls are left out, lists flattened,
dictionaries decoded; `rows` remembers which row each value came from.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

Kind = Literal["int64", "float64", "string", "binary"]


@dataclass(frozen=True, slots=True)
class Values:
    """A column without nulls, ready for a kernel.

    `numbers` holds int64 or float64 (contiguous); for strings and binary `data` (uint8) holds the bytes of
    value ``i`` from ``offsets[i]`` to ``offsets[i + 1]`` (int32 or int64). `rows` is None where value ``i``
    came from row ``i``, else the row number of each value.
    """

    kind: Kind
    numbers: np.ndarray
    offsets: np.ndarray
    data: np.ndarray
    rows: np.ndarray | None

    def __len__(self) -> int:
        return len(self.offsets) - 1 if self.kind in ("string", "binary") else len(self.numbers)

    def per_value(self, per_row: np.ndarray) -> np.ndarray:
        """A row-wise array (group numbers, weights) as a value-wise one."""
        return per_row if self.rows is None else per_row[self.rows]

    def to_arrow(self) -> pa.Array:
        """The values as an Arrow array of int64, float64, string or binary."""
        if self.kind in ("int64", "float64"):
            return pa.array(self.numbers)
        wide = self.offsets.dtype == np.int64
        text = self.kind == "string"
        kind = (
            (pa.large_string() if text else pa.large_binary())
            if wide
            else (pa.string() if text else pa.binary())
        )
        return pa.Array.from_buffers(
            kind, len(self), [None, pa.py_buffer(self.offsets), pa.py_buffer(self.data)]
        )


_NO_NUMBERS = np.empty(0, np.int64)
_NO_OFFSETS = np.zeros(1, np.int64)
_NO_DATA = np.empty(0, np.uint8)


def as_values(values: Any) -> Values:
    """Normalise a scalar, list, NumPy, Arrow, Polars or pandas column.

    Integers of every width, booleans, dates and timestamps become int64 (uint64 keeps its bits, as
    DataSketches does); floats become float64. Raises `TypeError` for types that no sketch counts.

    >>> as_values([3, None, 4]).numbers.tolist(), as_values([3, None, 4]).rows.tolist()
    ([3, 4], [0, 2])
    >>> as_values([["a", "b"], [], ["c"]]).rows.tolist()
    [0, 0, 2]
    """
    if isinstance(values, Values):
        return values
    if isinstance(values, np.ndarray) and values.dtype.kind in "iufb" and values.ndim == 1:
        return _numbers(values, None)
    return _from_arrow(as_array(values))


def as_array(values: Any) -> pa.Array:
    """Any accepted column as one Arrow array."""
    if isinstance(values, pa.ChunkedArray):
        return values.combine_chunks() if values.num_chunks != 1 else values.chunk(0)
    if isinstance(values, pa.Array):
        return values
    if hasattr(values, "__arrow_c_array__") or hasattr(values, "__arrow_c_stream__"):
        chunked = pa.chunked_array(values) if hasattr(values, "__arrow_c_stream__") else pa.array(values)
        return as_array(chunked)
    if isinstance(values, np.generic):
        values = values.item()
    if values is None or isinstance(values, (str, bytes, int, float, bool)):
        values = [values]
    if isinstance(values, np.ndarray) and values.ndim != 1:
        raise TypeError(f"expected a one-dimensional column, got an array of shape {values.shape}")
    try:
        return pa.array(values)
    except OverflowError:
        return pa.array(values, pa.uint64())
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        if hasattr(values, "__iter__") and any(isinstance(v, float) for v in values):
            return pa.array([None if v is None else float(v) for v in values], pa.float64())
        raise TypeError(f"expected a column of one type, got {_shorten(values)}") from None


def flattened(array: pa.Array) -> tuple[pa.Array, np.ndarray | None]:
    """Dictionaries and views decoded, lists flattened, nulls left out; and the row of each value.

    The rows are None where value ``i`` came from row ``i``.
    """
    rows: np.ndarray | None = None
    array = _plain(array)
    while (
        pa.types.is_list(array.type)
        or pa.types.is_large_list(array.type)
        or pa.types.is_fixed_size_list(array.type)
    ):
        parents = pc.list_parent_indices(array).to_numpy(zero_copy_only=False)
        rows = parents if rows is None else rows[parents]
        array = _plain(pc.list_flatten(array))
    if array.null_count:
        kept = np.flatnonzero(array.is_valid().to_numpy(zero_copy_only=False))
        rows = kept if rows is None else rows[kept]
        array = array.drop_null()
    return array, rows


def _from_arrow(array: pa.Array) -> Values:
    array, rows = flattened(array)
    kind = array.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return _strings(array, "string", rows)
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return _strings(array, "binary", rows)
    if pa.types.is_null(kind):
        return Values(
            "int64", _NO_NUMBERS, _NO_OFFSETS, _NO_DATA, rows if rows is not None else np.empty(0, np.int64)
        )
    if pa.types.is_temporal(kind):
        array = array.cast(pa.int32() if kind.bit_width == 32 else pa.int64())
    elif not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)):
        raise TypeError(f"a column of {kind} can't be sketched; cast it to an integer, a double or a string")
    return _numbers(array.to_numpy(zero_copy_only=False), rows)


def _plain(array: pa.Array) -> pa.Array:
    """Dictionaries decoded, views as offsets and data."""
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if pa.types.is_string_view(array.type):
        return array.cast(pa.large_string())
    if pa.types.is_binary_view(array.type):
        return array.cast(pa.large_binary())
    return array


def _numbers(numbers: np.ndarray, rows: np.ndarray | None) -> Values:
    if numbers.dtype.kind == "f":
        return Values("float64", np.ascontiguousarray(numbers, np.float64), _NO_OFFSETS, _NO_DATA, rows)
    if numbers.dtype == np.uint64:
        whole = np.ascontiguousarray(numbers).view(np.int64)
    else:
        whole = np.ascontiguousarray(numbers, np.int64)
    return Values("int64", whole, _NO_OFFSETS, _NO_DATA, rows)


def _strings(array: pa.Array, kind: Kind, rows: np.ndarray | None) -> Values:
    wide = pa.types.is_large_string(array.type) or pa.types.is_large_binary(array.type)
    dtype = np.dtype(np.int64 if wide else np.int32)
    _, offsets, data = array.buffers()
    if len(array) == 0 or offsets is None:
        return Values(kind, _NO_NUMBERS, np.zeros(1, dtype), _NO_DATA, rows)
    ends = np.frombuffer(offsets, dtype, len(array) + 1, array.offset * dtype.itemsize)
    payload = np.frombuffer(data, np.uint8) if data is not None and data.size else _NO_DATA
    return Values(kind, _NO_NUMBERS, ends, payload, rows)


def _shorten(values: Any) -> str:
    text = repr(values)
    return text if len(text) <= 80 else text[:77] + "..."
