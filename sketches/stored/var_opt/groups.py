"""One `VarOpt` per group."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from ...core.aggregated import Aggregated
from ...core.columns.column_kinds import long_double_or_string
from ...core.one_by_one import OneByOne


class VarOptGroups(OneByOne):
    """One `VarOpt` per group; `VarOpt` states the promise.

    >>> groups = VarOptGroups(2, k=5, kind="long")
    >>> groups.update([0, 1, 0], [7, 8, 9], weight=[1.0, 2.0, 3.0])
    >>> sorted(groups[0].values().to_pylist())
    [7, 9]
    """

    aggregate: ClassVar = Aggregated(
        {"k": 100},
        inputs=("weight",),
        of_column=long_double_or_string,
        kinds=("string", "long", "double"),
        must_name_kind=True,
    )

    def update(self, groups: np.ndarray, values: Any, weight: Any = 1.0) -> None:
        """Add each group's rows with their weights to its sample. Raises what `VarOpt.update` raises."""
        self._update(groups, values, weight=weight)

    _read = ("kind",)
