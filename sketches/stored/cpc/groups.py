"""One `CPC` per group."""

from __future__ import annotations

from typing import Any, ClassVar

import pyarrow as pa

from ...core.aggregated import Aggregated
from ...core.columns.column_kinds import column_kind
from ...core.one_by_one import OneByOne


def hashed_by_the_package(leaf: pa.DataType) -> dict[str, Any]:
    """Accept values that the `datasketches` package hashes: all except binary."""
    if column_kind(leaf) == "binary":
        raise TypeError(f"values of {leaf} can't be counted by the package; cast them to strings")
    return {}


class CPCGroups(OneByOne):
    """One `CPC` per group; `CPC` states the promised error.

    >>> groups = CPCGroups(2)
    >>> groups.update([0, 1, 0], ["ann", "bob", "cat"])
    >>> round(groups[0].estimate())
    2
    """

    aggregate: ClassVar = Aggregated(
        {"lg_k": 11}, of_column=hashed_by_the_package, hashes=True, skips_empty=True
    )
