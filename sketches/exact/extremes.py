"""Smallest, largest, earliest and latest value per group, of numbers, dates, booleans, strings or binary.

All four keep the first value in a total order, so that merging is associative and commutative; earliest and
latest use the order of `moments`. Values are stored so that they compare like bits: numbers are mapped to
int64 keys in that order (complemented for the largest and the latest), strings compare by their bytes, and
decimals by bytes in the same order (`decimals`). NaN is the largest float and −0.0 is below 0.0, nearly as in
Spark (which treats the zeros as equal).
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..core.aggregated import Aggregated
from ..core.columns.column_kinds import as_type, column_kind
from ..core.columns.columns import Kind, Values, as_array, as_values, stored_values
from ..core.columns.utf8_repair import readable
from ..core.groups.group_numbers import as_groups, grown
from ..core.protocol import Groups, SketchError
from ..core.values.event_moments import FIELDS, NO_TIME, TIMELESS, as_struct, moments, of_struct
from . import update as kernels
from .decimals import of_ordered_bytes, ordered_bytes

_NO_NUMBERS = np.empty(0, np.int64)
_SIGN = np.int64(-(2**63))


class _Extreme(Groups):
    """The first value of each group in the order of (moment, value), both reversed if `_sign` is −1."""

    _name: ClassVar[str]
    _sign: ClassVar[int]
    _timed: ClassVar[bool] = False

    def __init__(self, n: int = 0, type: Any = None) -> None:
        self._type = None if type is None else _stored_type(as_type(self._name, type))
        self._n = 0
        self._moment = np.zeros((0, len(FIELDS) if self._timed else 0), np.int64)
        self._key = np.zeros(0, np.int64)  # for strings: the position in the arena
        self._size = np.full(0, -1, np.int64)  # bytes of a string, 0 for a number, −1 for none yet
        self._seen = np.zeros(0, np.uint8)
        self._row = np.full(0, -1, np.int64)
        self._arena = np.empty(0, np.uint8)
        self._used = 0
        self.resize(n)

    def __len__(self) -> int:
        return self._n

    def resize(self, n: int) -> None:
        if n > len(self._key):
            room = max(n, 2 * self._n)
            self._moment = grown(self._moment, room)
            self._key = grown(self._key, room)
            self._size = grown(self._size, room, -1)
            self._seen = grown(self._seen, room)
            self._row = grown(self._row, room, -1)
        self._n = max(n, self._n)

    def _add(self, groups: np.ndarray, values: Any, **inputs: Any) -> None:
        """Add values, which must always have the same type, with their moments if these matter."""
        if not isinstance(values, Values):
            values = readable(as_array(values))
        column = values if isinstance(values, Values) else _as_column(values)
        numbers = as_groups(groups, column.length, self._n)
        when = TIMELESS
        if self._timed:
            if inputs.get("time") is None:
                raise TypeError(f"{self._name}: needs the rows' event time, update(groups, values, time=…)")
            when = moments(len(numbers), self._name, **inputs)
        in_order = inputs.get("offset") is not None
        self._update_rows(numbers, when, column, _leaf(values), in_order)

    def _update_rows(
        self, groups: np.ndarray, when: np.ndarray, column: Values, leaf: pa.DataType, in_order: bool
    ) -> None:
        """Add values; within a moment, the first or last row wins if rows are `in_order`, else the value."""
        if not len(column):
            return
        groups = column.per_value(groups)
        leaf = _stored_type(leaf)
        if self._type is None:
            self._type = leaf
        elif self._type != leaf:
            raise TypeError(
                f"{self._name}: this column was {self._type} and is {leaf} now; cast it to one type"
            )
        if self._timed:
            when = column.per_value(when)
            known = when[:, 0] != NO_TIME
            if not known.all():
                kept = np.flatnonzero(known)
                groups, when = groups[kept], when[kept]
                column = as_values(column.to_arrow().take(pa.array(kept)))
            if self._sign < 0:
                when = ~when
        if column.kind in ("string", "binary"):
            self._update_strings(groups, when, column, in_order)
            return
        keys = _keys(column, leaf)
        if self._sign < 0:
            keys = ~keys
        if self._timed:
            prefer = self._sign * int(in_order)
            kernels.earliest(groups, when, keys, self._moment, self._key, self._seen, prefer)
        else:
            kernels.least(groups, keys, self._key, self._seen)

    def _update_strings(self, groups: np.ndarray, when: np.ndarray, column: Values, in_order: bool) -> None:
        touched = np.empty(min(len(groups), self._n), np.int64)
        state = self._row, self._moment, self._key, self._size
        rows = when, column.offsets, column.data, self._sign
        touched = touched[: kernels.choose_rows(groups, *rows, in_order, self._row, touched)]
        needed = kernels.drop_losers(touched, *rows, *state, self._arena)
        if self._used + needed > len(self._arena):
            self._compact(needed)
        self._used = kernels.keep_rows(
            touched, when, column.offsets, column.data, *state, self._arena, self._used
        )

    def _compact(self, needed: int) -> None:
        """Drop the bytes of replaced values, and leave as much room again."""
        offsets, data = self._strings()
        self._arena = np.empty(2 * (len(data) + needed), np.uint8)
        self._arena[: len(data)] = data
        self._key[: self._n] = offsets[:-1]
        self._used = len(data)

    def _strings(self) -> tuple[np.ndarray, np.ndarray]:
        size = self._size[: self._n]
        offsets = np.empty(self._n + 1, np.int64)
        data = np.empty(int(np.maximum(size, 0).sum()), np.uint8)
        kernels.gather(self._key[: self._n], size, self._arena, offsets, data)
        return offsets, data

    def answers(self, **question: Any) -> pa.Array:
        """Return the plain value of every group, in group order; null if there is none."""
        kind = self._type
        if kind is None:
            return pa.nulls(self._n)
        if kind in (pa.string(), pa.binary()) or pa.types.is_decimal(kind):
            absent = self._size[: self._n] < 0
            offsets, data = self._strings()
            if len(data) >= 1 << 31:
                raise OverflowError(f"{self._name}: {len(data)} bytes of strings don't fit one Arrow column")
            text: Kind = "string" if kind == pa.string() else "binary"
            array = Values(text, _NO_NUMBERS, offsets.astype(np.int32), data, None).to_arrow()
            if absent.any():
                array = pc.if_else(pa.array(absent), pa.scalar(None, array.type), array)
            return of_ordered_bytes(array, kind) if pa.types.is_decimal(kind) else array
        keys = self._key[: self._n]
        return _from_keys(~keys if self._sign < 0 else keys, kind, self._seen[: self._n] == 0)

    def to_arrow(self) -> pa.Array:
        """Return values in the column's type; for first and last, structs of time, partition, offset,
        value."""
        values = self.answers()
        if not self._timed:
            return values
        when = self._moment[: self._n]
        return as_struct(~when if self._sign < 0 else when, values)

    def merge(self, groups: np.ndarray, column: pa.Array) -> None:
        """Merge values; for first and last, structs as written by `to_arrow`."""
        column = as_array(column)
        if not self._timed:
            self._add(groups, column)
            return
        numbers = as_groups(groups, len(column), self._n)
        if pa.types.is_null(column.type):
            return
        if not pa.types.is_struct(column.type):
            raise SketchError(f"{self._name}: expected a column of structs to merge, got {column.type}")
        kept = column.is_valid()
        when, values = of_struct(column.filter(kept), self._name)
        rows = numbers[kept.to_numpy(zero_copy_only=False)]
        self._update_rows(rows, when, _as_column(values), _leaf(values), in_order=False)

    def __getitem__(self, group: int) -> Any:
        return self.answers()[range(self._n)[group]].as_py()


def kept_as(leaf: pa.DataType) -> dict[str, Any]:
    """Return the type in which values of a column are stored: the widest of their sort."""
    if pa.types.is_decimal128(leaf):
        return {"type": str(leaf)}
    widest = {"int64": "int64", "float64": "double", "string": "string", "binary": "binary"}
    kind = column_kind(leaf)
    whole = pa.types.is_integer(leaf) and leaf != pa.uint64()
    return {"type": widest[kind] if whole or kind != "int64" else str(leaf)}


class _Ranked(_Extreme):
    """Extremes by value."""

    def update(self, groups: np.ndarray, values: Any) -> None:
        """Add values. Raises `TypeError` for a change of type."""
        self._add(groups, values)


class _Timed(_Extreme):
    """Extremes by moment."""

    _timed = True

    def update(
        self, groups: np.ndarray, values: Any, time: Any = None, partition: Any = None, offset: Any = None
    ) -> None:
        """Add values with their moments. Raises `TypeError` for a change of type, and without times."""
        self._add(groups, values, time=time, partition=partition, offset=offset)


class MinGroups(_Ranked):
    """Smallest value per group. Exact. NaN only counts if there is nothing else.

    `type` (an Arrow type) fixes the column's type before the first value; otherwise the first column decides.

    >>> lowest = MinGroups(2)
    >>> lowest.update([0, 0, 1], ["pear", "fig", None])
    >>> lowest.to_arrow().to_pylist()
    ['fig', None]
    """

    aggregate: ClassVar = Aggregated(of_column=kept_as, spark_merge="min")

    _name = "min"
    _sign = 1


class MaxGroups(_Ranked):
    """Largest value per group. Exact. NaN is larger than any number, as in Spark.

    >>> highest = MaxGroups(1)
    >>> highest.update([0, 0], [2, 7])
    >>> highest[0]
    7
    """

    aggregate: ClassVar = Aggregated(of_column=kept_as, spark_merge="max")

    _name = "max"
    _sign = -1


class FirstGroups(_Timed):
    """Value with the earliest event time per group. Exact.

    Times are timestamps, or int64 microseconds since 1970; rows without a time are skipped. Among several
    rows with that time, the lowest ``partition=`` and ``offset=`` wins, and then the first row; without
    offsets, rows have no order, and the smallest value wins.

    >>> opening = FirstGroups(1)
    >>> opening.update([0, 0, 0], [7.5, 7.0, 6.5], time=[20, 10, 10], offset=[3, 4, 5])
    >>> opening[0]
    7.0
    """

    aggregate: ClassVar = Aggregated(inputs=FIELDS, of_column=kept_as, spark_merge="min")

    _name = "first"
    _sign = 1


class LastGroups(_Timed):
    """Value with the latest event time per group. Exact.

    Among several rows with that time, the highest partition and offset wins, and then the last row; without
    offsets, the largest value; see `FirstGroups`.

    >>> closing = LastGroups(1)
    >>> closing.update([0, 0], ["b", "a"], time=[20, 20], offset=[3, 4])
    >>> closing[0]
    'a'
    """

    aggregate: ClassVar = Aggregated(inputs=FIELDS, of_column=kept_as, spark_merge="max")

    _name = "last"
    _sign = -1


def _as_column(values: pa.Array) -> Values:
    return ordered_bytes(values) if pa.types.is_decimal128(_leaf(values)) else stored_values(values)


def _leaf(values: Any) -> pa.DataType:
    """Return the type of a column's values, inside lists and dictionaries."""
    if isinstance(values, Values):
        return pa.type_for_alias({"float64": "double"}.get(values.kind, values.kind))
    leaf = values.type
    while hasattr(leaf, "value_type"):
        leaf = leaf.value_type
    return leaf


