"""Distinct keys with a number aggregated for each: stored Tuple sketches, in their own bytes."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import pyarrow as pa

from ..core.aggregated import Aggregated
from ..core.answers import finite
from ..core.columns.arrays import as_input, is_scalar
from ..core.columns.column_kinds import hashable
from ..core.columns.columns import is_list
from ..core.columns.lists import elements
from ..core.hashing.hash import hashed_chunks
from ..core.one_by_one import OneByOne, Staged
from ..core.parameters import deviations, one_of, whole
from ..core.protocol import SketchError
from ..core.values.item_kinds import as_items, joint_kind, kind_with
from .sketch import Theta
from .store import MAX_THETA
from .tuple_images import KINDS, MODES, read_image, write_image

_USUAL_LG_K = 12
_STATE = ("kind", "mode", "_explicit_lg_k", "_theta", "_seen", "_hashes", "_numbers")
_FOLDS: dict[str, Any] = {"sum": np.add, "min": np.minimum, "max": np.maximum}


class Total(NamedTuple):
    """A sum over all keys and its bounds."""

    estimate: float
    lower: float
    upper: float


class Tuple(Staged):
    """The number of distinct keys in a stream, and the totals of a number per key (DataSketches Tuple).

    It reads, queries, extends and merges sketches that Spark (`tuple_sketch_agg_double`, `…_integer`), Druid
    (ArrayOfDoubles) and DataSketches stored. It stores the 2^lg_k keys with the smallest hashes (`lg_k` 4 to
    26), each with its number: all of the key's numbers folded by `mode` (``"sum"``, ``"min"``, ``"max"`` or
    ``"always_one"``). `kind` is the layout: Spark's and Java's ``"double"`` and ``"integer"`` (int32),
    Druid's ``"array"`` of `width` doubles, which are always summed, and ``"bare"`` doubles as the Python
    package's `PyDoublesSerDe` writes them.

    Promise: exact up to 2^lg_k keys; beyond, the count of keys has a relative standard error of 1 / √(2^lg_k
    − 1), and `bounds` contains it with 68.3, 95.4 or 99.7 % confidence at 1, 2 or 3 standard deviations;
    `totals` are unbiased, with bounds at the same confidence unless a few keys outweigh the rest (Horvitz and
    Thompson 1952). Merging adds no error; any order gives the same bytes, up to rounding of sums of doubles.
    The `datasketches` package isn't used here, because it stores a Python object per entry and can't read
    Spark's or Druid's sketches.

    An image doesn't record its lg_k: a sketch without one adopts the other's in the first operation. Raises
    `SketchError` for broken bytes, parameters out of range, and sketches of another kind, mode or width;
    `OverflowError` for integers beyond int32.

    Source: Dasgupta, Lang, Rhodes, Thaler, "A Framework for Estimating Stream Expression Cardinalities", ICDT
    2016; bytes of Apache DataSketches `tuple`.

    >>> import streamgauge as sg
    >>> spent = sg.stored.Tuple().update(["ann", "bob", "ann"], value=[5.0, 1.0, 2.0])
    >>> spent.estimate(), spent.totals()[0].estimate
    (2.0, 8.0)
    """

    family: ClassVar[str] = "Tuple"

    def __init__(
        self, lg_k: int | None = _USUAL_LG_K, kind: str = "double", mode: str = "sum", width: int = 1
    ) -> None:
        if lg_k is not None:
            lg_k = whole("Tuple", "lg_k", lg_k, 4, 26)
        one_of("Tuple", "kind", kind, KINDS)
        one_of("Tuple", "mode", mode, MODES if kind != "array" else ("sum",))
        width = whole("Tuple", "width", width, 1, 255 if kind == "array" else 1)
        self.kind, self.mode, self._explicit_lg_k = kind, mode, lg_k
        self._theta, self._seen = MAX_THETA, False
        self._hashes = np.empty(0, np.int64)
        self._numbers = np.empty((0, width), np.int64 if kind == "integer" else np.float64)

    @property
    def lg_k(self) -> int:
        """The base-2 logarithm of the number of keys stored."""
        return self._explicit_lg_k or max(_USUAL_LG_K, (len(self._hashes) - 1).bit_length())

    @property
    def width(self) -> int:
        """The number of values per key."""
        return int(self._numbers.shape[1])

    @property
    def theta(self) -> float:
        """The share of all keys that would be stored, 1.0 while the answers are exact."""
        return self._theta / MAX_THETA

    def update(self, values: Any, value: Any = 1) -> Self:
        """Add keys with their numbers, one per row or one for all; for kind 'array', rows of `width` numbers.

        Keys that are null or empty are skipped. Raises `ValueError` for null numbers or a different count of
        them.
        """
        keys = as_items(values, self.item_kind, self.family)
        self._add_staged(self._staged(keys, value))
        self.item_kind = kind_with(self.item_kind, keys)
        return self

    def _staged(self, values: Any, value: Any = 1) -> dict[str, Any]:
        """Return a sketch with these rows added; arrays are replaced, never modified."""
        keys = as_items(values, self.item_kind, self.family)
        if is_scalar(value):
            number = self._checked(np.tile(_rows_of(value, self.width), self.width))
            numbers = np.repeat(number, len(keys), axis=0)
        else:
            rows = self._checked(_rows_of(value, self.width))
            if len(rows) != keys.length:
                raise ValueError(f"Tuple: expected one number a row, {keys.length} in all, got {len(rows)}")
            numbers = keys.per_value(rows)
        twin = object.__new__(type(self))
        vars(twin).update({name: vars(self)[name] for name in _STATE})
        for chunk in hashed_chunks(keys):
            hashes = (chunk.h1 >> np.uint64(1)).view(np.int64)
            if chunk.empty is not None:
                hashes[chunk.empty] = 0
            kept = (hashes > 0) & (hashes < twin._theta)
            twin._seen = twin._seen or bool((hashes > 0).any())
            part = numbers[chunk.first : chunk.first + len(hashes)]
            twin._fold(hashes[kept], part[kept], twin._theta)
        return {name: vars(twin)[name] for name in _STATE}

    def _add_staged(self, rows: dict[str, Any]) -> None:
        vars(self).update(rows)

    def _checked(self, numbers: np.ndarray) -> np.ndarray:
        kinds = "iub" if self.kind == "integer" else "iufb"
        if numbers.dtype.kind not in kinds or numbers.shape[1] != self.width:
            description = f"{numbers.shape[1]} of {numbers.dtype}"
            raise ValueError(f"Tuple: expected {self.width} {self.kind} numbers a row, got {description}")
        if self.kind == "integer" and numbers.size:
            _check_int32(numbers)
        return numbers.astype(self._numbers.dtype)

    def merge(self, other: Self) -> Self:
        """Unite with `other`, in place; the smaller lg_k wins. Returns the sketch itself."""
        self._refuse_merge(other)
        item_kind = self.item_kind or other.item_kind
        if not other._seen:
            self.item_kind = item_kind
            return self
        explicit = [one._explicit_lg_k for one in (self, other) if one._explicit_lg_k]
        lg_k = min(explicit) if explicit else max(self.lg_k, other.lg_k)
        self._fold(other._hashes, other._numbers, other._theta, lg_k)
        self._explicit_lg_k = min(explicit) if explicit else None
        self._seen, self.item_kind = self._seen or other._seen, item_kind
        return self

    def _refuse_merge(self, other: Any, coming: int = 0) -> None:
        if not isinstance(other, Tuple):
            raise SketchError(f"Tuple: can't merge with {type(other).__name__}")
        mine, theirs = ((one.kind, one.mode, one.width) for one in (self, other))
        if mine != theirs:
            raise SketchError(f"Tuple: can't merge sketches of kind, mode and width {mine} and {theirs}")
        joint_kind(self.item_kind, other.item_kind, self.family)

    def _saw_nothing(self) -> bool:
        return not self._seen

    def _fold(self, hashes: np.ndarray, numbers: np.ndarray, theta: int, lg_k: int | None = None) -> None:
        """Add entries of another part of the stream and keep the smallest hashes."""
        k = 1 << (lg_k or self.lg_k)
        hashes, numbers = np.concatenate([self._hashes, hashes]), np.concatenate([self._numbers, numbers])
        if len(hashes):
            order = np.argsort(hashes, kind="stable")
            hashes, numbers = hashes[order], numbers[order]
            firsts = np.flatnonzero(np.diff(hashes, prepend=-1))
            hashes = hashes[firsts]
            if self.mode == "always_one":
                numbers = np.ones((len(firsts), 1), numbers.dtype)
            else:
                numbers = _FOLDS[self.mode].reduceat(numbers, firsts, 0)
            if numbers.dtype == np.int64:
                _check_int32(numbers)
        theta = min(self._theta, theta)
        if len(hashes) > k:
            theta = min(theta, int(hashes[k]))
        kept = min(int(np.searchsorted(hashes, theta)), k)
        self._theta, self._hashes, self._numbers = theta, hashes[:kept], numbers[:kept]

    def to_bytes(self) -> bytes:
        """The compact ordered image of its kind, which Spark, Druid or the `datasketches` package reads."""
        return write_image(self.kind, self.mode, self._theta, self._seen, self._hashes, self._numbers)

    @classmethod
    def from_bytes(
        cls, data: bytes, lg_k: int | None = None, kind: str = "double", mode: str | None = None
    ) -> Self:
        """Read a sketch from a compact image of that kind. Raises `SketchError` for anything else.

        No image records its `lg_k`. Empty and bare images don't record their `mode` either: it is "sum" by
        default. For other images, `mode` must be the image's own.
        """
        one_of("Tuple", "kind", kind, KINDS)
        if mode is not None:
            one_of("Tuple", "mode", mode, MODES)
        entries = read_image(bytes(data), kind)
        if mode and entries.mode not in (None, mode):
            raise SketchError(f"Tuple: expected numbers folded by {mode}, the image's are by {entries.mode}")
        sketch = cls(lg_k, kind, entries.mode or mode or "sum", entries.numbers.shape[1])
        sketch._seen = entries.seen
        limit = None if lg_k else max(_USUAL_LG_K, (len(entries.hashes) - 1).bit_length())
        sketch._fold(entries.hashes, entries.numbers.astype(sketch._numbers.dtype), entries.theta, limit)
        return sketch

    def copy(self) -> Self:
        """Return an independent equal sketch."""
        return self._of_my_kind(self.from_bytes(self.to_bytes(), self._explicit_lg_k, self.kind, self.mode))

    def _untold(self) -> tuple[Any, ...]:
        return (self._explicit_lg_k, self.kind, self.mode)

    def _compared(self) -> tuple[Any, ...]:
        return self.lg_k, self.kind, self.mode

    def keys(self) -> Theta:
        """Return only the keys, for intersections and differences with other sketches' keys."""
        return Theta._of(
            self.lg_k, self._explicit_lg_k is not None, self._hashes, self._theta, self.item_kind
        )

    def estimate(self) -> float:
        """The estimated number of distinct keys so far."""
        return len(self._hashes) / self.theta

    def bounds(self, std_devs: int = 2) -> tuple[float, float]:
        """(lower, upper) of the distinct keys at 1, 2 or 3 standard deviations: 68.3, 95.4 or 99.7 %."""
        return self.keys().bounds(std_devs)

    def totals(self, std_devs: int = 2) -> list[Total]:
        """The sum over all keys of each number, with bounds at 1, 2 or 3 standard deviations."""
        std_devs, totals = deviations(self.family, std_devs), []
        for numbers in self._numbers.T.astype(np.float64):
            with np.errstate(
                over="ignore", invalid="ignore"
            ):  # totals beyond the range of doubles are infinite
                estimate = float(numbers.sum() / self.theta)
                missing = (
                    float(np.sqrt((numbers**2).sum() * (1 - self.theta))) if self._theta < MAX_THETA else 0.0
                )
                spread = std_devs * missing / self.theta
            totals.append(Total(estimate, estimate - spread, estimate + spread))
        return totals

    def answer(self) -> dict[str, Any]:
        """The count of keys and the totals of their numbers, with bounds at 95.4 % confidence."""
        lower, upper = self.bounds()
        totals = [total._asdict() for total in self.totals()]
        return finite({"estimate": self.estimate(), "lower": lower, "upper": upper, "totals": totals})

    def __repr__(self) -> str:
        totals = ", ".join(f"{total.estimate:,.6g}" for total in self.totals())
        return f"Tuple({self.kind}, {self.mode}): {self.estimate():,.0f} distinct, totals {totals}"


