"""One `REQ` a group."""

from __future__ import annotations

from typing import ClassVar

from ..core.aggregated import Aggregated
from ..core.column_kinds import numeric
from ..core.one_by_one import OneByOne
from .sketch import REQ


class REQGroups(OneByOne):
    """One `REQ` a group: see there for the error promised.

    >>> groups = REQGroups(2)
    >>> groups.update([0, 1, 0], [1.0, 2.0, 3.0])
    >>> groups[0].n
    2
    """

    aggregate: ClassVar = Aggregated({"k": 12, "high_ranks": True}, of_column=numeric)

    _single = REQ
