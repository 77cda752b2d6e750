"""The heavy hitters of a count-min sketch: it counts any value, but keeps none; a heap keeps the largest."""

from __future__ import annotations

import heapq
from typing import Any, Self

import pyarrow as pa

from ..core.columns import as_array
from ..core.parameters import whole
from ..core.shared import Shared
from ..frequent_items.sketch import Item
from .sketch import CountMin, accepted

_SPARE = 4
"""Values held for each that is told, so that what two sketches each just missed is rarely missed by both."""


class HeavyHitters(Shared):
    """The `k` values with the largest count-min estimates.

    Promise: a value that occurred more than `missed` times is held, always, and is told by `top` if no more
    than `k` values have estimates as large. Of one stream `missed` is the 4 k-th largest estimate, so `top`
    tells every value whose frequency exceeds its `k`-th estimate; merging adds up what each side missed, and
    `complete` says whether `top` still does. Bounds are those of `CountMin`. A value that was frequent early
    and fell out comes back as soon as it occurs again.

    >>> tags = HeavyHitters(k=1).update(["a", "b", "a"])
    >>> tags.top(), tags.complete
    ([Item(item='a', estimate=2, lower=2, upper=2)], True)
    """

    def __init__(self, k: int = 10, eps: float = 0.001, confidence: float = 0.99, seed: int = 0) -> None:
        """Raises `SketchError` for k below 1, and as `CountMin` does."""
        self.k = whole("heavy hitters", "k", k, 1)
        self.counts = CountMin(eps, confidence, seed)
        self._held: dict[Any, int] = {}
        self._missed = 0

    @property
    def missed(self) -> int:
        """No value that isn't held occurred more often than this."""
        return max(self._missed, self._floor())

    @property
    def complete(self) -> bool:
        """Whether every value whose frequency exceeds the `k`-th largest estimate is told by `top`."""
        told = sorted(self._held.values(), reverse=True)[: self.k]
        return self.missed <= (told[-1] if len(told) == self.k else 0)

    def update(self, values: Any, weights: Any = None) -> Self:
        """Count values and keep the largest. Raises as `CountMin.update` does."""
        array = as_array(values)
        self.counts.update(array, weights)
        found = accepted(array)
        if len(found):
            estimates = self.counts.estimates(found)
            large = pa.array(estimates > self._floor())
            self._keep(found.to_arrow().filter(large).unique().to_pylist())
        return self

    def _floor(self) -> int:
        """The least estimate held, once as many are held as may be."""
        return min(self._held.values()) if len(self._held) >= _SPARE * self.k else 0

    def _keep(self, candidates: list[Any]) -> None:
        """The largest of those held and these, by what the sketch says now."""
        items = list({*candidates, *self._held})
        if items:
            ranked = zip(self.counts.estimates(items).tolist(), items)
            self._held = {item: n for n, item in heapq.nsmallest(_SPARE * self.k, ranked, key=_rank)}

    def merge(self, other: Self) -> Self:
        """Add the other's counts, and keep the largest of both. Raises `SketchError` as `CountMin.merge`."""
        missed = self.missed + other.missed
        self.counts.merge(other.counts)
        self._missed = missed
        self._keep(list(other._held))
        return self

    def top(self) -> list[Item]:
        """The `k` values with the largest estimates, the largest first, equal ones by value."""
        error = self.counts.error
        ranked = heapq.nsmallest(self.k, ((n, item) for item, n in self._held.items()), key=_rank)
        return [Item(item, n, max(0, n - error), n) for n, item in ranked]


def _rank(pair: tuple[int, Any]) -> tuple[int, Any]:
    return -pair[0], pair[1]
