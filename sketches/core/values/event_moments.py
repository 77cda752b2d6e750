"""A row's moment: its event time, and its partition and offset, which distinguish rows of the same time.

Offsets are the order of a partition's rows, and rows of one key are usually in one partition. Between
partitions there is no such order: there, the lower partition counts as earlier, so that every order of
merging finds the same row first. For rows without an offset, partition and offset are −1.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..columns.arrays import as_input, is_scalar
from ..columns.times import as_times
from ..protocol import SketchError

TIME = pa.timestamp("us", "UTC")
"""The type of event times."""

NO_TIME = np.int64(-(2**63))
FIELDS = ("time", "partition", "offset")
TIMELESS = np.empty((0, 0), np.int64)
"""The moments of rows whose order doesn't matter."""


def moments(rows: int, name: str, time: Any, partition: Any = None, offset: Any = None) -> np.ndarray:
    """Return the `FIELDS` of each row (int64): time in microseconds, `NO_TIME` for null.

    `time` holds timestamps or int64 microseconds, `offset` int64, `partition` (int32) one number for all rows
    or one per row. Raises `ValueError` for a wrong number of times and for numbers that don't fit,
    `TypeError` for other types.
    """
    columns = np.full((rows, len(FIELDS)), -1, np.int64)
    columns[:, 0] = as_times(time, rows, name, int(NO_TIME))
    if offset is not None:
        columns[:, 1] = 0 if partition is None else _whole(partition, rows, f"{name}: partition", np.int32)
        columns[:, 2] = _whole(offset, rows, f"{name}: offset", np.int64)
    return columns


def as_struct(fields: np.ndarray, values: pa.Array) -> pa.StructArray:
    """Combine values with their moments; null where the value is null."""
    columns = [
        pa.array(fields[:, 0].copy()).view(TIME),
        pa.array(fields[:, 1].astype(np.int32)),
        pa.array(fields[:, 2].copy()),
        values,
    ]
    return pa.StructArray.from_arrays(columns, names=[*FIELDS, "value"], mask=values.is_null())


def of_struct(column: pa.StructArray, name: str) -> tuple[np.ndarray, pa.Array]:
    """Return the moments and values of a struct from `as_struct`, without nulls.

    Raises `SketchError` for any other struct.
    """
    names = tuple(field.name for field in column.type)
    if names != (*FIELDS, "value"):
        expected = ", ".join((*FIELDS, "value"))
        raise SketchError(f"{name}: expected a struct of {expected} to merge, got {column.type}")
    given = {field: pc.struct_field(column, field) for field in FIELDS}
    return moments(len(column), name, **given), pc.struct_field(column, "value")


def _whole(given: Any, rows: int, what: str, dtype: type[np.signedinteger]) -> np.ndarray:
    """Validate integers that fit `dtype`, one for all rows or one per row; −1 for null."""
    array = as_input(what, given)
    if not (pa.types.is_integer(array.type) or pa.types.is_null(array.type)):
        raise TypeError(f"{what} must be whole numbers, got {array.type}")
    if len(array) != (1 if is_scalar(given) else rows):
        raise ValueError(f"{what} must be whole numbers, one a row, {rows} in all, got {len(array)}")
    for number in pc.min_max(array).as_py().values():
        if number is not None and not np.iinfo(dtype).min <= number <= np.iinfo(dtype).max:
            raise ValueError(f"{what} must fit {dtype.__name__}, got {number}")
    return pc.fill_null(array.cast(pa.int64()), -1).to_numpy()
