"""The items of a sample: an Arrow column of any type, gathered from batches by `take`, not one by one."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from ...sketches.core.columns.columns import (
    NUMBERS,
    Values,
    as_array,
    as_values,
    flattened,
    is_list,
    temporal_kind,
)
from ...sketches.core.columns.times import cut
from ...sketches.core.columns.utf8_repair import readable
from ...sketches.core.compilation.jit import lean
from ...sketches.core.groups.group_numbers import frozen
from ...sketches.core.hashing.hash import CANONICAL_NAN, CHUNK, SEED, hash_bytes, hash_int64
from ...sketches.core.hashing.random import mix
from ...sketches.core.protocol import SketchError
from .priority import Bits


class Rows(NamedTuple):
    """A column to sample from: `items` without nulls, the row of each (None: i for all i), the number of
    rows."""

    items: pa.Array
    rows: np.ndarray | None
    length: int

    def per_item(self, per_row: Any, name: str) -> np.ndarray:
        """Convert a row-wise array (group numbers, weights) to item-wise. Raises `ValueError` for a wrong
        length."""
        array = np.asarray(per_row)
        if array.shape != (self.length,):
            raise ValueError(f"expected one {name} a row, {self.length} in all, got {array.shape}")
        return array if self.rows is None else array[self.rows]


def as_rows(values: Any) -> Rows:
    """Convert any column, or a scalar, to Arrow items without nulls.

    Lists are flattened, dictionaries decoded, timestamps truncated to microseconds; a record batch, an Arrow
    table or a data frame becomes structs.

    >>> as_rows([["a", None], [], ["b"]]).rows.tolist()
    [0, 2]
    >>> as_rows({"user": 7, "text": "hello"}).items.type
    StructType(struct<user: int64, text: string>)
    """
    if isinstance(values, Values):
        return Rows(values.to_arrow(), values.rows, values.length)
    array = as_array(values)
    items, rows = flattened(array)
    return Rows(cut(items), rows, len(array))


def kept_type(given: pa.DataType) -> pa.DataType:
    """Return the type in which items are stored: the widest of its sort, without dictionaries and views.

    Raises `SketchError` for records with two fields of one name.

    >>> kept_type(pa.int8()), kept_type(pa.float32()), kept_type(pa.large_string())
    (DataType(int64), DataType(double), DataType(string))
    """
    types = pa.types
    if types.is_dictionary(given):
        return kept_type(given.value_type)
    if types.is_integer(given) and given != pa.uint64():
        return pa.int64()
    if types.is_floating(given):
        return pa.float64()
    if types.is_large_string(given) or types.is_string_view(given):
        return pa.string()
    if types.is_large_binary(given) or types.is_binary_view(given) or types.is_fixed_size_binary(given):
        return pa.binary()
    if types.is_struct(given):
        names = [field.name for field in given]
        if len(set(names)) < len(names):
            raise SketchError(f"records need fields of different names, got {', '.join(names)}")
        return pa.struct([pa.field(f.name, kept_type(f.type)) for f in given])
    if is_list(given):
        return pa.list_(kept_type(given.value_type))
    return given


def hash_items(array: pa.Array, seed: np.uint64 = SEED) -> np.ndarray:
    """Hash items of any type to uint64: MurmurHash3 for plain items, 0 for null.

    Equal numbers have equal hashes, whatever their type: 1, 1.0 and a decimal 1.00. A struct's hash is
    computed from its fields', a list's from its elements' in order. Raises `TypeError` for types without a
    hash (maps, unions, intervals).
    """
    flat, rows = flattened(array)
    if pa.types.is_struct(flat.type):
        hashes = np.zeros(len(flat), np.uint64)
        every = np.arange(len(flat))
        for field in flat.flatten():
            _fold(every, hash_items(field, seed), hashes)
    elif pa.types.is_decimal(flat.type):
        hashes = _hash_decimals(flat, seed)
    elif pa.types.is_fixed_size_binary(flat.type):
        hashes = hash_items(flat.cast(pa.binary()), seed)
    else:
        hashes = _hash_plain(as_values(flat), seed)
    if rows is None:
        return hashes
    out = np.zeros(len(array), np.uint64)
    if is_list(array.type):
        out[array.is_valid().to_numpy(zero_copy_only=False)] = seed
        _fold(rows, hashes, out)
    else:
        out[rows] = hashes
    return out


def _hash_plain(values: Values, seed: np.uint64) -> np.ndarray:
    """Hash numbers and text, in chunks, so that intermediate results stay in the cache."""
    hashes = np.empty(len(values), np.uint64)
    room = min(len(values), CHUNK)
    longs, unused = np.empty(room, np.int64), np.empty(room, np.uint64)
    for first in range(0, len(values), CHUNK):
        out = hashes[first : first + CHUNK]
        if values.kind in ("int64", "float64"):
            numbers = values.numbers[first : first + CHUNK]
            if values.kind == "float64":
                _equal_longs(frozen(numbers), longs)
                numbers = longs[: len(out)]
            hash_int64(numbers, seed, out, unused)
        else:
            hash_bytes(values.offsets[first : first + len(out) + 1], values.data, seed, out, unused)
    return hashes


@lean
def _equal_longs(numbers, out):
    """Convert doubles to the int64 to hash: the equal integer if there is one, else the bits, with one
    NaN."""
    bits = numbers.view(np.int64)
    for i in range(len(numbers)):
        number = numbers[i]
        # Truncate and convert back, for which processors have instructions: `floor` would be a call.
        if -(2.0**63) <= number < 2.0**63 and float(np.int64(number)) == number:
            out[i] = np.int64(number)
        else:
            out[i] = bits[i] if number == number else CANONICAL_NAN


def _hash_decimals(items: pa.Array, seed: np.uint64) -> np.ndarray:
    """Hash each decimal: as the equal integer or double, otherwise by its digits."""
    hashes = np.empty(len(items), np.uint64)
    decimals = items.to_pylist()
    sorts: dict[pa.DataType, list[tuple[int, Any]]] = {pa.int64(): [], pa.float64(): [], pa.string(): []}
    for at, value in enumerate(decimals):
        if value == int(value) and -(1 << 63) <= value < 1 << 63:
            sorts[pa.int64()].append((at, int(value)))
        elif Decimal(repr(float(value))) == value:
            sorts[pa.float64()].append((at, float(value)))
        else:
            sorts[pa.string()].append((at, str(value.normalize())))
    for kind, chosen in sorts.items():
        if chosen:
            places, equal = zip(*chosen)
            hashes[list(places)] = hash_items(pa.array(equal, kind), seed)
    return hashes


@lean
def _fold(rows, hashes, out):
    for i in range(len(rows)):
        out[rows[i]] = mix(out[rows[i]] ^ hashes[i]) + np.uint64(1)


def bits_of(array: pa.Array) -> Bits:
    """Return the bits that kernels absorb: the item itself, or its hash if it isn't a number or string."""
    try:
        values = as_values(array)
    except TypeError:
        try:
            numbers = hash_items(array).view(np.int64)
        except TypeError:
            numbers = np.zeros(len(array), np.int64)
        return Bits(frozen(numbers), frozen(_NO_OFFSETS), frozen(_NO_DATA))
    return Bits(*map(frozen, (values.numbers.view(np.int64), values.offsets, values.data)))


