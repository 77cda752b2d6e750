"""Convert any input to one Arrow array; all families share this entry point.

A scalar counts as a column of one; a row of a table or frame is a struct of its columns, without pandas'
index. Missing values become null, however they are written: None, pandas' NA and NaT, NumPy's masked values;
and NaN if the other values are not numbers, because pandas marks missing strings with NaN. Among numbers, NaN
is a value, and the same one from lists, NumPy, pandas and Polars.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..arguments import shown
from .lists import elements

_MOST_BYTES = (1 << 31) - 1
_PLAIN = frozenset(
    kind.id
    for kind in (
        *(pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()),
        *(pa.float16(), pa.float32(), pa.float64(), pa.bool_(), pa.null(), pa.date32(), pa.timestamp("us")),
        *(pa.string(), pa.large_string(), pa.binary(), pa.large_binary()),
    )
)
"""Types that need no conversion, which nearly all columns have: one lookup recognises them."""
_NUMPY_UNITS = ("s", "ms", "us", "ns")
_IN_A_NANO = {"ps": 10**3, "fs": 10**6, "as": 10**9}
_TEXTS = (str, bytes, bytearray, Mapping, pa.Scalar)
_OF_BYTES = ("B", "b", "c")
"""The formats of memory views that are one binary value; views of other formats are numeric columns."""
_BEYOND = "whole numbers must fit int64, or uint64 if none is negative"
_ZONED = "times of day can't have a zone, which Arrow would drop; use datetimes, or times without one"
_FAULTS = (pa.ArrowException, TypeError, ValueError, OverflowError, np.ma.MAError)


def is_scalar(given: Any) -> bool:
    """Whether this is one value rather than a column: strings, records and anything that isn't iterable.

    >>> is_scalar("text"), is_scalar(np.float32(1)), is_scalar(["text"])
    (True, True, False)
    """
    if isinstance(given, np.ndarray):
        return given.ndim == 0
    if isinstance(given, memoryview):
        return given.format in _OF_BYTES and given.ndim == 1
    return isinstance(given, _TEXTS) or not hasattr(given, "__iter__")


def as_array(values: Any) -> pa.Array:
    """Convert a scalar, an iterable, or a NumPy, Arrow, pandas or Polars column to one Arrow array.

    Dictionaries (categoricals, enums), run-end encoding, views and extension types are decoded. Raises
    `TypeError`, naming the type, for anything but a column of one type.

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
            if str(dtype) == "Object":  # for Python objects, Polars gives Arrow their addresses
                return _of_python(values.to_list())
            if type(values).__module__.startswith("pandas.") and values.ndim == 2:
                values = pa.Table.from_pandas(values, preserve_index=False)
            elif isinstance(values, (pa.Table, pa.RecordBatch)):
                values = _without_index(values)
            return _joined(pa.chunked_array(values))
        if hasattr(values, "__arrow_c_array__"):
            return plain(pa.array(values))
        if dtype is not None and hasattr(values, "__array__"):
            return _of_extension(values)
    except _FAULTS as error:
        if type(error) is TypeError:  # our own message
            raise
        type_name = f"a {type(values).__name__}" if dtype is None else f"a {type(values).__name__} of {dtype}"
        raise TypeError(f"{type_name} can't be read as a column: {_reason(error)}; cast it") from None
    if isinstance(values, memoryview) and not is_scalar(values):
        return _of_numpy(np.asarray(values))
    if isinstance(values, (bytearray, memoryview)):
        return _of_python([bytes(values)])
    if isinstance(values, pa.Scalar):
        return plain(pa.repeat(values, 1))
    return _of_python([values] if is_scalar(values) else list(values))


def as_input(name: str, given: Any) -> pa.Array:
    """Like `as_array`, for a further row-wise input such as weights, with whose name errors begin.

    >>> as_input("weight", [2, 3]).to_pylist()
    [2, 3]
    """
    try:
        return as_array(given)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name}: {error}") from None


