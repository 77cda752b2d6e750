"""The items a sample keeps: an Arrow column of any type, gathered from batches by `take`, not one by one."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from ...sketches.core.columns import (
    NUMBERS,
    Values,
    as_array,
    as_values,
    flattened,
    is_list,
    temporal_kind,
)
from ...sketches.core.group_numbers import frozen
from ...sketches.core.hash import CANONICAL_NAN, CHUNK, SEED, hash_bytes, hash_int64
from ...sketches.core.jit import lean
from ...sketches.core.protocol import SketchError
from ...sketches.core.random import mix
from ...sketches.core.times import cut
from ...sketches.core.utf8_repair import readable
from .priority import Bits


class Rows(NamedTuple):
    """A column to sample from: `items` without nulls, the row of each (None: its own), and how many rows."""

    items: pa.Array
    rows: np.ndarray | None
    length: int

    def per_item(self, per_row: Any, name: str) -> np.ndarray:
        """A row-wise array (group numbers, weights) item-wise. Raises `ValueError` for another length."""
        array = np.asarray(per_row)
        if array.shape != (self.length,):
            raise ValueError(f"expected one {name} a row, {self.length} in all, got {array.shape}")
        return array if self.rows is None else array[self.rows]


def as_rows(values: Any) -> Rows:
    """Any column, or one scalar, as Arrow items without nulls.

    Lists are flattened, dictionaries decoded, timestamps cut to the microsecond; a record batch, an Arrow
    table or a data frame gives structs.

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
    """The type items of a type are kept as: the widest of its sort, without dictionaries and views.

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
    """64 bits of each item, of any type, as uint64: MurmurHash3 of plain ones, 0 for null.

    Equal numbers have one hash, whatever their type: 1, 1.0 and a decimal 1.00. A struct's hash follows from
    its fields', a list's from its elements' in their order. Raises `TypeError` for types that have no hash
    (maps, unions, intervals).
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
    """`hash_items` of numbers and text, in chunks, so that what lies between stays in the cache."""
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
    """Of doubles the int64 to hash: the whole number that each is equal to, else its bits, of one NaN."""
    bits = numbers.view(np.int64)
    for i in range(len(numbers)):
        number = numbers[i]
        # Cut and back again, for which processors have instructions: `floor` would be a call.
        if -(2.0**63) <= number < 2.0**63 and float(np.int64(number)) == number:
            out[i] = np.int64(number)
        else:
            out[i] = bits[i] if number == number else CANONICAL_NAN


def _hash_decimals(items: pa.Array, seed: np.uint64) -> np.ndarray:
    """Of each decimal the hash of the whole number or the double that is equal to it, else of its digits."""
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
    """What kernels absorb of each item: itself, or its hash where it is neither a number nor a string."""
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
    """What `Items.fit` made of new items and of those held: all as `type`, to be accepted together."""

    type: pa.DataType
    held: list[pa.Array]
    new: pa.Array


class Items:
    """Items by number: append a column, take by numbers, forget those no longer referred to."""

    def __init__(self, kind: pa.DataType | None = None) -> None:
        self.type = kind
        """The Arrow type of the items; None until the first came."""
        self._chunks: list[pa.Array] = []
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def widened_by(self, given: pa.DataType) -> bool:
        """Whether items of that type make doubles of the longs held."""
        return self.type == pa.int64() and kept_type(given) == pa.float64()

    def fit(self, array: pa.Array, family: str) -> Fitted:
        """New items and those held in one type; changes nothing.

        The first items decide the type, later ones are converted where each stays the same number. Raises
        `SketchError` for items that don't fit. Widening within a sort can't fail, and is left to `append`,
        which does it for the few items kept.
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
        """Hold items as `fit` made them from now on; the new ones."""
        self.type, self._chunks = fitted.type, fitted.held
        return fitted.new

    def append(self, array: pa.Array) -> None:
        """Add items at the end, of those that were accepted."""
        if not len(array):
            return
        if isinstance(array, pa.ChunkedArray):
            array = array.combine_chunks()
        # Of items that hold text: only those kept are read, a millionth of a long stream.
        chunk = readable(array if array.type == self.type else array.cast(self.type))
        self._length += len(chunk)
        # Chunks double in length towards the front: few of them, each item copied a logarithm of times.
        while self._chunks and len(self._chunks[-1]) <= 2 * len(chunk):
            chunk = pa.concat_arrays([self._chunks.pop(), chunk])
        self._chunks.append(chunk)

    def take(self, numbers: np.ndarray) -> pa.Array:
        """The items of those numbers."""
        if not self._chunks:
            return pa.array([], self.type or pa.null())
        if len(self._chunks) > 1:
            self._chunks = [pa.concat_arrays(self._chunks)]
        return self._chunks[0].take(pa.array(numbers))

    def keep(self, numbers: np.ndarray) -> None:
        """Forget all but the items of those numbers, which get the numbers from 0 on in that order."""
        kept = self.take(numbers)
        self._chunks = [kept] if len(kept) else []
        self._length = len(kept)


def equal_as(array: pa.Array, kind: pa.DataType | None) -> pa.Array:
    """The values as `kind` if each of them equals one of that type, otherwise as they are.

    What can be equal is said in docs/sketches.md; longs and doubles are left to `Items.fit`, which widens.

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
        # Arrow casts integers only to decimals that hold all of their type.
        integers = pa.types.is_integer(array.type) and pa.types.is_decimal(kind)
        equal = (array.cast(pa.decimal128(20, 0)) if integers else array).cast(kind)
        return equal if np.array_equal(hash_items(equal), hash_items(array)) else array
    except pa.ArrowException:
        return array


def _sort(kind: pa.DataType) -> str | None:
    """Which values can equal those of a type; None for types whose values equal their own only."""
    types = pa.types
    if kind.id in NUMBERS or types.is_decimal(kind):
        return "number"
    if types.is_string(kind) or types.is_binary(kind):
        return "text"
    return temporal_kind(kind) or None


def _converted(array: pa.Array, kind: pa.DataType, family: str) -> pa.Array:
    """The items as another type. Raises `SketchError` where one of them would not stay what it is."""
    try:
        return array.cast(kind)
    except pa.ArrowException:
        raise SketchError(
            f"{family}: integers beside doubles must be from -2^53 to 2^53, which a double holds exactly; "
            "cast them to doubles or to strings"
        ) from None
