"""A sample in proportion to weights: the heavier a row, the likelier it is taken, none twice."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np

from ..sketches.weights import as_doubles
from . import weighted_jumps as jumps
from .images import Format
from .items import Rows
from .jumping import Columns, Jumping, JumpingGroups

LEAST_WEIGHT, MOST_WEIGHT = 1e-280, 1e280
_BITS = np.array([LEAST_WEIGHT, MOST_WEIGHT]).view(np.int64)


def as_weights(weight: Any, rows: Rows, family: str) -> np.ndarray:
    """One weight an item as float64; one number stands for all. Raises `ValueError` for impossible ones."""
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

    _format: Format = Format("WeightedReservoir", 2)
    _single: ClassVar[type[Jumping]]

    def __init__(self, n: int = 0, k: int = 100, seed: int | None = None) -> None:
        super().__init__(n, k, seed)

    def _prepare(self, rows: Rows, **inputs: Any) -> np.ndarray:
        if set(inputs) != {"weight"}:
            raise TypeError(f"{self._format.name}: expected update(…, weight=…), one weight a row")
        return as_weights(inputs["weight"], rows, self._format.name)

    def _rows_to_fill(self, room: int, prepared: np.ndarray) -> int:
        rows = room
        while rows < len(prepared) and np.count_nonzero(prepared[:rows]) < room:
            rows *= 2
        return rows

    def _enter(self, groups: np.ndarray | None, columns: Columns, prepared: Any, taken: np.ndarray) -> int:
        pool, rest = self._pool, (prepared, *columns, len(self._pool.items), taken)
        if groups is None:
            return int(jumps.update_one(pool.heaps, *pool.slots, *rest))
        return int(jumps.update_many(pool.heaps, *pool.slots, groups, *rest))


class WeightedReservoir(Jumping):
    """k rows drawn in proportion to their weights, one after the other, none twice.

    Exactly: the sample, in the order of `values`, is distributed as k draws without replacement, each among
    the rows left in proportion to their weights (successive sampling). So the first item is row i with
    probability w_i / Σw, a row that weighs half of all is in any sample with k ≥ 2 most of the time, and
    with k well below Σw / max w a row's chance is close to k·w_i / Σw. A row of weight 0 is never taken.

    Every row has the priority −E / w and the k greatest are kept (Efraimidis and Spirakis 2006), so merging
    is exact, associative and commutative. Once full it adds up weights until an exponential jump is over
    (their A-ExpJ). Memory is k items and 16 bytes each. Raises `ValueError` for weights that are negative or
    no numbers, `SketchError` for a k out of range and bytes that are no weighted reservoir; `seed` is as in
    `Reservoir`.

    >>> sample = WeightedReservoir(2, seed=4).update(["light", "heavy", "none"], weight=[1.0, 1e9, 0.0])
    >>> sample.values().to_pylist()
    ['heavy', 'light']
    """

    family = "WeightedReservoir"

    def __init__(self, k: int = 100, seed: int | None = None) -> None:
        self._groups = WeightedReservoirGroups(1, k, seed)

    @classmethod
    def _empty(cls, k: int, parameter: float) -> Self:
        return cls(k)

    def update(self, values: Any, weight: Any = 1.0) -> Self:
        """Add values with their weights, one a row, or one for all."""
        return self._update(values, weight=weight)

    def values(self) -> Any:
        """The sampled items, in the order in which they were drawn: any first m are a sample of m."""
        return super().values()


WeightedReservoirGroups._single = WeightedReservoir
