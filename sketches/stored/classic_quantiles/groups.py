"""One `ClassicQuantiles` per group."""

from __future__ import annotations

from typing import ClassVar

from ...core.aggregated import Aggregated
from ...core.columns.column_kinds import numeric
from ...core.one_by_one import OneByOne


class ClassicQuantilesGroups(OneByOne):
    """One `ClassicQuantiles` per group; `ClassicQuantiles` states the promised error.

    >>> groups = ClassicQuantilesGroups(2)
    >>> groups.update([0, 1, 0], [1.0, 2.0, 3.0])
    >>> groups[0].n
    2
    """

    aggregate: ClassVar = Aggregated({"k": 128}, of_column=numeric)
