"""Whether a value occurred before: a Bloom filter, which answers certainly no or probably yes.

Source: Bloom, "Space/Time Trade-offs in Hash Coding with Allowable Errors", 1970; layouts in `update`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache
from typing import Any, Self

import numpy as np

from ..core.columns.arrays import as_array, is_scalar
from ..core.columns.columns import Values
from ..core.hashing.hash import hash_values
from ..core.hashing.spark_murmur import hash_pairs
from ..core.parameters import whole
from ..core.protocol import Sketch, SketchError
from ..core.values.item_kinds import as_items, as_longs, joint_kind, kind_with
from . import update as kernels
from .images import Image, parse, write
from .shape import LAYOUTS, Layout, Shape, shape

_ROWS_AT_ONCE = 1 << 15


_SMALL, _SAMPLE = 1 << 12, 1 << 15
"""The size in words below which a filter's rate is sampled, and the number of keys for that."""


@cache
def _sample() -> np.ndarray:
    return np.random.default_rng(1).integers(-(1 << 63), 1 << 63, _SAMPLE, np.int64)


class Bloom(Sketch):
    """Membership of longs, floats, strings and binary values.

    Promise: a value that was added is always found. A value that was not is found with probability `fpp` at
    most, as long as at most `capacity` distinct values were added; beyond that, more often (`rate` returns
    the current probability). Merged filters equal the filter of all their values.

    All values are of one kind: whole numbers, floats, strings or times. A query of another kind is converted
    or refused (`core.values.item_kinds`).

    ``layout="blocked"``, the default, touches one cache line per value and takes somewhat more memory than a
    classic filter: 10.5 bits per value at 1 % (classic: 9.6), 16.9 at 0.1 % (14.4). ``"spark_v1"`` and
    ``"spark_v2"`` have the same bytes as Spark's ``BloomFilter.create(capacity, fpp)`` (version 2 since Spark
    4.1; not for floats). They have Spark's size, and Spark's two hashes exceed `fpp` in filters for less than
    about 1,000 values: measured up to 2 times at 1 %, 14 times at 0.1 %, 200 times at 0.01 %; `rate` returns
    it. `seed` chooses other hash functions (not in version 1).

    Raises `SketchError` for parameters out of range, `TypeError` for floats in Spark's layouts and for types
    that have no hash.

    Source: Putze, Sanders, Singler, "Cache-, Hash- and Space-Efficient Bloom Filters", WEA 2007; Spark's
    BloomFilter.

    >>> import streamgauge as sg
    >>> seen = sg.Bloom(capacity=1000).update(["a", "b"])
    >>> "a" in seen, "c" in seen
    (True, False)
    """

    family = "bloom"

    def __init__(
        self, capacity: int = 100_000, fpp: float = 0.01, layout: Layout = "blocked", seed: int = 0
    ) -> None:
        """Raises `SketchError` for parameters out of range."""
        size, seed = shape(capacity, fpp, layout), seed_of(layout, seed)
        words = np.zeros(size.words, np.uint32)
        self._set(Image(layout, words, size.k, seed, int(capacity), float(fpp)))

    def _set(self, image: Image) -> None:
        self.layout = image.layout
        self.seed = image.seed
        self.item_kind = image.item_kind
        self.capacity, self.fpp = image.capacity, image.fpp
        self._words = image.words
        self._k = image.k
        if not self.capacity:  # Spark's bytes don't record it: use what this size is best for
            self.capacity = max(1, round(32 * len(self._words) * math.log(2) / self._k))
            self.fpp = 0.5**self._k

    @property
    def _how(self) -> tuple[int, int]:
        return LAYOUTS[self.layout], self._k

    def update(self, values: Any) -> Self:
        """Add values. Raises `TypeError` for values of another kind, and for floats in Spark's layouts."""
        items = items_of(values, self.item_kind, self.layout)
        for _, keys in self._parts(items):
            kernels.add(self._words, keys, *self._how)
        self.item_kind = kind_with(self.item_kind, items)
        return self

    def _parts(self, column: Values) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield keys in parts that stay in the cache until they are used."""
        for begin in range(0, len(column), _ROWS_AT_ONCE):
            part = slice(begin, min(begin + _ROWS_AT_ONCE, len(column)))
            offsets = column.offsets[begin : part.stop + 1]
            some = Values(column.kind, column.numbers[part], offsets, column.data, None)
            yield part, keys_of(some, self.layout, self.seed)

    def admit(self, values: Any) -> np.ndarray:
        """Add values one after the other; return for each (without nulls) whether it certainly was new.

        Use it to drop duplicates from a stream: a repeated value is never admitted again, a new one is
        rejected with probability `rate`.

        >>> import streamgauge as sg
        >>> sg.Bloom().admit([1, 2, 1]).tolist()
        [True, True, False]
        """
        column = items_of(values, self.item_kind, self.layout)
        new = np.empty(len(column), np.bool_)
        for part, keys in self._parts(column):
            kernels.admit(self._words, keys, *self._how, new[part])
        self.item_kind = kind_with(self.item_kind, column)
        return new

    def contains(self, values: Any) -> np.ndarray:
        """Return for every value (without nulls) False if it certainly was not added, True if it probably
        was.

        Raises `TypeError` for values of another kind, and `SketchError` for numbers that equal no value of
        the filter's kind.

        >>> import streamgauge as sg
        >>> 1 in sg.Bloom().update([1.0]), 1.0 in sg.Bloom().update([1])
        (True, True)
        """
        column = items_of(values, self.item_kind, self.layout)
        there = np.empty(len(column), np.bool_)
        for part, keys in self._parts(column):
            kernels.ask(self._words, keys, *self._how, there[part])
        return there

    def __contains__(self, value: Any) -> bool:
        """Whether one value probably was added; a null never was. Raises `TypeError` for a column."""
        if value is None:
            return False
        if not is_scalar(value) and len(value := as_array(value)) != 1:
            raise TypeError(f"bloom: `in` needs one value, got {len(value)}; use contains")
        contained = self.contains(value)
        if not len(contained) and is_scalar(value):  # NaN, which is a gap except among floats
            return False
        if len(contained) != 1:
            raise TypeError(f"bloom: `in` needs one value, got {len(contained)}; use contains")
        return bool(contained[0])

    @property
    def rate(self) -> float:
        """Probability that a value never added is found now; for small filters in Spark's layouts, measured
        with a fixed random sample of 32,768 keys.
        """
        if self.layout == "blocked":
            return float(kernels.lane_fill(self._words))
        set_bits = self._set_bits()
        if set_bits and len(self._words) <= _SMALL:
            # Two hashes determine all k bits: if they share a factor with the size, bits coincide.
            there = np.empty(_SAMPLE, np.bool_)
            kernels.ask(self._words, _sample(), *self._how, there)
            return float(there.mean())
        return (set_bits / (32 * len(self._words))) ** self._k

    def _set_bits(self) -> int:
        return int(np.bitwise_count(self._words).sum())

    def count(self) -> float:
        """Estimate of the number of distinct values added, from the share of bits set; infinite if all are
        set.

        >>> import streamgauge as sg
        >>> round(sg.Bloom().update(range(1000)).count())
        999
        """
        bits = 32 * len(self._words)
        share = self._set_bits() / bits
        return math.inf if share == 1 else -bits / self._k * math.log1p(-share)

    def _match(self, other: Any, verb: str) -> None:
        if not isinstance(other, Bloom):
            raise SketchError(f"bloom: can't {verb} with {type(other).__name__}")
        mine, theirs = ((b.layout, Shape(len(b._words), b._k), b.seed) for b in (self, other))
        if mine != theirs:
            raise SketchError(f"bloom: can't {verb} filters of different shapes, {mine} and {theirs}")
        self.item_kind = joint_kind(self.item_kind, other.item_kind, self.family, verb)

    def merge(self, other: Self) -> Self:
        """Add the other's values. Raises `SketchError` for a different capacity, fpp, layout or seed."""
        self._match(other, "merge")
        self._words |= other._words
        return self

    def intersect(self, other: Self) -> Self:
        """Intersect with the other filter: all common values stay, with no more false positives than either
        had.

        Raises `SketchError` for a different capacity, fpp, layout or seed.
        """
        self._match(other, "intersect")
        self._words &= other._words
        return self

    def answer(self) -> dict[str, Any]:
        """The estimated number of values, and the probability that a value never added is found."""
        count = self.count()
        return {"count": None if math.isinf(count) else round(count), "rate": self.rate}

    def to_bytes(self) -> bytes:
        """The bytes in the filter's layout: Spark's own, or those of `images`."""
        return write(self._as_image(self.item_kind if self._words.max() else None))

    def _image(self) -> bytes:
        return write(self._as_image(None))

    def _as_image(self, item_kind: str | None) -> Image:
        return Image(self.layout, self._words, self._k, self.seed, self.capacity, self.fpp, item_kind)

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Read a filter from bytes of any layout. Raises `SketchError` for anything else."""
        bloom = cls.__new__(cls)
        bloom._set(parse(data))
        return bloom

    def __repr__(self) -> str:
        size = f"{4 * len(self._words):,} bytes, layout={self.layout!r}, seed={self.seed}"
        return f"Bloom({size}; about {self.count():,.0f} of {self.capacity:,} values, rate {self.rate:.2%})"


def seed_of(layout: str, seed: int, family: str = "bloom") -> int:
    """A seed as an int. Raises `SketchError` for one that the layout can't have."""
    number = whole(family, "seed", seed, -(1 << 31), (1 << 31) - 1)
    if number and layout == "spark_v1":
        raise SketchError(f"bloom: Spark's version 1 has no seed, got seed={seed}")
    return number


def items_of(values: Any, item_kind: str | None, layout: str) -> Values:
    """Convert values to add or to look up. Raises `TypeError` for floats in Spark's layouts."""
    items = as_items(values, item_kind, "bloom")
    if items.kind != "float64" or layout == "blocked":
        return items
    if (longs := as_longs(items)) is None:
        raise TypeError("bloom: Spark's filters take whole numbers, strings and binary, not floats")
    return longs


def keys_of(column: Values, layout: str, seed: int) -> np.ndarray:
    """Return the 64-bit keys that determine values' bits, as int64."""
    if layout == "blocked":
        return hash_values(column, np.uint64((9001 + seed) & 0xFFFFFFFFFFFFFFFF))[0].view(np.int64)
    return hash_pairs(column, seed)
