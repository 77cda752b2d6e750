"""Uniform samples of many groups at once, by group number."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from ...sketches.core.aggregated import Aggregated
from ..core import jumps
from ..core.images import Format
from ..core.items import Rows
from ..core.jumping import Jumping, JumpingGroups
from ..core.priority import Bits
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
    _single: ClassVar[type[Jumping]]

    def __init__(self, n: int = 0, k: int = 100, seed: int | None = None) -> None:
        super().__init__(n, k, seed)

    def answers(self, **question: Any) -> Any:
        """What `Reservoir.answer` gives, of each group: as a struct of Arrow where items are plain values."""
        parts = self._pool.parts(np.arange(len(self)))
        kind = parts.items.type
        if not (pa.types.is_integer(kind) or pa.types.is_string(kind) or pa.types.is_boolean(kind)):
            return super().answers(**question)
        sizes, of = np.unique(parts.samples["size"], return_inverse=True)
        errors = np.where(sizes[of] < self.n, np.array([share_error(m) for m in sizes.tolist()])[of], 0.0)
        ends = np.append(0, np.cumsum(parts.samples["size"]))
        values = pa.LargeListArray.from_arrays(pa.array(ends, pa.int64()), parts.items)
        return pa.StructArray.from_arrays(
            [pa.array(self.n), values, pa.array(errors)], ["n", "values", "error"]
        )

    def _prepare(self, rows: Rows, **inputs: Any) -> None:
        if inputs:
            raise TypeError(f"Reservoir.update() takes no {', '.join(inputs)}")

    def _enter(self, groups: np.ndarray | None, bits: Bits, prepared: Any, taken: np.ndarray) -> int:
        pool, first = self._pool, len(self._pool.items)
        if groups is None:
            return int(jumps.update_one(pool.heaps, pool.slots, bits, first, taken))
        return int(jumps.update_many(pool.heaps, pool.slots, groups, bits, first, taken))