def plain(array: pa.Array) -> pa.Array:
    """Decode dictionaries, run-end encoding, views, extensions and fixed sizes, at every depth.

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
        if array.null_count:
            # Run-end encoded arrays have no validity of their own: Arrow leaves values beneath null structs.
            valid = array.is_valid()
            fields = [
                pc.if_else(valid, column, pa.scalar(None, column.type))
                if types.is_run_end_encoded(field.type)
                else column
                for field, column in zip(kind, fields)
            ]
        names = [pa.field(field.name, column.type) for field, column in zip(kind, fields)]
        return pa.StructArray.from_arrays(fields, fields=names, mask=array.is_null())
    return _plain_list(array)


def _plain_list(array: pa.Array) -> pa.Array:
    kind, types = array.type, pa.types
    if not (types.is_list(kind) or types.is_large_list(kind)):
        if types.is_map(kind) or types.is_union(kind):
            return array
        # Not a cast: Arrow's cast of list views writes a wrong last offset.
        items, rows = elements(array)
        ends = pa.array(np.searchsorted(rows, np.arange(len(array) + 1)))
        gaps = array.is_null() if array.null_count else None
        array = pa.LargeListArray.from_arrays(ends, items, mask=gaps)
    values = array.values
    inner = plain(values)
    if inner is values:
        return array
    ends = pa.array(np.asarray(array.offsets, np.int64))
    return pa.LargeListArray.from_arrays(ends, inner, mask=array.is_null() if array.null_count else None)


def _joined(column: pa.ChunkedArray) -> pa.Array:
    """Join all chunks into one array, with 64-bit offsets if 32 bits are too few."""
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


def _without_index(table: pa.Table | pa.RecordBatch) -> pa.Table | pa.RecordBatch:
    """Drop the index column that pandas adds to a filtered frame."""
    index = (table.schema.pandas_metadata or {}).get("index_columns", [])
    unnamed = [name for name in table.schema.names if name in index and name.startswith("__index_level_")]
    return table.drop_columns(unnamed) if unnamed else table


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
    if not dtype.isnative:
        array = array.astype(dtype.newbyteorder("="))
    if dtype.kind in "Mm":
        array = _in_units_of_arrow(array)
    elif dtype.kind == "f" and dtype.itemsize > 8:
        array = array.astype(np.float64)
    try:
        return pa.array(array, mask=mask)
    except _FAULTS as error:
        raise TypeError(
            f"a NumPy array of {dtype} can't be read as a column: {_reason(error)}; cast it"
        ) from None


def _in_units_of_arrow(array: np.ndarray) -> np.ndarray:
    """Convert NumPy times to one of Arrow's units, cut at most to nanoseconds: M8[100ms] becomes M8[ms].

    Raises `TypeError` for durations without a unit, in months or in years, and `ValueError` for times that
    don't fit the unit, for which NumPy would silently wrap around.
    """
    dtype = array.dtype
    unit, count = np.datetime_data(dtype)
    if count == 1 and unit in _NUMPY_UNITS:
        return array
    gaps = np.isnat(array)
    no_length = unit == "generic" or (dtype.kind == "m" and unit in "YM")
    if no_length and not gaps.all():
        raise TypeError(f"NumPy times of {dtype} have no length; cast them to {dtype.kind}8[s] or finer")
    if unit in _IN_A_NANO:
        counts = array.astype(np.int64)
        most = np.iinfo(np.int64).max // count
        fine = (counts >= -most) & (counts <= most)
        times = (counts * count // _IN_A_NANO[unit]).astype(f"{dtype.kind}8[ns]")
    else:
        times = array.astype(f"{dtype.kind}8[{unit if unit in _NUMPY_UNITS else 's'}]")
        fine = times.astype(dtype) == array
    if not (fine | gaps).all():
        raise ValueError(f"a time of {dtype} is too far off; cast it to a unit in which int64 holds it")
    times[gaps] = "NaT"
    return times


def _of_extension(values: Any) -> pa.Array:
    """Convert a column of one of pandas' extension types."""
    try:
        array = pa.array(values)
    except (*_FAULTS, NotImplementedError):
        return _of_numpy(np.asarray(values))
    return _joined(array) if isinstance(array, pa.ChunkedArray) else plain(array)


