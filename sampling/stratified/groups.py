"""Stratified samples of many groups at once, by group number."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from ...sketches.core.aggregated import Aggregated
from ...sketches.core.columns.arrays import as_input, is_scalar
from ...sketches.core.columns.times import cut
from ...sketches.core.columns.utf8_repair import readable
from ...sketches.core.parameters import whole
from ..core.bottom_k import BottomKGroups, checked_k
from ..core.images import MOST_K, Format
from ..core.items import Rows, bits_of, hash_items, kept_type
from .strata import Strata


class StratifiedReservoirGroups(BottomKGroups):
    """A sample by key for each of many groups; `StratifiedReservoir` states the promise.

    >>> groups = StratifiedReservoirGroups(2, k=1, seed=1)
    >>> groups.update([0, 1, 1], [10, 20, 30], key=["a", "a", "b"])
    >>> groups[1].values().sort_by("key").to_pydict()
    {'key': ['a', 'b'], 'item': [20, 30]}
    """

    aggregate: ClassVar = Aggregated({"k": 10, "capacity": 100_000}, inputs=("key",), seeded=True)

    _pool: Strata

    def __init__(self, n: int = 0, k: int = 10, capacity: int = 100_000, seed: int | None = None) -> None:
        capacity = whole("StratifiedReservoir", "capacity", capacity, 1, MOST_K)
        self._format = Format("StratifiedReservoir", 5, float(capacity), beyond_k=True)
        self._pool = Strata(n, checked_k(k, self._format.name), seed, int(capacity))

    def update(self, groups: Any, values: Any, key: Any = None) -> None:
        """Add values with a key per row to their groups. Raises what `StratifiedReservoir.update` raises."""
        self._update_groups(groups, values, key=key)

    def _update(self, groups: np.ndarray | None, rows: Rows, inputs: dict[str, Any]) -> None:
        if inputs["key"] is None:
            raise TypeError(f"{self._format.name}: expected update(…, key=…), one key a row")
        keys = readable(cut(as_input("key", inputs["key"])))
        if is_scalar(inputs["key"]):
            keys = keys.take(pa.array(np.zeros(rows.length, np.int64)))
        numbers = rows.per_item(np.arange(len(keys)), "key")
        kind = kept_type(keys.type)
        keys = (keys if keys.type == kind else keys.cast(kind)).take(pa.array(numbers))
        if not len(rows.items):
            return
        hashes = hash_items(keys)
        keys, items = self._pool.accept(keys, rows.items, self._format.name)
        if groups is None:
            groups = np.zeros(len(items), np.int64)
        self._pool.add(groups, items, bits_of(items), keys, hashes)
