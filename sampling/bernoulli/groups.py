"""Shares of the rows of many groups at once, by group number."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from ...sketches.core.aggregated import Aggregated
from ..core.bernoulli_base import ShareGroups
from . import jumps


class BernoulliSampleGroups(ShareGroups):
    """A share of the rows of each of many groups; `BernoulliSample` states the promise.

    >>> groups = BernoulliSampleGroups(2, p=1.0)
    >>> groups.update([0, 1, 1], ["a", "b", "c"])
    >>> len(groups[1])
    2
    """

    aggregate: ClassVar = Aggregated({"p": 0.01}, seeded=True)

    def __init__(self, n: int = 0, p: float = 0.01, seed: int | None = None) -> None:
        super().__init__("BernoulliSample", 6, n, p, seed)

    def update(self, groups: Any, values: Any) -> None:
        """Add values to their groups. Raises `SketchError` for items of another type than those before."""
        self._update_groups(groups, values)

    def _choose(self, groups: np.ndarray | None, n: int, prepared: Any) -> tuple[np.ndarray, np.ndarray]:
        chosen, states = np.empty(n, np.int64), np.empty(n, np.uint64)
        mean = 0.0 if self.p == 1.0 else 1.0 / self._most
        if groups is None:
            count = jumps.pick_one(self._pool.heaps, n, mean, chosen, states)
        else:
            count = jumps.pick_many(self._pool.heaps, groups, mean, chosen, states)
        return chosen[:count], states[:count]
