"""The heavy hitters of a count-min sketch: it counts any value, but keeps none; a heap keeps the largest."""

from __future__ import annotations

import heapq
from typing import Any, Self

import pyarrow as pa

from .columns import as_array
from .count_min import CountMin, accepted
from .frequent_items import Item


class HeavyHitters:
    """The `k` values with the largest count-min estimates.

    Promise: a value whose frequency exceeds the `k`-th largest estimate is among them, always; bounds are
    those of `CountMin`. Values are held while they are among the largest, so one that was frequent early and
    fell out comes back as soon as it occurs again.

    >>> tags = HeavyHitters(k=1).update(["a", "b", "a"])
    >>> tags.top()
    [Item(item='a', estimate=2, lower=2, upper=2)]
    """

    def __init__(self, k: int = 10, eps: float = 0.001, confidence: float = 0.99, seed: int = 0) -> None:
        """Raises `ValueError` for k below 1 and `SketchError` as `CountMin` does."""
        if k < 1:
            raise ValueError(f"heavy hitters: k must be at least 1, got {k}")
        self.k = k
        self.counts = CountMin(eps, confidence, seed)
        self._held: dict[Any, int] = {}

    def update(self, values: Any, weights: Any = None) -> Self:
        """Count values and keep the largest. Raises as `CountMin.update` does."""
        array = as_array(values)
        self.counts.update(array, weights)
        found = accepted(array)
        if len(found):
            estimates = self.counts.estimates(found)
            floor = min(self._held.values()) if len(self._held) >= self.k else 0
            large = pa.array(estimates > floor)
            self._keep(found.to_arrow().filter(large).unique().to_pylist())
        return self

    def _keep(self, candidates: list[Any]) -> None:
        """The `k` largest of those held and these, by what the sketch says now."""
        items = list({*candidates, *self._held})
        if items:
            ranked = zip(self.counts.estimates(items).tolist(), items)
            self._held = {item: n for n, item in heapq.nsmallest(self.k, ranked, key=lambda r: (-r[0], r[1]))}

    def merge(self, other: Self) -> Self:
        """Add the other's counts, and keep the largest of both. Raises `SketchError` as `CountMin.merge`."""
        self.counts.merge(other.counts)
        self._keep(list(other._held))
        return self

    def top(self) -> list[Item]:
        """The values held, the largest estimate first, equal ones by value."""
        error = self.counts.error
        ranked = sorted(self._held.items(), key=lambda pair: (-pair[1], pair[0]))
        return [Item(item, n, max(0, n - error), n) for item, n in ranked]
