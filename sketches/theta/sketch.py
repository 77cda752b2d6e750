"""Theta: distinct values of unions, intersections and differences, in DataSketches' and Spark's bytes."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np

from ..core.distinct_counter import DistinctCounter
from ..core.groups.group_numbers import frozen
from ..core.hashing.hash import READ_AHEAD, STEP, hashed_chunks
from ..core.protocol import SketchError
from ..core.resume import resume
from ..core.values.image_columns import one_image
from ..core.values.item_kinds import as_items, joint_kind, kind_with
from .bounds import ratio_bounds
from .groups import USUAL_LG_K, ThetaGroups
from .images import HEAD, check_image
from .store import MAX_THETA, hashes_of, tidy_all
from .update import update_one, update_one_int64


class Theta(DistinctCounter):
    """The number of distinct values of a stream, and unions, intersections and differences of streams.

    It stores the 2^lg_k smallest hashes (`lg_k` 4 to 26; 8 bytes each): up to that many distinct values the
    count is exact. Promise: beyond that, the relative standard error is 1 / √(2^lg_k − 1) (1.6 % at 12); for
    an intersection or difference, that times √(union / result). `bounds` contains the true count with 68.3,
    95.4 or 99.7 % confidence at 1, 2 or 3 standard deviations. A sketch depends only on the set of values:
    neither their order nor the order of merges changes a byte. Nulls and empty strings are not counted.

    ``a | b``, ``a & b``, ``a - b`` and ``a.jaccard(b)`` leave both unchanged; `merge` unites in place.
    Results have the smaller lg_k of the two, ignoring that of an empty sketch; a difference has the lg_k of
    its first operand. An image doesn't record its lg_k: a sketch read from bytes has the given one, or
    otherwise adopts the other's in the first operation (and has 12, or as much as its entries need, until
    then). Raises `SketchError` for an lg_k out of range, bytes of anything else, and sketches of another
    family.

    Source: Dasgupta, Lang, Rhodes, Thaler (2016); bytes, hash and bounds of Apache DataSketches `theta`:
    compact images of versions 1 to 4 are read, version 3 written.

    >>> import streamgauge as sg
    >>> ann, bob = sg.Theta().update(["tea", "milk", "rice"]), sg.Theta().update(["tea", "rice", "beer"])
    >>> (ann & bob).estimate(), (ann - bob).estimate(), (ann | bob).estimate(), ann.jaccard(bob)[1]
    (2.0, 1.0, 4.0, 0.5)
    """

    family: ClassVar[str] = "Theta"

    def __init__(self, lg_k: int = USUAL_LG_K) -> None:
        self._one: ThetaGroups = ThetaGroups(1, lg_k)
        self._explicit_lg_k = True  # whether the caller chose the lg_k of this sketch

    @property
    def lg_k(self) -> int:
        """The base-2 logarithm of the number of hashes stored."""
        return self._one.lg_k

    @property
    def theta(self) -> float:
        """The share of all hashes that would be stored, 1.0 while the count is exact."""
        tidy_all(self._one._store, 1)
        return float(self._one._store.sketches["theta"][0]) / MAX_THETA

    def update(self, values: Any) -> Self:
        """Count a scalar or a column; nulls and empty strings are skipped. Returns the sketch itself."""
        values = as_items(values, self.item_kind, self.family)
        self.item_kind = kind_with(self.item_kind, values)
        if values.kind == "int64":
            numbers = frozen(values.numbers)
            h1, h2 = np.zeros((2, STEP), np.uint64)
            self._run(lambda at: update_one_int64(self._one._store, numbers, h1, h2, at))
            return self
        for hashes in hashed_chunks(values):
            if hashes.empty is not None:
                hashes.h1[hashes.empty] = 0
            self._keep(hashes.h1, len(hashes.h1))
        return self

    def _keep(self, h1: np.ndarray, n: int) -> None:
        """Store those of the first `n` hashes that are below theta."""
        self._run(lambda at: update_one(self._one._store, h1, n, at))

    def _run(self, step: Any) -> None:
        resume(step, self._one.make_room)

    def merge(self, other: Self) -> Self:
        """Unite with `other`, in place; the result has the smaller lg_k. Returns the sketch itself."""
        if not isinstance(other, Theta):
            raise SketchError(f"Theta: can't merge with {type(other).__name__}")
        self.item_kind = self._joint_kind(other)
        lg_k, explicit = self._common_lg_k(other if other._seen() else self)
        if lg_k > self.lg_k:
            return self._become(Theta._of(lg_k, explicit, self._hashes(), self._theta()).merge(other))
        self._one._store.lg_k[0] = lg_k
        self._explicit_lg_k = explicit
        self._one._fold(*one_image(other.to_bytes()))
        return self

    def __and__(self, other: Self) -> Theta:
        """The intersection."""
        if not isinstance(other, Theta):
            return NotImplemented
        kind = self._joint_kind(other, "intersect")
        seen = [one for one in (self, other) if one._seen()]
        sized = seen or [self, other]
        lg_k, explicit = sized[0]._common_lg_k(sized[-1])
        if len(seen) < 2:
            return Theta._of(lg_k, explicit, np.empty(0, np.int64), MAX_THETA, kind)
        theta = min(self._theta(), other._theta())
        common = np.intersect1d(self._hashes(), other._hashes(), assume_unique=True)
        return Theta._of(lg_k, explicit, common[common < theta], theta, kind)

    def __sub__(self, other: Self) -> Theta:
        """The difference: what is in this sketch and not in the other."""
        if not isinstance(other, Theta):
            return NotImplemented
        kind = self._joint_kind(other, "subtract")
        if not self._seen():
            return Theta._of(self.lg_k, self._explicit_lg_k, np.empty(0, np.int64), MAX_THETA, kind)
        theta = min(self._theta(), other._theta())
        rest = np.setdiff1d(self._hashes(), other._hashes(), assume_unique=True)
        return Theta._of(self.lg_k, self._explicit_lg_k, rest[rest < theta], theta, kind)

    def jaccard(self, other: Self) -> tuple[float, float, float]:
        """(lower, estimate, upper) of the Jaccard index, |a ∩ b| / |a ∪ b|, at 95.4 % confidence.

        It is exact if both are, and if one is empty; two empty sets are equal. For larger sets, equal stored
        hashes don't imply equal sets: then the upper bound is 1 and the lower one below it.
        """
        if not isinstance(other, Theta):
            raise SketchError(f"Theta: can't compare with {type(other).__name__}")
        self._joint_kind(other, "compare")
        if other is self or not (self._seen() or other._seen()):
            return 1.0, 1.0, 1.0
        theta = min(self._theta(), other._theta())
        mine, theirs = (hashes[hashes < theta] for hashes in (self._hashes(), other._hashes()))
        n, k = len(np.union1d(mine, theirs)), len(np.intersect1d(mine, theirs, assume_unique=True))
        if n and not (self._seen() and other._seen()):
            return 0.0, 0.0, 0.0
        lower, upper = ratio_bounds(n, k, theta / MAX_THETA)
        return lower, k / n if n else 0.5, upper

    def _joint_kind(self, other: Theta, verb: str = "merge") -> str | None:
        return joint_kind(self.item_kind, other.item_kind, self.family, verb)

    def _common_lg_k(self, other: Theta) -> tuple[int, bool]:
        if self._explicit_lg_k == other._explicit_lg_k:
            return (min if self._explicit_lg_k else max)(self.lg_k, other.lg_k), self._explicit_lg_k
        return (self if self._explicit_lg_k else other).lg_k, True

    def _saw_nothing(self) -> bool:
        return not self._seen()

    def _seen(self) -> bool:
        return bool(self._one._store.sketches["seen"][0])

    def _theta(self) -> int:
        tidy_all(self._one._store, 1)
        return int(self._one._store.sketches["theta"][0])

    def _hashes(self) -> np.ndarray:
        """The stored hashes in ascending order."""
        tidy_all(self._one._store, 1)
        return hashes_of(self._one._store, 0).copy()

    @classmethod
    def _of(
        cls, lg_k: int, explicit: bool, hashes: np.ndarray, theta: int, item_kind: str | None = None
    ) -> Self:
        """Make a sketch of hashes below theta; an empty one if there are no hashes and theta is the
        maximum."""
        sketch = cls(lg_k)
        sketch.item_kind = item_kind
        sketch._explicit_lg_k = explicit
        sketch._one._store.sketches["theta"][0] = theta
        h1 = np.zeros(len(hashes) + READ_AHEAD, np.uint64)
        h1[: len(hashes)] = hashes.view(np.uint64) << np.uint64(1)
        sketch._keep(h1, len(hashes))
        sketch._one._store.sketches["seen"][0] = len(hashes) > 0 or theta < MAX_THETA
        return sketch

    def _become(self, other: Theta) -> Self:
        self._one, self._explicit_lg_k = other._one, other._explicit_lg_k
        return self

    def to_bytes(self) -> bytes:
        """The compact ordered image, version 3, which every DataSketches library and Spark can read."""
        return self._one.image(0)

    @classmethod
    def from_bytes(cls, data: bytes, lg_k: int | None = None) -> Self:
        """Read a sketch from any compact image. Raises `SketchError` for anything else.

        `lg_k` is the sketch's original size, which the image doesn't record; see the class.
        """
        image, heads = one_image(data), np.empty(1, HEAD)
        fault = check_image(image[2], heads)
        if fault:
            raise ThetaGroups.refused("not", len(image[2]), fault)
        needed = max(USUAL_LG_K, (int(heads["count"][0]) - 1).bit_length())
        sketch = cls(needed if lg_k is None else lg_k)
        sketch._explicit_lg_k = lg_k is not None
        sketch._one._fold(*image)
        return sketch

    def copy(self) -> Self:
        """Return an independent equal sketch."""
        return type(self)._of(self.lg_k, self._explicit_lg_k, self._hashes(), self._theta(), self.item_kind)

    def _untold(self) -> tuple[Any, ...]:
        return (self.lg_k if self._explicit_lg_k else None,)

    def _compared(self) -> tuple[Any, ...]:
        return (self.lg_k,)

    def estimate(self) -> float:
        """The estimated number of distinct values so far."""
        return float(self._one._estimates()[0])

    def bounds(self, std_devs: int = 2) -> tuple[float, float]:
        """(lower, upper) at 1, 2 or 3 standard deviations: 68.3, 95.4 or 99.7 % confidence."""
        lower, upper = self._one.bounds(std_devs)
        return float(lower[0]), float(upper[0])

    def __repr__(self) -> str:
        return f"Theta(lg_k={self.lg_k}): {self._in_words()}"