def _of_python(values: list[Any]) -> pa.Array:
    try:
        array = pa.array(values)
        if _holds_times(array.type) and (whole := _whole_times(values, array.type)) is not values:
            array = pa.array(whole)
        return plain(array)
    except _FAULTS as error:
        if str(error) == _ZONED:
            raise TypeError(_ZONED) from None
    try:
        return plain(_mixed(values))
    except _FAULTS as error:
        raise TypeError(f"expected a column of one type, got {shown(values)}: {_reason(error)}") from None


def _holds_times(kind: pa.DataType) -> bool:
    """Whether values of the type hold times, at any depth."""
    if pa.types.is_nested(kind):
        return any(_holds_times(kind.field(at).type) for at in range(kind.num_fields))
    return pa.types.is_temporal(kind)


def _whole_times(values: list[Any], kind: pa.DataType) -> list[Any]:
    """Replace times that Arrow would truncate, at any depth.

    Arrow turns datetimes beside dates into dates, and reads NumPy's multiples of a unit as single units.
    """
    types = pa.types
    if types.is_time(kind) and any(getattr(value, "tzinfo", None) for value in values):
        raise ValueError(_ZONED)
    if types.is_list(kind):
        lists = [None if value is None else list(value) for value in values]
        items = [item for one in lists if one is not None for item in one]
        whole = iter(_whole_times(items, kind.value_type))
        return [None if one is None else [next(whole) for _ in one] for one in lists]
    if types.is_struct(kind) and all(value is None or isinstance(value, Mapping) for value in values):
        fields = [
            _whole_times([None if value is None else value.get(field.name) for value in values], field.type)
            for field in kind
        ]
        records = zip(values, *fields)
        names = [field.name for field in kind]
        return [None if value is None else dict(zip(names, record)) for value, *record in records]
    if types.is_date(kind) and any(isinstance(value, datetime) for value in values):
        return [_instant(value) if isinstance(value, date) else value for value in values]
    for unit in (np.datetime64, np.timedelta64):
        if any(isinstance(value, unit) and np.datetime_data(value.dtype)[1] != 1 for value in values):
            gap = unit("NaT")
            return list(_in_units_of_arrow(np.array([gap if value is None else value for value in values])))
    return values


def _mixed(values: list[Any]) -> pa.Array:
    """Convert Python values that Arrow rejects: pandas' gaps, dates mixed with times, large numbers."""
    gaps = ("NAType", "NaTType", "MaskedConstant")
    values = [None if type(value).__name__ in gaps else value for value in values]
    values = [value[()] if isinstance(value, np.ndarray) and not value.ndim else value for value in values]
    known = [value for value in values if value is not None]
    if any(isinstance(value, float) for value in known) and all(map(_is_number, known)):
        return pa.array([None if value is None else float(value) for value in values], pa.float64())
    if any(isinstance(value, Decimal) and value.is_infinite() for value in known):
        raise ValueError("decimals must be finite; cast them to floats")
    for unit, gap in ((np.datetime64, np.datetime64("NaT")), (np.timedelta64, np.timedelta64("NaT"))):
        if known and all(isinstance(value, unit) for value in known):
            return _of_numpy(np.array([gap if value is None else value for value in values]))
    if known and all(isinstance(value, date) or value != value for value in known):
        values = [_instant(value) if isinstance(value, date) else None for value in values]
    try:
        return pa.array(values, from_pandas=True)
    except OverflowError:
        if not all(map(_is_integer, known)):
            raise
        if min(known) < 0 or max(known) >= 1 << 64:
            raise ValueError(_BEYOND) from None
        return pa.array(values, pa.uint64())


def _is_number(value: Any) -> bool:
    numbers = (int, float, np.integer, np.floating)
    return isinstance(value, numbers) and not isinstance(value, (bool, np.timedelta64))


def _is_integer(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, np.timedelta64)


def _instant(day: date) -> datetime:
    return day if isinstance(day, datetime) else datetime.combine(day, time())


def _reason(error: Exception) -> str:
    """Say why values can't be read, in our own words if Arrow and Python only report internals."""
    if isinstance(error, UnicodeError):
        return "a string is not valid Unicode, because of a lone surrogate; encode or replace it"
    if isinstance(error, OverflowError):
        return _BEYOND
    if "format string" in str(error):
        return "Arrow has no such type"
    return str(error).split("\n")[0].rstrip(".;")
