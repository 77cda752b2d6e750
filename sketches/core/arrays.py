"""Whatever a caller has, as one Arrow array: the one way in, for every family alike.

A scalar counts as a column of one. What is missing is null, however it is written: None, pandas' NA and NaT,
what NumPy masks; and NaN where the other values are not numbers, as pandas writes gaps among texts. Among
numbers NaN is a value, one and the same from lists, NumPy, pandas and Polars.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime, time
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_MOST_BYTES = (1 << 31) - 1
_PLAIN = frozenset(
    kind.id
    for kind in (
        *(pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()),
        *(pa.float16(), pa.float32(), pa.float64(), pa.bool_(), pa.null(), pa.date32(), pa.timestamp("us")),
        *(pa.string(), pa.large_string(), pa.binary(), pa.large_binary()),
    )
)
"""Types that stand for themselves, which nearly all columns have: told apart at the cost of one look."""
_NUMPY_UNITS = ("s", "ms", "us", "ns")
_TEXTS = (str, bytes, bytearray, memoryview, Mapping, pa.Scalar)
_FAULTS = (pa.ArrowException, TypeError, ValueError, OverflowError)


def is_scalar(given: Any) -> bool:
    """Whether this is one value, and no column: anything that can't be iterated over, texts and records.

    >>> is_scalar("text"), is_scalar(np.float32(1)), is_scalar(["text"])
    (True, True, False)
    """
    if isinstance(given, np.ndarray):
        return given.ndim == 0
    return isinstance(given, _TEXTS) or not hasattr(given, "__iter__")


def as_array(values: Any) -> pa.Array:
    """A scalar, an iterable, a NumPy, Arrow, pandas or Polars column as one Arrow array.

    Dictionaries (categoricals, enums), runs, views and extension types come out as what they stand for.
    Raises `TypeError`, naming the type, for anything but a column of one type.

    >>> as_array(["a", float("nan"), None]).null_count, as_array([1.5, float("nan"), None]).null_count
    (2, 1)
    >>> as_array(bytearray(b"ab")).to_pylist(), as_array(value for value in (1, 2)).to_pylist()
    ([b'ab'], [1, 2])
    """
    if isinstance(values, pa.Array):
        return plain(values)
    if isinstance(values, np.ndarray):
        return _of_numpy(values)
    if values is None or isinstance(values, (str, bytes, int, float)):
        return _of_python([values])
    if isinstance(values, pa.ChunkedArray):
        return _joined(values)
    dtype = getattr(values, "dtype", None)
    try:
        if isinstance(values, np.generic) or (isinstance(dtype, np.dtype) and hasattr(values, "__array__")):
            return _of_numpy(np.asarray(values))
        if hasattr(values, "__arrow_c_stream__"):
            if str(dtype) == "Object":  # of Python objects Polars gives Arrow the addresses
                return _of_python(values.to_list())
            return _joined(pa.chunked_array(values))
        if hasattr(values, "__arrow_c_array__"):
            return plain(pa.array(values))
        if dtype is not None and hasattr(values, "__array__"):
            return _of_extension(values)
    except _FAULTS as error:
        if type(error) is TypeError:  # our own words
            raise
        type_name = f"a {type(values).__name__}" if dtype is None else f"a {type(values).__name__} of {dtype}"
        raise TypeError(f"{type_name} can't be read as a column: {_first_line(error)}; cast it") from None
    if isinstance(values, (bytearray, memoryview)):
        return _of_python([bytes(values)])
    if isinstance(values, pa.Scalar):
        return plain(pa.repeat(values, 1))
    return _of_python([values] if is_scalar(values) else list(values))


def plain(array: pa.Array) -> pa.Array:
    """The same values without dictionaries, runs, views, extensions and fixed sizes, at every depth.

    >>> plain(pa.array(["a", "b", "a"], pa.string_view()).dictionary_encode()).type
    DataType(large_string)
    """
    kind, types = array.type, pa.types
    if kind.id in _PLAIN:
        return array
    if isinstance(kind, pa.BaseExtensionType):
        if not kind.extension_name.startswith("arrow."):
            raise TypeError(f"a column of {kind.extension_name} can't be sketched; cast it to a plain type")
        return plain(array.storage)
    if not types.is_nested(kind) and not types.is_run_end_encoded(kind):
        if types.is_dictionary(kind):
            return plain(array.dictionary).take(array.indices)
        if types.is_string_view(kind):
            return array.cast(pa.large_string())
        if types.is_binary_view(kind):
            return array.cast(pa.large_binary())
        return array.cast(pa.binary()) if types.is_fixed_size_binary(kind) else array
    if types.is_run_end_encoded(kind):
        rows = np.arange(array.offset, array.offset + len(array))
        runs = np.searchsorted(np.asarray(array.run_ends), rows, side="right")
        return plain(array.values).take(pa.array(runs))
    if types.is_struct(kind):
        fields = [plain(field) for field in array.flatten()]
        names = [pa.field(field.name, column.type) for field, column in zip(kind, fields)]
        return pa.StructArray.from_arrays(fields, fields=names, mask=array.is_null())
    return _plain_list(array)


def _plain_list(array: pa.Array) -> pa.Array:
    kind, types = array.type, pa.types
    if not (types.is_list(kind) or types.is_large_list(kind)):
        if types.is_map(kind) or types.is_union(kind):
            return array
        # Not by a cast: Arrow's of list views writes a wrong last offset.
        lengths = pc.fill_null(pc.list_value_length(array), 0).to_numpy(zero_copy_only=False)
        ends = pa.array(np.append(0, np.cumsum(lengths, dtype=np.int64)))
        gaps = array.is_null() if array.null_count else None
        array = pa.LargeListArray.from_arrays(ends, pc.list_flatten(array), mask=gaps)
    inner = plain(array.values)
    if inner.type == array.type.value_type:
        return array
    ends = pa.array(np.asarray(array.offsets, np.int64))
    return pa.LargeListArray.from_arrays(ends, inner, mask=array.is_null() if array.null_count else None)


def _joined(column: pa.ChunkedArray) -> pa.Array:
    """All chunks as one array, with wide offsets where narrow ones can't hold it."""
    chunks = [plain(chunk) for chunk in column.chunks]
    if len(chunks) == 1:
        return chunks[0]
    if not chunks:
        return plain(pa.array([], column.type))
    kind = chunks[0].type
    if sum(chunk.nbytes for chunk in chunks) > _MOST_BYTES:
        wide = {pa.string(): pa.large_string(), pa.binary(): pa.large_binary()}.get(kind, kind)
        chunks = [chunk.cast(wide) for chunk in chunks]
    return pa.concat_arrays(chunks)