class TupleGroups(OneByOne):
    """One `Tuple` per group; `Tuple` states the promised error.

    >>> groups = TupleGroups(2)
    >>> groups.update(np.array([0, 1, 0]), ["ann", "bob", "ann"], value=[5.0, 1.0, 2.0])
    >>> groups[0].totals()[0].estimate
    7.0
    """

    aggregate: ClassVar = Aggregated(
        {"lg_k": 12, "kind": "double", "mode": "sum"},
        inputs=("value",),
        of_column=hashable,
        hashes=True,
        skips_empty=True,
        kinds=("integer",),
    )

    _read = ("kind", "mode")

    def __init__(
        self, n: int = 0, lg_k: int = _USUAL_LG_K, kind: str = "double", mode: str = "sum", width: int = 1
    ) -> None:
        super().__init__(n, lg_k=lg_k, kind=kind, mode=mode, width=width)

    def update(self, groups: np.ndarray, values: Any, value: Any = 1) -> None:
        """Add each group's keys with their numbers to its sketch. Raises what `Tuple.update` raises."""
        self._update(groups, values, value=value)


def _check_int32(numbers: np.ndarray) -> None:
    """Raise `OverflowError` for numbers that don't fit an image of kind 'integer'."""
    if numbers.min() < -(1 << 31) or numbers.max() >= 1 << 31:
        raise OverflowError("Tuple: a key's integers are beyond int32; use kind 'double'")


def _rows_of(value: Any, width: int) -> np.ndarray:
    """Convert numbers, one or a list of `width` per row, to a matrix."""
    if isinstance(value, np.ndarray) and value.ndim == 2 and not isinstance(value, np.ma.MaskedArray):
        return value
    matrix = isinstance(value, np.ndarray) and value.ndim == 2
    array = as_input("Tuple: value", list(value) if matrix else value)
    counts = 1
    if is_list(array.type):
        items, rows = elements(array)
        lengths = np.bincount(rows, minlength=len(array))
        if array.null_count or len(np.unique(lengths)) > 1:
            raise ValueError("Tuple: expected rows of as many numbers each, none of them null")
        array, counts = items, int(lengths[0]) if len(array) else width
    if array.null_count:
        raise ValueError("Tuple: a number is null; filter those rows out")
    if pa.types.is_decimal(array.type):
        array = array.cast(pa.float64())
    return array.to_numpy(zero_copy_only=False).reshape(-1, counts)
