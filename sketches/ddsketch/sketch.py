"""Quantiles by DDSketch: every answer within a fixed share of the true value, tails included."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, Self

import numpy as np

from ..core.answers import quantile_answer
from ..core.columns.weights import optional_weights
from ..core.parameters import one_of
from ..core.protocol import Sketch, SketchError
from ..core.values.numbers import as_numbers
from ..core.values.points import as_share, as_shares, double_point
from .estimate import Estimates, buckets_of, quantiles, seen_by, widened
from .slots import keys_of
from .store import Store, read_image

Kind = Literal["double", "long"]

_FAR = 1 << 40
"""Larger than all keys."""


class DDSketch(Sketch):
    """Quantiles of a stream of numbers to a relative error of value, in logarithmic buckets.

    Error promised, always: each quantile is off by at most `relative_accuracy` of the true value, except for
    rounding, also far in the tail and after any merging, up to the largest double. Magnitudes below γ
    2.23e-308 (γ = (1 + a) / (1 − a) for an accuracy of a; 2.27e-308 at 1 %) count as zero, which the bounds
    include. Positive, negative and infinite values and zeros are stored separately; NaN and nulls are
    skipped. Memory is one count for each bucket between the smallest and largest magnitude: 115 buckets per
    factor of ten at 1 %. Counts are doubles, as in the bytes: exact up to 2^53 values, to 16 digits beyond.
    Counts of 2^62 and more are refused.

    For whole numbers (`kind` "long") quantiles are doubles, and whole wherever a whole number satisfies the
    promise; magnitudes below (1 − a) / 2a for an accuracy of a, 49.5 at 1 %, are exact. If a bucket contains
    two whole numbers and neither is close enough to the other (58 and 59), the quantile lies between them:
    58.56. Bounds are whole numbers.

    The bytes are the published protobuf of DataDog's DDSketch with its logarithmic mapping; they don't record
    the kind. Raises `SketchError` for an accuracy outside 0.0001 … 0.5, an unknown kind or more values than
    can be counted, `TypeError` for values that are not numbers.

    Source: Masson, Rim, Lee, "DDSketch", VLDB 2019; DataDog sketches-py and sketches-java.

    >>> import streamgauge as sg
    >>> sketch = sg.DDSketch(0.01).update(np.arange(1, 100_001))
    >>> abs(sketch.quantile(0.999) / 99_900 - 1) <= 0.01, sketch.n
    (True, 100000)
    >>> lower, upper = sketch.quantile_bounds(0.5)
    >>> lower <= 50_000 <= upper
    True
    >>> sg.DDSketch(kind="long").update([23, 31, 47]).quantiles([0, 0.5, 1])
    [23.0, 31.0, 47.0]
    """

    family: ClassVar[str] = "DDSketch"

    def __init__(self, relative_accuracy: float = 0.01, kind: Kind = "double") -> None:
        self._store = Store(1, relative_accuracy)
        self.kind = _known(kind)

    @property
    def relative_accuracy(self) -> float:
        """The error promised, as a share of the value."""
        return self._store.relative_accuracy

    @property
    def n(self) -> int | float:
        """The weight of the values seen, without NaN and nulls; a fraction only if weights were fractions."""
        (total,) = seen_by(self._store).tolist()
        return int(total) if total == int(total) else total

    def update(self, values: Any, weight: Any = None) -> Self:
        """Add numbers, each as often as its `weight` says, if given; NaN and nulls in either are skipped.

        A weight, one per row or one for all, is a number from 0; it may be a fraction, because counts are
        doubles here and in the protobuf. Raises `TypeError` for other types, `ValueError` for weights that
        are negative or not finite, `SketchError` if their sum reaches 2^62.

        >>> import streamgauge as sg
        >>> sg.DDSketch().update([10, 20], weight=[1.5, 0.5]).n
        2
        """
        column = as_numbers(values, np.float64, self.family)
        if weight is None:
            self._store.update_one(0, column.numbers)
        else:
            weights, most = optional_weights(self.family, weight, column, whole=False)
            self._store.update_one(0, column.numbers, weights, most)
        return self

    def merge(self, other: Self) -> Self:
        """Merge `other`. Raises `SketchError` for a different accuracy, or too many values."""
        if not isinstance(other, DDSketch):
            raise SketchError(f"DDSketch: can't take in {other!r}")
        self._store.merge_image(0, other.to_bytes())
        return self

    def to_bytes(self) -> bytes:
        """The published protobuf."""
        return self._store.image(0)

    @classmethod
    def from_bytes(cls, data: bytes, kind: Kind = "double") -> Self:
        """Read a sketch from a protobuf with logarithmic buckets. Raises `SketchError` for anything else."""
        gamma = read_image(data)[0]
        sketch = cls((gamma - 1) / (gamma + 1), kind)
        sketch._store.merge_image(0, data)
        return sketch

    def quantile(self, q: float) -> float:
        """The value at rank ⌊q (n − 1)⌋. Raises `SketchError` if empty or q ∉ [0, 1]."""
        return self.quantiles(as_share(self.family, q))[0]

    def quantiles(self, qs: Any) -> list[float]:
        """The values at one share or several, as a list."""
        return self._at(qs).value.tolist()

    def quantile_bounds(self, q: float) -> tuple[float, float]:
        """The bounds between which the true quantile always lies, by all 13 definitions in NumPy, including
        the nine of Hyndman and Fan: the edges of the buckets of the ranks ⌊q n⌋ − 1 to ⌈q n⌉ from 0, widened
        by as much as rounding may move a value beyond them.
        """
        estimates = self._at(as_share(self.family, q))
        return estimates.lower.tolist()[0], estimates.upper.tolist()[0]

    def quantiles_within(self, qs: Any) -> tuple[list[float], list[float], list[float]]:
        """The values at several shares, and their lower and upper bounds, computed together."""
        estimates = self._at(qs)
        return estimates.value.tolist(), estimates.lower.tolist(), estimates.upper.tolist()

    def rank(self, x: float) -> float:
        """The share of values in the buckets up to that of `x`. Raises `SketchError` if empty or for NaN."""
        signs, keys, counts = self._buckets()
        point = np.array([double_point(self.family, x)])
        own = _FAR + keys_of(point.view(np.int64), self._store.multiplier)
        own = np.where(np.abs(point) < self._store.least, 0, np.sign(point) * own)
        return float(counts[signs * (_FAR + keys) <= own].sum() / counts.sum())

    def rank_bounds(self, x: float) -> tuple[float, float]:
        """The bounds between which the true rank of `x` always lies: without and with its bucket.

        If `x` is so close to an edge that rounding may have put equal values into either bucket (within
        10^−10 of it at an accuracy of 1 %), without and with both.
        """
        signs, keys, counts = self._buckets()
        _, lower, upper = widened(buckets_of(self._store, signs, keys), self._store)
        point, total = double_point(self.family, x), counts.sum()
        return float(counts[upper <= point].sum() / total), float(counts[lower <= point].sum() / total)

    def answer(self) -> dict[str, Any]:
        """n and the usual quantiles with their bounds; no quantiles while empty."""
        return quantile_answer(self)

    def copy(self) -> Self:
        """Return an independent equal sketch."""
        return self.from_bytes(self.to_bytes(), self.kind)

    def _untold(self) -> tuple[Any, ...]:
        return (self.kind,)

    def __repr__(self) -> str:
        if not self.n:
            return f"DDSketch({self.relative_accuracy:g}, empty)"
        low, middle, high = self.quantiles([0, 0.5, 1])
        return (
            f"DDSketch({self.relative_accuracy:g}, n={self.n}, min={low:.6g}, median={middle:.6g}, "
            f"max={high:.6g}, values ±{self.relative_accuracy:.2%})"
        )

    def _buckets(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the sign, key and count of every bucket, ascending by value."""
        self._check_not_empty()
        (first, below), (least, above) = (self._store.window(0, sign) for sign in (1, 0))
        keys = [first + np.arange(len(below))[::-1], np.zeros(1, int), least + np.arange(len(above))]
        counts = np.concatenate([below[::-1], [self._store.zeros(0)], above])
        return np.repeat([-1, 0, 1], [len(below), 1, len(above)]), np.concatenate(keys), counts

    def _at(self, qs: Any) -> Estimates:
        shares = as_shares(self.family, qs)
        self._check_not_empty()
        return Estimates(*(rows[0] for rows in quantiles(self._store, shares, self.kind == "long")))

    def _check_not_empty(self) -> None:
        if not self.n:
            raise SketchError("DDSketch: an empty sketch has no quantiles; update it first")


def _known(kind: Kind) -> Kind:
    return one_of("DDSketch", "kind", kind, ("double", "long"))
