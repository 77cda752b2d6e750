"""One `DecayedQuantiles` per group."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, ClassVar

import numpy as np

from ...sketches.core.aggregated import Aggregated
from ...sketches.core.columns.column_kinds import numeric
from ...sketches.core.one_by_one import OneByOne


class DecayedQuantilesGroups(OneByOne):
    """One `DecayedQuantiles` per group; `DecayedQuantiles` states the promised error.

    >>> groups = DecayedQuantilesGroups(2, half_life=60.0)
    >>> groups.update([0, 1, 0], [1.0, 2.0, 3.0], time=[0, 0, 10_000_000])
    >>> groups[0].n
    2
    """

    aggregate: ClassVar = Aggregated(
        {"half_life": 3600.0, "relative_accuracy": 0.01}, inputs=("time",), of_column=numeric
    )

    def __init__(
        self, n: int = 0, half_life: timedelta | float = 3600.0, relative_accuracy: float = 0.01
    ) -> None:
        super().__init__(n, half_life=half_life, relative_accuracy=relative_accuracy)

    def update(self, groups: np.ndarray, values: Any, time: Any = None) -> None:
        """Add each group's numbers with their event times. Raises what `DecayedQuantiles.update` raises."""
        self._update(groups, values, time=time)
