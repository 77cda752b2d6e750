"""Quantiles by t-digest: clusters of values that are smallest at both ends."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np

from ..core.answers import quantile_answer
from ..core.protocol import Sketch, SketchError
from ..core.values.numbers import as_numbers
from ..core.values.points import as_share, as_shares, double_point
from .reference import BEGINNING, as_image
from .store import Store


class TDigest(Sketch):
    """Quantiles of doubles by clusters that are smallest at both ends (DataSketches t-digest).

    No error is promised: a t-digest has no bound that holds for every stream, so its answers carry none. Use
    `DDSketch`, `KLL` or `REQ` unless other systems must read the bytes. The lowest and the highest value are
    exact, and no answer lies beyond them. NaN, infinities and nulls are skipped, because a mean can't
    represent them.

    Quantiles are interpolated linearly between the clusters' means, which are placed in the middle of their
    ranks. No two values are subtracted, so even ±1.7e308 don't overflow.

    The bytes are DataSketches' `tdigest_double` or `TDigestDouble`, which are equal for equal values however
    these were batched: values that wait to be merged into clusters are merged in the bytes, not in the
    sketch. `from_bytes` also reads the bytes of Dunning's own library.

    Raises `SketchError` for a k outside 10 … 65,535, and for more than 2^53 − 1 values, `TypeError` for
    values that aren't numbers.

    Source: Dunning, Ertl, "Computing Extremely Accurate Quantiles Using t-Digests", 2019.

    >>> import streamgauge as sg
    >>> sketch = sg.TDigest().update(np.arange(100_001.0))
    >>> abs(sketch.quantile(0.999) - 99_900) < 10, sketch.quantiles([0, 1])
    (True, [0.0, 100000.0])
    """

    family: ClassVar[str] = "TDigest"

    def __init__(self, k: int = 200) -> None:
        self._store = Store(1, k)

    @property
    def k(self) -> int:
        """The size parameter: the approximate number of clusters for many values."""
        return self._store.k

    @property
    def n(self) -> int:
        """The number of values seen, without NaN, infinities and nulls."""
        return int(self._store.counts[0])

    @property
    def low(self) -> float:
        """The lowest value, exact. Raises `SketchError` while empty."""
        self._check_not_empty()
        return float(self._store.state.low[0])

    @property
    def high(self) -> float:
        """The highest value, exact. Raises `SketchError` while empty."""
        self._check_not_empty()
        return float(self._store.state.high[0])

    def _saw_nothing(self) -> bool:
        return not self.n

    def update(self, values: Any) -> Self:
        """Add numbers; NaN, infinities and nulls are skipped. Raises `TypeError` for other types."""
        self._store.update_one(0, as_numbers(values, np.float64, self.family).numbers)
        return self

    def merge(self, other: Self) -> Self:
        """Merge `other`, of any k, into this sketch, whose k stays the same.

        Raises `SketchError` for another family, or too many values.
        """
        if not isinstance(other, TDigest):
            raise SketchError(f"TDigest: can't take in {other!r}")
        self._store.merge_images(np.zeros(1, np.int64), *other._store.images())
        return self

    def to_bytes(self) -> bytes:
        """The DataSketches image."""
        return self._store.images()[0].tobytes()

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Read a sketch from a DataSketches image of doubles, or the bytes of Dunning's `MergingDigest`.

        Raises `SketchError` for anything else.
        """
        image = np.frombuffer(as_image(bytes(data)) if data[:3] == BEGINNING else data, np.uint8)
        k = int(image[3]) | int(image[4]) << 8 if len(image) >= 8 else 0
        # The validation of the bytes reports whatever is wrong.
        sketch = cls(k if k >= 10 else 200)
        sketch._store.merge_images(np.zeros(1, np.int64), image, np.array([0, len(image)], np.int64))
        return sketch

    def quantile(self, q: float) -> float:
        """The value at a share `q` of all values. Raises `SketchError` while empty."""
        return self.quantiles(as_share(self.family, q))[0]

    def quantiles(self, qs: Any) -> list[float]:
        """The values at several shares. Raises `SketchError` while empty, and for shares outside 0 to 1."""
        shares = as_shares(self.family, qs)
        self._check_not_empty()
        return self._store.quantiles(shares)[0].tolist()

    def rank(self, x: float) -> float:
        """The share of values up to `x`, the inverse of `quantile`: half of a value's own weight counts, all
        of it at the highest. Raises `SketchError` while empty, and for NaN.
        """
        self._check_not_empty()
        point, low, high = double_point(self.family, x), self.low, self.high
        if point < low or point >= high:
            return float(point >= high)
        means, weights = self._store.clusters(0)
        up_to = np.cumsum(weights)
        ranks = np.concatenate([[0.0], up_to - weights / 2, up_to[-1:]]) / up_to[-1]
        points = np.concatenate([[low], means, [high]])
        after = int(np.searchsorted(points, point, side="right"))
        left, right = points[after - 1], points[after]
        # Halves, because the difference of two doubles may be infinite.
        part = (point / 2 - left / 2) / (right / 2 - left / 2) if right / 2 > left / 2 else 0.0
        rank = float(ranks[after - 1] + min(max(part, 0.0), 1.0) * (ranks[after] - ranks[after - 1]))
        return min(max(rank, 0.5 / self.n), 1 - 1 / self.n)

    def answer(self) -> dict[str, Any]:
        """n and the usual quantiles, without bounds, because none are promised."""
        return quantile_answer(self)

    def copy(self) -> Self:
        """Return an independent equal sketch."""
        twin = type(self)(self.k)
        twin._store = self._store.one(0)
        return twin

    def __repr__(self) -> str:
        if not self.n:
            return f"TDigest(k={self.k}, empty)"
        low, middle, high = self.quantiles([0, 0.5, 1])
        return f"TDigest(k={self.k}, n={self.n}, min={low:.6g}, median={middle:.6g}, max={high:.6g})"

    def _check_not_empty(self) -> None:
        if not self.n:
            raise SketchError("TDigest: an empty sketch has no quantiles and no ranks; update it first")
