"""Quantiles by DDSketch: every answer within a fixed share of the true value, tails included."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, Self

import numpy as np

from ..core.answers import as_shares, double_point, quantile_answer
from ..core.numbers import as_numbers
from ..core.parameters import one_of
from ..core.protocol import Sketch, SketchError
from .estimate import Estimates, quantiles, seen_by
from .store import Store, read_image

Kind = Literal["double", "long"]


class DDSketch(Sketch):
    """Quantiles of a stream of numbers to a relative error of value, in logarithmic buckets.

    Error promised, always: each quantile is off by at most `relative_accuracy` of the true value, also far in
    the tail and after any merging, up to the largest double; magnitudes below γ 2.23e-308 (γ = (1 + a) /
    (1 − a) for an accuracy of a; 2.27e-308 at 1 %) count as zero, which bounds show.
    Positive, negative and infinite values and zeros are kept apart; NaN and nulls are skipped. Memory is one
    count for each bucket between the smallest and largest magnitude: 115 buckets a factor of ten at 1 %.

    Of whole numbers (`kind` "long") quantiles are doubles that are whole wherever a whole number keeps the
    promise, and magnitudes below (1 − a) / 2a for an accuracy of a, 49.5 at 1 %, come out exact. Where a
    bucket holds two whole numbers and neither is close enough to the other (58 and 59), the quantile lies
    between them: 58.5. Bounds are whole numbers.

    The bytes are the published protobuf of DataDog's DDSketch with its logarithmic mapping; they don't say
    the kind. Raises `SketchError` for an accuracy outside 0.0001 … 0.5 or an unknown kind, `TypeError` for
    values that are not numbers.

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
        """Values seen, NaN and nulls not counted; a fraction only if weighted bytes were read."""
        (total,) = seen_by(self._store).tolist()
        return int(total) if total == int(total) else total

    def update(self, values: Any) -> Self:
        """Add numbers; NaN and nulls are skipped. Raises `TypeError` for other types."""
        self._store.update_one(0, as_numbers(values, np.float64, self.family).numbers)
        return self

    def merge(self, other: Self) -> Self:
        """Fold `other` in. Raises `SketchError` if its relative accuracy is another."""
        if not isinstance(other, DDSketch):
            raise SketchError(f"DDSketch: can't take in {other!r}")
        self._store.merge_image(0, other.to_bytes())
        return self

    def to_bytes(self) -> bytes:
        """The published protobuf."""
        return self._store.image(0)

    @classmethod
    def from_bytes(cls, data: bytes, kind: Kind = "double") -> Self:
        """The sketch of a protobuf with logarithmic buckets. Raises `SketchError` for anything else."""
        gamma = read_image(data)[0]
        sketch = cls((gamma - 1) / (gamma + 1), kind)
        sketch._store.merge_image(0, data)
        return sketch

    def quantile(self, q: float) -> float:
        """The value at rank ⌊q (n − 1)⌋. Raises `SketchError` if empty or q ∉ [0, 1]."""
        return self.quantiles([q])[0]

    def quantiles(self, qs: Any) -> list[float]:
        """The values at several shares."""
        return self._at(qs).value.tolist()

    def quantile_bounds(self, q: float) -> tuple[float, float]:
        """Between them the true quantile always lies, by all 13 definitions that NumPy knows, the nine
        of Hyndman and Fan among them: the edges of the buckets of the ranks ⌊q n⌋ − 1 to ⌈q n⌉ from 0."""
        estimates = self._at([q])
        return estimates.lower.tolist()[0], estimates.upper.tolist()[0]

    def quantiles_within(self, qs: Any) -> tuple[list[float], list[float], list[float]]:
        """The values at several shares, and their lower and upper bounds, found in one go."""
        estimates = self._at(qs)
        return estimates.value.tolist(), estimates.lower.tolist(), estimates.upper.tolist()

    def rank(self, x: float) -> float:
        """The share of values in the buckets up to that of `x`. Raises `SketchError` if empty or for NaN."""
        return self.rank_bounds(x)[1]

    def rank_bounds(self, x: float) -> tuple[float, float]:
        """The shares between which the true rank of `x` always lies: without and with its bucket."""
        _, lower, upper, counts = self._buckets()
        point = double_point(self.family, x)
        total = counts.sum()
        return float(counts[upper <= point].sum() / total), float(counts[lower <= point].sum() / total)

    def answer(self) -> dict[str, Any]:
        """n and the usual quantiles with their bounds; no quantiles while empty."""
        return quantile_answer(self)

    def copy(self) -> Self:
        """An independent equal sketch."""
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

    def _buckets(self) -> tuple[np.ndarray, ...]:
        """Value, lower and upper edge, and count of every bucket, ascending."""
        self._check_not_empty()
        store, parts = self._store, []
        for sign in (1, 0):
            first, counts = store.window(0, sign)
            with np.errstate(over="ignore"):
                logs = np.arange(first - 1, first + len(counts)) / store.multiplier
                powers = np.exp2(logs)
                middle = np.exp2(logs[1:] + np.log2(2 / (1 + store.gamma)))
            powers, middle = (np.minimum(column, np.finfo(float).max) for column in (powers, middle))
            if first + len(counts) > store.infinite:
                middle[-1] = powers[-2] = powers[-1] = np.inf
            edge = np.array([middle, powers[:-1], powers[1:], counts])
            parts.append(edge if sign == 0 else np.array([-edge[0], -edge[2], -edge[1], edge[3]])[:, ::-1])
        least = np.finfo(float).tiny * store.gamma
        zeros = np.array([[0.0], [-least], [least], [store.zeros(0)]])
        return tuple(np.concatenate([parts[0], zeros, parts[1]], axis=1))

    def _at(self, qs: Any) -> Estimates:
        shares = as_shares(self.family, qs)
        self._check_not_empty()
        return Estimates(*(rows[0] for rows in quantiles(self._store, shares, self.kind == "long")))

    def _check_not_empty(self) -> None:
        if not self.n:
            raise SketchError("DDSketch: an empty sketch has no quantiles; update it first")


def _known(kind: Kind) -> Kind:
    return one_of("DDSketch", "kind", kind, ("double", "long"))