def _of_numpy(array: np.ndarray) -> pa.Array:
    if array.ndim != 1:
        if array.ndim:
            raise TypeError(f"expected a one-dimensional column, got an array of shape {array.shape}")
        array = array.reshape(1)
    dtype = array.dtype
    if dtype.kind in "OT":
        return _of_python(array.tolist())
    mask = None
    if isinstance(array, np.ma.MaskedArray):
        array, mask = np.ma.getdata(array), np.ma.getmaskarray(array)
    if dtype.kind in "Mm":
        unit, count = np.datetime_data(dtype)
        if count != 1 or unit not in _NUMPY_UNITS:
            array = array.astype(f"{dtype.kind}8[{'ns' if unit in ('ps', 'fs', 'as') else 's'}]")
    elif dtype.kind == "f" and dtype.itemsize > 8:
        array = array.astype(np.float64)
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    try:
        return pa.array(array, mask=mask)
    except _FAULTS as error:
        raise TypeError(
            f"a NumPy array of {dtype} can't be read as a column: {_first_line(error)}; cast it"
        ) from None


def _of_extension(values: Any) -> pa.Array:
    """A column of one of pandas' own types."""
    try:
        array = pa.array(values)
    except (*_FAULTS, NotImplementedError):
        return _of_numpy(np.asarray(values))
    return plain(array)


def _of_python(values: list[Any]) -> pa.Array:
    try:
        array = pa.array(values)
        if pa.types.is_date32(array.type) and any(isinstance(value, datetime) for value in values):
            array = _mixed(values)  # Arrow would drop the time of day
        return plain(array)
    except _FAULTS:
        pass
    try:
        return plain(_mixed(values))
    except _FAULTS as error:
        shown = _shorten(values)
        raise TypeError(f"expected a column of one type, got {shown}: {_first_line(error)}") from None


def _mixed(values: list[Any]) -> pa.Array:
    """Python values that Arrow doesn't take as they are: gaps of pandas, dates among times, large numbers."""
    values = [None if type(value).__name__ in ("NAType", "NaTType") else value for value in values]
    known = [value for value in values if value is not None]
    if any(isinstance(value, float) for value in known) and all(map(_is_number, known)):
        return pa.array([None if value is None else float(value) for value in values], pa.float64())
    for unit, gap in ((np.datetime64, np.datetime64("NaT")), (np.timedelta64, np.timedelta64("NaT"))):
        if known and all(isinstance(value, unit) for value in known):
            return _of_numpy(np.array([gap if value is None else value for value in values]))
    if known and all(isinstance(value, date) or value != value for value in known):
        values = [_instant(value) if isinstance(value, date) else None for value in values]
    try:
        return pa.array(values, from_pandas=True)
    except OverflowError:
        return pa.array(values, pa.uint64())


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)


def _instant(day: date) -> datetime:
    return day if isinstance(day, datetime) else datetime.combine(day, time())


def _first_line(error: Exception) -> str:
    return str(error).split("\n")[0].rstrip(".;")


def _shorten(values: Any) -> str:
    text = repr(values)
    return text if len(text) <= 80 else text[:77] + "..."