_NO_OFFSETS = np.zeros(1, np.int32)
_NO_DATA = np.empty(0, np.uint8)


class Fitted(NamedTuple):
    """The result of `Items.fit`: new and stored items converted to `type`, to be accepted together."""

    type: pa.DataType
    held: list[pa.Array]
    new: pa.Array


class Items:
    """Items by number: append a column, take items by numbers, drop unreferenced items."""

    def __init__(self, kind: pa.DataType | None = None) -> None:
        self.type = kind
        """The Arrow type of the items; None until the first items come."""
        self._chunks: list[pa.Array] = []
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def widened_by(self, given: pa.DataType) -> bool:
        """Whether adding items of that type would turn the stored longs into doubles."""
        return self.type == pa.int64() and kept_type(given) == pa.float64()

    def fit(self, array: pa.Array, family: str) -> Fitted:
        """Convert new and stored items to one type; changes nothing.

        The first items decide the type; later ones are converted if each remains the same number. Raises
        `SketchError` for items that don't fit. Widening within a sort can't fail, and is left to `append`,
        which does it only for the few stored items.
        """
        kind = kept_type(array.type)
        if self.type is None or self.type == pa.null():
            return Fitted(kind, [_converted(chunk, kind, family) for chunk in self._chunks], array)
        if kind == self.type:
            return Fitted(kind, self._chunks, array)
        if kind == pa.null() or (self.type == pa.float64() and kind == pa.int64()):
            return Fitted(self.type, self._chunks, _converted(array, self.type, family))
        if self.widened_by(kind):
            return Fitted(kind, [_converted(chunk, kind, family) for chunk in self._chunks], array)
        raise SketchError(f"{family}: holds {self.type} items, so {kind} items can't be added; cast them")

    def accept(self, fitted: Fitted) -> pa.Array:
        """Store items as converted by `fit`; return the new ones."""
        self.type, self._chunks = fitted.type, fitted.held
        return fitted.new

    def append(self, array: pa.Array) -> None:
        """Append accepted items."""
        if not len(array):
            return
        if isinstance(array, pa.ChunkedArray):
            array = array.combine_chunks()
        # Only stored text is repaired, a millionth of a long stream.
        chunk = readable(array if array.type == self.type else array.cast(self.type))
        self._length += len(chunk)
        # Chunks double in length towards the front: there are few, and each item is copied log n times.
        while self._chunks and len(self._chunks[-1]) <= 2 * len(chunk):
            chunk = pa.concat_arrays([self._chunks.pop(), chunk])
        self._chunks.append(chunk)

    def take(self, numbers: np.ndarray) -> pa.Array:
        """Return the items with these numbers."""
        if not self._chunks:
            return pa.array([], self.type or pa.null())
        if len(self._chunks) > 1:
            self._chunks = [pa.concat_arrays(self._chunks)]
        return self._chunks[0].take(pa.array(numbers))

    def keep(self, numbers: np.ndarray) -> None:
        """Drop all items except those with these numbers, which are renumbered from 0 in this order."""
        kept = self.take(numbers)
        self._chunks = [kept] if len(kept) else []
        self._length = len(kept)


