"""Heavy hitters: a count-min sketch counts any value but stores none; a heap stores the largest."""

from __future__ import annotations

import heapq
from typing import Any, Self

import pyarrow as pa

from ..core.columns.columns import Values, as_array, as_values
from ..core.columns.utf8_repair import readable
from ..core.locking import Shared
from ..core.parameters import whole
from ..core.protocol import SketchError
from ..core.values.numbers import check_signed
from ..frequent_items.sketch import Item
from .sketch import CountMin, accepted

_SPARE = 4
"""Values stored per reported value, so that two merged sketches rarely both just miss a value."""


class HeavyHitters(Shared):
    """The `k` values with the largest count-min estimates.

    Promise: a value that occurred more than `missed` times is held, always, and is reported by `top` if no
    more than `k` values have estimates as large. For one stream, `missed` is the smallest of the 4 k
    estimates held, so `top` reports every value whose frequency exceeds its `k`-th estimate. Merging adds the
    `missed` of both sides, and `complete` tells whether this still holds. Bounds are as in `CountMin`. A
    value that was frequent early and was dropped returns as soon as it occurs again.

    >>> import streamgauge as sg
    >>> tags = sg.HeavyHitters(k=1).update(["a", "b", "a"])
    >>> tags.top(), tags.complete
    ([Item(item='a', estimate=2, lower=2, upper=2)], True)
    """

    def __init__(self, k: int = 10, eps: float = 0.001, confidence: float = 0.99, seed: int = 0) -> None:
        """Raises `SketchError` for k below 1, and as `CountMin` does."""
        self.k = whole("heavy hitters", "k", k, 1)
        self.counts = CountMin(eps, confidence, seed)
        self._held: dict[Any, int] = {}
        self._missed = 0
        self._kind: str | None = None  # the kind of the stored values, as in `columns.Values`

    @property
    def missed(self) -> int:
        """No value that isn't held occurred more often than this."""
        return max(self._missed, self._floor())

    @property
    def complete(self) -> bool:
        """Whether every value whose frequency exceeds the `k`-th largest estimate is reported by `top`."""
        heaviest = sorted(self._held.values(), reverse=True)[: self.k]
        return self.missed <= (heaviest[-1] if len(heaviest) == self.k else 0)

    def update(self, values: Any, weight: Any = None) -> Self:
        """Count values, and hold the largest.

        Raises what `CountMin.update` raises, `TypeError` for values of another kind than the earlier ones,
        and `SketchError` for unsigned numbers beyond int64.
        """
        array = readable(as_array(values))
        column = accepted(array, self.counts.item_kind)
        check_signed(column, "heavy hitters")  # items are reported, and would be different numbers as int64
        kind = self._kind_with(column.kind if len(column) else None)
        self.counts.update(array, weight)
        self._kind = kind
        if len(column):
            estimates = self.counts.estimates(column)
            large = pa.array(estimates > self._floor())
            self._keep(column.to_arrow().filter(large).unique().to_pylist())
        return self

    def _kind_with(self, kind: str | None) -> str | None:
        """Return the common kind of the stored values after adding values of a kind."""
        if self._kind and kind not in (None, self._kind):
            raise TypeError(f"heavy hitters: values must be {self._kind}, as before, got {kind}; cast them")
        return self._kind or kind

    def _floor(self) -> int:
        """Return the smallest estimate in the heap, once the heap is full."""
        return min(self._held.values()) if len(self._held) >= _SPARE * self.k else 0

    def _keep(self, candidates: list[Any]) -> None:
        """Keep the largest of the stored values and these, by the sketch's current estimates."""
        items = list({*candidates, *self._held})
        if items:
            ranked = zip(self.counts.estimates(self._of_kind(items)).tolist(), items)
            self._held = {item: n for n, item in heapq.nsmallest(_SPARE * self.k, ranked, key=_rank)}

    def _of_kind(self, items: list[Any]) -> Values:
        """Convert stored items to countable values; times are stored as microseconds."""
        column, kind = as_values(items), self.counts.item_kind
        column.temporal = kind if kind in ("timestamp", "time", "duration") else ""
        return column

    def merge(self, other: Self) -> Self:
        """Add the other's counts, and hold the largest values of both.

        Raises `SketchError` as `CountMin.merge` does, and `TypeError` for one of another kind of value.
        """
        if not isinstance(other, HeavyHitters):
            raise SketchError(f"heavy hitters: can't merge with {type(other).__name__}")
        kind, missed = self._kind_with(other._kind), self.missed + other.missed
        self.counts.merge(other.counts)
        self._kind, self._missed = kind, missed
        self._keep(list(other._held))
        return self

    def top(self) -> list[Item]:
        """The `k` values with the largest estimates, the largest first, equal ones by value."""
        error = self.counts.error
        ranked = heapq.nsmallest(self.k, ((n, item) for item, n in self._held.items()), key=_rank)
        return [Item(item, n, max(0, n - error), n) for n, item in ranked]


def _rank(pair: tuple[int, Any]) -> tuple[int, Any]:
    return -pair[0], pair[1]
