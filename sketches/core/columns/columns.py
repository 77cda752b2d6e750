"""Columns as a few plain arrays for kernels.

`as_array` accepts any input; this module converts it to `Values`: int64 or float64 numbers, or the offset and
data buffers of strings, without a Python object per value. Nulls are left out and lists flattened; `rows`
records which row each value came from.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from .arrays import as_array
from .lists import elements
from .times import micros, without_length

__all__ = ["Kind", "Values", "as_array", "as_values", "flattened", "is_list", "stored_values"]

Kind = Literal["int64", "float64", "string", "binary"]


@dataclass(slots=True)
class Values:
    """A column without nulls, ready for a kernel.

    `numbers` holds int64 or float64 (contiguous); for strings and binary `data` (uint8) holds the bytes of
    value ``i`` from ``offsets[i]`` to ``offsets[i + 1]`` (int32 or int64). `rows` is None if value ``i`` came
    from row ``i`` for all i, else the row number of each value, among `height` rows. `unsigned` says that
    int64 numbers are the bits of uint64 ones, `temporal` which sort of times they are, if any
    (`temporal_kind`).

    Kernels write to ``array[group]`` unchecked, so their assumptions are checked here, once per batch: as
    many rows as values, each below `height`, and bytes for all offsets.
    """

    kind: Kind
    numbers: np.ndarray
    offsets: np.ndarray
    data: np.ndarray
    rows: np.ndarray | None
    height: int = 0
    unsigned: bool = False
    temporal: str = ""

    def __post_init__(self) -> None:
        rows = self.rows
        if rows is not None:
            first, last = (int(rows.min()), int(rows.max())) if len(rows) else (0, -1)
            if len(rows) != len(self) or first < 0 or last >= self.height:
                whole = f"{len(self)} values of {len(rows)} rows, {first} to {last} of {self.height}"
                raise ValueError(f"values must have one row each, got {whole}; the column's lists are broken")
        offsets, size = self.offsets, len(self.data)
        if len(offsets) > 1 and not 0 <= offsets[0] <= offsets[-1] <= size:
            bytes_read = f"bytes {offsets[0]} to {offsets[-1]} of {size}"
            raise ValueError(f"values must lie within their bytes, got {bytes_read}; the offsets are broken")

    @property
    def item_kind(self) -> str:
        """The kind of these values, as defined in `item_kinds`."""
        return self.temporal or KIND_OF_ITEMS[self.kind]

    def __len__(self) -> int:
        return len(self.offsets) - 1 if self.kind in ("string", "binary") else len(self.numbers)

    @property
    def length(self) -> int:
        """The number of rows of the column."""
        return len(self) if self.rows is None else self.height

    def per_value(self, per_row: np.ndarray) -> np.ndarray:
        """Convert a row-wise array (group numbers, weights) to a value-wise one."""
        if len(per_row) != self.length:
            raise ValueError(f"expected one number a row, {self.length} in all, got {len(per_row)}")
        return per_row if self.rows is None else per_row[self.rows]

    def row(self, at: int) -> int:
        """Return the row that value `at` came from."""
        return at if self.rows is None else int(self.rows[at])

    def to_arrow(self) -> pa.Array:
        """Convert the values to an Arrow array of int64, float64, string or binary."""
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


KIND_OF_ITEMS: dict[str, str] = {"int64": "long", "float64": "double", "string": "string", "binary": "string"}
"""The kinds of items (`item_kinds`) of values that are not times."""

NUMBERS = frozenset(
    kind.id
    for kind in (
        *(pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()),
        *(pa.float16(), pa.float32(), pa.float64(), pa.bool_()),
    )
)
_TEXTS: dict[int, Kind] = {
    pa.string().id: "string",
    pa.large_string().id: "string",
    pa.binary().id: "binary",
    pa.large_binary().id: "binary",
}
_LISTS = frozenset(
    kind.id for kind in (pa.list_(pa.null()), pa.large_list(pa.null()), pa.list_(pa.null(), 1))
)
_NO_NUMBERS = np.empty(0, np.int64)
_NO_OFFSETS = np.zeros(1, np.int64)
_NO_DATA = np.empty(0, np.uint8)


def as_values(values: Any, decimals: bool = False) -> Values:
    """Normalise a scalar, list, NumPy, Arrow, Polars or pandas column: the same values give the same numbers.

    Integers of every width and booleans become int64 (uint64 keeps its bits, as in DataSketches), floats
    become float64. Timestamps become microseconds since 1970, so that an instant is the same value as a date,
    in seconds or in nanoseconds (which are truncated to microseconds); a time without a zone is read as UTC.
    Times of day and durations become microseconds.

    Nulls are skipped, as in SQL: None, NA, NaT, NumPy's masked values. NaN is a float and not null, and all
    NaN are one value; quantiles skip it because it has no order. Only beside values that are not numbers is
    NaN a gap, as in pandas, and skipped.

    `decimals` become float64 if a family sums or orders numbers. Raises `TypeError`, naming the type and what
    to cast it to, for types that no sketch counts, and `ValueError` for times out of range.

    >>> as_values([3, None, 4]).numbers.tolist(), as_values([3, None, 4]).rows.tolist()
    ([3, 4], [0, 2])
    >>> as_values([["a", "b"], [], ["c"]]).rows.tolist()
    [0, 0, 2]
    >>> from datetime import date, datetime
    >>> as_values(date(2026, 1, 1)).numbers == as_values(datetime(2026, 1, 1)).numbers
    array([ True])
    """
    if isinstance(values, Values):
        return values
    if type(values) is np.ndarray and values.dtype.kind in "iufb" and values.ndim == 1:
        return _numbers(values, None, 0)
    array = as_array(values)
    items, rows = flattened(array)
    if items.type.id not in NUMBERS and items.type.id not in _TEXTS:
        if pa.types.is_temporal(items.type):
            column = _numbers(micros(items), rows, len(array))
            column.temporal = temporal_kind(items.type)
            return column
        if decimals and pa.types.is_decimal(items.type):
            items = items.cast(pa.float64())
    return _values(items, rows, len(array))


def stored_values(values: Any) -> Values:
    """Like `as_values`, but a time becomes its stored number, in the unit of its column.

    Raises `TypeError` as `as_values` does.
    """
    array = as_array(values)
    items, rows = flattened(array)
    if pa.types.is_interval(items.type):
        raise without_length(items.type)
    if pa.types.is_temporal(items.type):
        items = items.view(pa.int32() if items.type.bit_width == 32 else pa.int64())
    return _values(items, rows, len(array))


def flattened(array: pa.Array) -> tuple[pa.Array, np.ndarray | None]:
    """Flatten the lists of an array from `as_array` and drop nulls; return the values and their rows.

    The rows are None if value ``i`` came from row ``i`` for all i.
    """
    rows: np.ndarray | None = None
    while is_list(array.type):
        array, parents = elements(array)
        rows = parents if rows is None else rows[parents]
    if array.null_count:
        kept = np.flatnonzero(array.is_valid().to_numpy(zero_copy_only=False))
        rows = kept if rows is None else rows[kept]
        array = array.drop_null()
    return array, rows


def temporal_kind(kind: pa.DataType) -> str:
    """Return a type's sort of times, ``"timestamp"``, ``"time"`` or ``"duration"``; empty for other types.

    >>> temporal_kind(pa.date32()), temporal_kind(pa.time64("us")), temporal_kind(pa.int64())
    ('timestamp', 'time', '')
    """
    types = pa.types
    if not types.is_temporal(kind):
        return ""
    if types.is_time(kind):
        return "time"
    return "timestamp" if types.is_timestamp(kind) or types.is_date(kind) else "duration"


def is_list(kind: pa.DataType) -> bool:
    """Whether values of the type are lists."""
    return kind.id in _LISTS


def _values(items: pa.Array, rows: np.ndarray | None, height: int) -> Values:
    kind = items.type
    if kind.id in NUMBERS:
        return _numbers(items.to_numpy(zero_copy_only=False), rows, height)
    if kind.id in _TEXTS:
        return _strings(items, _TEXTS[kind.id], rows, height)
    if pa.types.is_null(kind):
        none = rows if rows is not None else np.empty(0, np.int64)
        return Values("int64", _NO_NUMBERS, _NO_OFFSETS, _NO_DATA, none, height)
    raise TypeError(f"a column of {kind} can't be sketched; cast it to an integer, a double or a string")


def _numbers(numbers: np.ndarray, rows: np.ndarray | None, height: int) -> Values:
    dtype = numbers.dtype
    if dtype.kind == "f":
        whole = np.ascontiguousarray(numbers, np.float64)
        return Values("float64", whole, _NO_OFFSETS, _NO_DATA, rows, height)
    wide = dtype.kind == "u" and dtype.itemsize == 8
    whole = np.ascontiguousarray(numbers, np.uint64).view(np.int64) if wide else numbers
    return Values("int64", np.ascontiguousarray(whole, np.int64), _NO_OFFSETS, _NO_DATA, rows, height, wide)


def _strings(array: pa.Array, kind: Kind, rows: np.ndarray | None, height: int) -> Values:
    wide = array.type in (pa.large_string(), pa.large_binary())
    dtype = np.dtype(np.int64 if wide else np.int32)
    _, offsets, data = array.buffers()
    if len(array) == 0 or offsets is None:
        return Values(kind, _NO_NUMBERS, np.zeros(1, dtype), _NO_DATA, rows, height)
    ends = np.frombuffer(offsets, dtype, len(array) + 1, array.offset * dtype.itemsize)
    payload = np.frombuffer(data, np.uint8) if data is not None and data.size else _NO_DATA
    return Values(kind, _NO_NUMBERS, ends, payload, rows, height)
