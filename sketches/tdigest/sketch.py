"""Quantiles by clusters: t-digests that others stored, through the `datasketches` package."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import datasketches
import numpy as np

from ..core.answers import quantile_answer
from ..core.numbers import as_numbers
from ..core.parameters import whole
from ..core.protocol import SketchError
from ..stored.package_quantiles import PackageQuantiles, read_checked
from .images import SINGLE, clusters, image_fault


class TDigest(PackageQuantiles):
    """Quantiles of doubles by clusters that are smallest at both ends (DataSketches t-digest).

    No error is promised: a t-digest has none in the worst case, so its answers carry no bounds; use `KLL` or
    `DDSketch` for new data. Fewer than 2^53 values are counted.

    Quantiles are interpolated here, between the clusters' means, since the package's own (5.2.0) weighs the
    two neighbours the wrong way round, so that they fall and rise in between.

    Source: Dunning, Ertl, "Computing Extremely Accurate Quantiles Using t-Digests", 2019.

    >>> import streamgauge as sg
    >>> abs(sg.stored.TDigest().update(np.arange(1001.0)).quantile(0.5) - 500) < 20
    True
    """

    family: ClassVar[str] = "TDigest"
    _most: ClassVar[int] = (1 << 53) - 1
    _inclusive = ()

    def __init__(self, k: int = 200) -> None:
        self._peer = datasketches.tdigest_double(whole("TDigest", "k", k, 10, 65_535))

    @property
    def n(self) -> int:
        """Values seen, NaN and nulls not counted."""
        return int(self._peer.get_total_weight())

    def update(self, values: Any) -> Self:
        """Add numbers; NaN and nulls are skipped. Raises `SketchError` for infinities, which have no mean."""
        self._add_staged(self._staged(values))
        return self

    def _staged(self, values: Any) -> np.ndarray:
        numbers = as_numbers(values, np.float64, self.family).numbers
        if np.isinf(numbers).any():
            raise SketchError("TDigest: an infinity has no place in a cluster's mean; filter it out")
        return self._within(np.array(numbers[~np.isnan(numbers)]))

    def merge(self, other: Self) -> Self:
        """Fold `other` in. Raises `SketchError` for another family, or more values than can be counted."""
        self._refuse_merge(other)
        self._peer.merge(other.copy()._peer if other is self else other._peer)
        return self

    def _refuse_merge(self, other: Any, coming: int = 0) -> None:
        if not isinstance(other, TDigest):
            raise SketchError(f"TDigest: can't take in {other!r}")
        self._refuse_beyond(coming + other.n)

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """The sketch of a DataSketches t-digest image of doubles. Raises `SketchError` for anything else."""
        data, sketch = bytes(data), cls()
        read = datasketches.tdigest_double.deserialize
        sketch._peer = read_checked("TDigest", data, image_fault(data), read)
        return sketch

    def _at(self, q: float) -> float:
        data = self.to_bytes()
        if data[5] & SINGLE:
            return float(np.frombuffer(data, "<f8", 1, 8)[0])
        pairs, buffered = clusters(data)
        means = np.concatenate([pairs["mean"], buffered])
        weights = np.concatenate([pairs["weight"].astype(np.float64), np.ones(len(buffered))])
        order = np.argsort(means, kind="stable")
        means, up_to = means[order], np.cumsum(weights[order])
        # A cluster's mean stands in the middle of its ranks; the ends lie before the first, after the last.
        middles = up_to - weights[order] / 2
        low, high = self._peer.get_min_value(), self._peer.get_max_value()
        ranks = np.concatenate([[0.0], middles, [up_to[-1]]])
        values = np.concatenate([[low], means, [high]])
        i = min(int(np.searchsorted(ranks, q * up_to[-1], "right")), len(ranks) - 1)
        share = (q * up_to[-1] - ranks[i - 1]) / (ranks[i] - ranks[i - 1])
        # By shares, since the difference of two doubles may be beyond all doubles.
        between = values[i - 1] * (1.0 - share) + values[i] * share
        return float(min(max(between, values[i - 1]), values[i]))

    def answer(self) -> dict[str, Any]:
        """n and the usual quantiles, without bounds, for none are promised."""
        return quantile_answer(self)
