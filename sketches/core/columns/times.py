"""Times and durations as int64 microseconds: an instant is the same number whatever the column's type."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..arguments import shown
from .arrays import as_input, is_scalar

_A_DAY = 86_400_000_000
_IN_MICROS = {"s": 1_000_000, "ms": 1_000, "us": 1}
_FARTHEST = 1 << 62


def micros(array: pa.Array) -> np.ndarray:
    """Convert a temporal column without nulls to int64 microseconds, for timestamps since 1970 UTC.

    Seconds, milliseconds and days are converted; nanoseconds are truncated to microseconds, the resolution of
    Spark and Python. A time without a zone is read as UTC. Raises `ValueError` for a time more than 292,000
    years away.

    >>> from datetime import date
    >>> micros(pa.array([date(1970, 1, 2)])).tolist(), micros(pa.array([1_999], pa.timestamp("ns"))).tolist()
    ([86400000000], [1])
    """
    kind = array.type
    if pa.types.is_date(kind):
        each = _A_DAY if kind == pa.date32() else 1_000
    elif pa.types.is_interval(kind):
        raise without_length(kind)
    elif kind.unit == "ns":
        return array.view(pa.int64()).to_numpy(zero_copy_only=False) // np.int64(1_000)
    else:
        each = _IN_MICROS[kind.unit]
    counts = array.view(pa.int32() if kind.bit_width == 32 else pa.int64()).to_numpy(zero_copy_only=False)
    if each == 1:
        return counts
    if len(counts):
        most = (1 << 63) // each
        if int(counts.min()) <= -most or int(counts.max()) >= most:
            raise ValueError(f"a {kind} more than 292,000 years off can't be given to the microsecond")
    return counts * np.int64(each)


def without_length(kind: pa.DataType) -> TypeError:
    """Return the error for calendar intervals: a month has no fixed length."""
    return TypeError(f"a column of {kind} has no length in time; cast it to a duration")


def as_times(time: Any, rows: int, family: str, null: int | None = None) -> np.ndarray:
    """Return one event time per row as int64 microseconds since 1970; a single time applies to all rows.

    Accepts timestamps and dates like `micros`, and integers as microseconds. A row without a time gets
    `null`; if that is None, it raises `ValueError`, as it does if the number of times is not `rows`. Raises
    `TypeError` for values that are not times.

    >>> as_times([1, 2], 2, "a sample").tolist(), as_times(7, 3, "a sample").tolist()
    ([1, 2], [7, 7, 7])
    """
    if time is None:
        raise TypeError(f"{family}: needs the rows' event times, update(…, time=…)")
    array = as_input(f"{family}: time", time)
    missing = array.null_count
    if missing and null is None:
        raise ValueError(f"{family}: a row without a time can't be counted by time; leave it out")
    kind = array.type
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        known = micros(_filled(array) if missing else array)
    elif pa.types.is_integer(kind) or pa.types.is_null(kind):
        if kind == pa.uint64() and (pc.max(array).as_py() or 0) > _FARTHEST:
            raise ValueError(f"{family}: a time is more than 146,000 years from 1970")
        known = pc.fill_null(array.cast(pa.int64()), 0).to_numpy(zero_copy_only=False)
    else:
        raise TypeError(f"{family}: time must be timestamps or int64 microseconds, got {kind}")
    if len(known) and max(-int(known.min()), int(known.max())) > _FARTHEST:
        raise ValueError(f"{family}: a time is more than 146,000 years from 1970")
    if missing:
        known = np.where(array.is_null().to_numpy(zero_copy_only=False), np.int64(null or 0), known)
    if is_scalar(time) and len(known) == 1:
        return np.broadcast_to(known, rows)
    if len(known) != rows:
        raise ValueError(f"{family}: expected one time a row, {rows} in all, got {len(known)}")
    return np.ascontiguousarray(known)


def as_time(now: Any, family: str) -> int:
    """Convert the `now` of a query to microseconds since 1970. Raises like `as_times`, and for a list.

    >>> as_time(np.datetime64(1, "s"), "a sample")
    1000000
    """
    if not is_scalar(now):
        raise TypeError(f"{family}: now must be one time, a datetime or int64 microseconds, got {shown(now)}")
    try:
        return int(as_times(now, 1, family)[0])
    except (TypeError, ValueError) as error:
        raise type(error)(f"{error}; now must be a datetime or int64 microseconds since 1970") from None


def cut(array: pa.Array) -> pa.Array:
    """Truncate timestamps of any unit to timestamp[us] in the same zone, like `micros`; keep other types."""
    kind = array.type
    if not pa.types.is_timestamp(kind) or kind.unit == "us":
        return array
    whole = micros(_filled(array) if array.null_count else array)
    gaps = array.is_null() if array.null_count else None
    return pa.array(whole, mask=gaps).view(pa.timestamp("us", kind.tz))


def _filled(array: pa.Array) -> pa.Array:
    """Replace nulls by 1970."""
    numbers = array.view(pa.int32() if array.type.bit_width == 32 else pa.int64())
    return pc.fill_null(numbers, 0).view(array.type)
