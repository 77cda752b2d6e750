"""Uniform samples of many groups at once, by group number."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from ...sketches.core.aggregated import Aggregated
from ..core import skip_kernel
from ..core.bottom_k import plain
from ..core.images import Format
from ..core.items import Rows
from ..core.priority import Bits
from ..core.skip_reservoir import JumpingGroups
from ..core.uniform import share_error


class ReservoirGroups(JumpingGroups):
    """A uniform sample of k rows for each of many groups; `Reservoir` states the promise.

    >>> groups = ReservoirGroups(2, k=2, seed=1)
    >>> groups.update([0, 1, 1, 1], ["a", "b", "c", "d"])
    >>> groups.n.tolist(), len(groups[0]), len(groups[1])
    ([1, 3], 1, 2)
    """

    aggregate: ClassVar = Aggregated({"k": 100}, seeded=True, spark_merge="max_by")

    _format: Format = Format("Reservoir", 1)

    def __init__(self, n: int = 0, k: int = 100, seed: int | None = None) -> None:
        super().__init__(n, k, seed)

    def answers(self, **question: Any) -> Any:
        """Return `Reservoir.answer` for each group, as an Arrow struct if items are plain values."""
        parts = self._pool.parts(np.arange(len(self)))
        sizes, of = np.unique(parts.samples["size"], return_inverse=True)
        errors = np.where(sizes[of] < self.n, np.array([share_error(m) for m in sizes.tolist()])[of], 0.0)
        ends = np.append(0, np.cumsum(parts.samples["size"]))
        kind = parts.items.type
        if not (pa.types.is_integer(kind) or pa.types.is_string(kind) or pa.types.is_boolean(kind)):
            items = [plain(item) for item in parts.items.to_pylist()]
            values = [items[low:high] for low, high in pairwise(ends.tolist())]
            columns = zip(self.n.tolist(), values, errors.tolist())
            return [{"n": n, "values": some, "error": error} for n, some, error in columns]
        values = pa.LargeListArray.from_arrays(pa.array(ends, pa.int64()), parts.items)
        return pa.StructArray.from_arrays(
            [pa.array(self.n), values, pa.array(errors)], ["n", "values", "error"]
        )

    def update(self, groups: Any, values: Any) -> None:
        """Add values to their groups. Raises `SketchError` for items of another type than those before."""
        self._update_groups(groups, values)

    def _prepare(self, rows: Rows) -> None:
        """Do nothing: all rows have the same weight."""

    def _enter(self, groups: np.ndarray | None, bits: Bits, prepared: Any, entered: np.ndarray) -> int:
        pool, first = self._pool, len(self._pool.items)
        if groups is None:
            return int(skip_kernel.update_one(pool.heaps, pool.slots, bits, first, entered))
        return int(skip_kernel.update_many(pool.heaps, pool.slots, groups, bits, first, entered))
