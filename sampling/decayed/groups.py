"""Decayed samples of many groups at once, by group number."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, ClassVar

import numpy as np

from ...sketches.core.aggregated import Aggregated
from ...sketches.core.parameters import seconds
from ..core.decay import HalfLife, as_times
from ..core.images import Format
from ..core.items import Rows
from ..core.priority import Bits
from ..core.skip_reservoir import JumpingGroups
from . import jumps

_NO_GROUPS = np.empty(0, np.int64)


class DecayedReservoirGroups(JumpingGroups):
    """A decayed sample of k rows for each of many groups; `DecayedReservoir` states the promise.

    >>> groups = DecayedReservoirGroups(2, k=5, half_life=60.0)
    >>> groups.update([0, 1, 1], ["a", "b", "c"], time=[0, 0, 10**9])
    >>> len(groups[1])
    2
    """

    aggregate: ClassVar = Aggregated({"k": 100, "half_life": 3600.0}, inputs=("time",), seeded=True)

    def __init__(
        self, n: int = 0, k: int = 100, half_life: timedelta | float = 3600.0, seed: int | None = None
    ) -> None:
        self._decay = HalfLife(seconds("DecayedReservoir", "half_life", half_life))
        self._format = Format("DecayedReservoir", 3, self._decay.seconds, bound=1e300)
        super().__init__(n, k, seed)

    def update(self, groups: Any, values: Any, time: Any = None) -> None:
        """Add values with an event time per row. Raises what `DecayedReservoir.update` raises."""
        self._update_groups(groups, values, time=time)

    def _prepare(self, rows: Rows, time: Any = None) -> np.ndarray:
        return self._decay.log_weights(as_times(time, rows, "DecayedReservoir"))

    def _enter(self, groups: np.ndarray | None, bits: Bits, prepared: Any, entered: np.ndarray) -> int:
        pool = self._pool
        numbers = _NO_GROUPS if groups is None else groups
        return int(jumps.update(pool.heaps, pool.slots, numbers, prepared, bits, len(pool.items), entered))
