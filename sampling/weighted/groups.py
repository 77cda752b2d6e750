"""Weighted samples of many groups at once, by group number."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from ...sketches.core.aggregated import Aggregated
from ...sketches.core.columns.weights import as_doubles
from ..core.images import Format
from ..core.items import Rows
from ..core.priority import Bits
from ..core.skip_reservoir import JumpingGroups
from . import jumps

LEAST_WEIGHT, MOST_WEIGHT = 1e-280, 1e280


_BITS = np.array([LEAST_WEIGHT, MOST_WEIGHT]).view(np.int64)


def as_weights(weight: Any, rows: Rows, family: str) -> np.ndarray:
    """Return one weight per item as float64; one number applies to all. Raises `ValueError` for invalid
    weights."""
    weights = rows.per_item(as_doubles(weight, rows.length, f"{family}: expected one weight"), "weight")
    least, most = jumps.bit_range(weights)
    if len(weights) and not (_BITS[0] <= least and most <= _BITS[1]):
        wrong = ~((weights == 0.0) | (weights >= LEAST_WEIGHT) & (weights <= MOST_WEIGHT))
        if wrong.any():
            raise ValueError(
                f"{family}: weights must be 0 or from {LEAST_WEIGHT} to {MOST_WEIGHT}, "
                f"got {weights[wrong.argmax()]}"
            )
    return weights


class WeightedReservoirGroups(JumpingGroups):
    """A weighted sample of k rows for each of many groups; `WeightedReservoir` states the promise.

    >>> groups = WeightedReservoirGroups(2, k=1, seed=1)
    >>> groups.update([0, 1, 1], ["a", "b", "c"], weight=[1.0, 0.0, 2.0])
    >>> groups[1].values().to_pylist()
    ['c']
    """

    aggregate: ClassVar = Aggregated({"k": 100}, inputs=("weight",), seeded=True)

    _format: Format = Format("WeightedReservoir", 2)

    def __init__(self, n: int = 0, k: int = 100, seed: int | None = None) -> None:
        super().__init__(n, k, seed)

    def update(self, groups: Any, values: Any, weight: Any = None) -> None:
        """Add values with a weight per row to their groups. Raises what `WeightedReservoir.update` raises."""
        self._update_groups(groups, values, weight=weight)

    def _prepare(self, rows: Rows, weight: Any = None) -> np.ndarray:
        if weight is None:
            raise TypeError(f"{self._format.name}: expected update(…, weight=…), one weight a row")
        return as_weights(weight, rows, self._format.name)

    def _rows_to_fill(self, room: int, prepared: np.ndarray) -> int:
        rows = room
        while rows < len(prepared) and np.count_nonzero(prepared[:rows]) < room:
            rows *= 2
        return rows

    def _enter(self, groups: np.ndarray | None, bits: Bits, prepared: Any, entered: np.ndarray) -> int:
        pool, rest = self._pool, (prepared, bits, len(self._pool.items), entered)
        if groups is None:
            return int(jumps.update_one(pool.heaps, pool.slots, *rest, np.empty(jumps.TOGETHER)))
        return int(jumps.update_many(pool.heaps, pool.slots, groups, *rest))