def _stored_type(leaf: pa.DataType) -> pa.DataType:
    """Return the type in which a column of `leaf` is stored: the widest of its sort."""
    if pa.types.is_integer(leaf):
        return pa.uint64() if leaf == pa.uint64() else pa.int64()
    if pa.types.is_floating(leaf):
        return pa.float64()
    if pa.types.is_string(leaf) or pa.types.is_large_string(leaf) or pa.types.is_string_view(leaf):
        return pa.string()
    if pa.types.is_binary(leaf) or pa.types.is_large_binary(leaf) or pa.types.is_binary_view(leaf):
        return pa.binary()
    return leaf


def _keys(column: Values, kind: pa.DataType) -> np.ndarray:
    if column.kind == "float64":
        keys = np.empty(len(column), np.int64)
        kernels.order_doubles(column.numbers, keys)
        return keys
    return column.numbers ^ _SIGN if kind == pa.uint64() else column.numbers


def _from_keys(keys: np.ndarray, kind: pa.DataType, absent: np.ndarray) -> pa.Array:
    if kind == pa.float64():
        bits = keys ^ ((keys >> np.int64(63)) & np.int64(0x7FFFFFFFFFFFFFFF))
        return pa.array(bits.view(np.float64), mask=absent)
    if kind == pa.uint64():
        return pa.array((keys ^ _SIGN).view(np.uint64), mask=absent)
    if kind == pa.bool_():
        return pa.array(keys != 0, mask=absent)
    if pa.types.is_temporal(kind) and kind.bit_width == 32:
        return pa.array(keys.astype(np.int32), mask=absent).view(kind)
    return pa.array(keys.copy(), mask=absent).view(kind)