def equal_as(array: pa.Array, kind: pa.DataType | None) -> pa.Array:
    """Convert values to `kind` if each equals a value of that type; otherwise return them unchanged.

    docs/sketches.md says which values can be equal; longs and doubles are left to `Items.fit`, which widens.

    >>> equal_as(pa.array([True, False]), pa.int64()).to_pylist()
    [1, 0]
    >>> equal_as(pa.array([5]), pa.bool_()).to_pylist()
    [5]
    """
    if kind is None or array.type == kind or {kind, array.type} == {pa.int64(), pa.float64()}:
        return array
    if _sort(kind) is None or _sort(kind) != _sort(array.type):
        return array
    try:
        # Arrow casts integers only to decimals that can hold all values of their type.
        integers = pa.types.is_integer(array.type) and pa.types.is_decimal(kind)
        equal = (array.cast(pa.decimal128(20, 0)) if integers else array).cast(kind)
        return equal if np.array_equal(hash_items(equal), hash_items(array)) else array
    except pa.ArrowException:
        return array


def _sort(kind: pa.DataType) -> str | None:
    """Return the sort of values that a type can equal; None for types that only equal their own values."""
    types = pa.types
    if kind.id in NUMBERS or types.is_decimal(kind):
        return "number"
    if types.is_string(kind) or types.is_binary(kind):
        return "text"
    return temporal_kind(kind) or None


def _converted(array: pa.Array, kind: pa.DataType, family: str) -> pa.Array:
    """Convert items to another type. Raises `SketchError` if an item's value would change."""
    try:
        return array.cast(kind)
    except pa.ArrowException:
        raise SketchError(
            f"{family}: integers beside doubles must be from -2^53 to 2^53, which a double holds exactly; "
            "cast them to doubles or to strings"
        ) from None
