"""One `TDigest` a group."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from ..core.aggregated import Aggregated
from ..core.column_kinds import numeric
from ..core.group_numbers import as_groups
from ..core.numbers import as_numbers
from ..core.one_by_one import OneByOne
from .sketch import TDigest


class TDigestGroups(OneByOne):
    """One `TDigest` a group: see there for why no error is promised.

    >>> groups = TDigestGroups(2)
    >>> groups.update([0, 1, 0], [1.0, 2.0, 3.0])
    >>> groups[0].n
    2
    """

    aggregate: ClassVar = Aggregated({"k": 200}, of_column=numeric)

    _single = TDigest

    def update(self, groups: np.ndarray, values: Any) -> None:
        """Add each group's numbers. Infinities are left out: one in a stream must not end it."""
        numbers = as_numbers(values, np.float64, TDigest.family)
        owners = numbers.per_value(as_groups(groups, numbers.length, self._n))
        finite = ~np.isinf(numbers.numbers)
        super().update(owners[finite], numbers.numbers[finite])
