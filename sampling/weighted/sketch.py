"""A sample without replacement, in proportion to weights."""

from __future__ import annotations

from typing import Any, Self

from ..core.skip_reservoir import Jumping
from .groups import WeightedReservoirGroups


class WeightedReservoir(Jumping):
    """k rows drawn without replacement, in proportion to their weights.

    The sample, in the order of `values`, is distributed exactly like k draws without replacement, each in
    proportion to the weights of the remaining rows (successive sampling). So the first item is row i with
    probability w_i / Σw, a row with half of the total weight is usually in any sample with k ≥ 2, and with k
    well below Σw / max w a row's chance is close to k·w_i / Σw. A row of weight 0 is never sampled.

    Every row has the priority −E / w and the k greatest are stored (Efraimidis and Spirakis 2006), so merging
    is exact, associative and commutative. Once full it sums weights until an exponential skip is over (their
    A-ExpJ). Memory is k items and 16 bytes each; `seed` is as in `Reservoir`. Raises `ValueError` for weights
    other than 0 or between 1e-280 and 1e280, `SketchError` for a k out of range and bytes that aren't a
    weighted reservoir.

    Source: Efraimidis, Spirakis, "Weighted Random Sampling with a Reservoir", IPL 2006.

    >>> import streamgauge as sg
    >>> sample = sg.WeightedReservoir(2, seed=4).update(["light", "heavy", "none"], weight=[1.0, 1e9, 0.0])
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
        """Add values with their weights, one per row or one for all."""
        return self._update(values, weight=weight)

    def values(self) -> Any:
        """The sampled items, in the order in which they were drawn: any first m are a sample of m."""
        return super().values()
