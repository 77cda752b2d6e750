"""Rows that belong together become one row; a row that belongs to no other stays as it is."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from ..definition.aggregate import Aggregate


class RowSets:
    """Sets of rows, to merge the columns of a table by; row i is in set `numbers[i]`, and none is empty.

    Copying a sketch's bytes takes a fraction of the time of merging them into an empty sketch, which changes
    nothing, and most sets have only one row: most sessions are in one delta.

    >>> from ..definition.aggregates import count
    >>> sets = RowSets(np.array([1, 0, 1]))
    >>> sets.firsts.tolist(), sets.merge(count(), pa.array([1, 10, 100])).to_pylist()
    ([1, 0], [10, 101])
    """

    def __init__(self, numbers: np.ndarray) -> None:
        several = np.bincount(numbers) > 1
        self.firsts = np.empty(len(several), np.int64)
        """The first row of each set."""
        self.firsts[numbers[::-1]] = np.arange(len(numbers))[::-1]  # of several rows, the last one is stored
        rank = np.cumsum(several) - 1
        self._several = int(np.count_nonzero(several))
        self._rows = np.flatnonzero(several[numbers])
        self._sets = rank[numbers[self._rows]]
        self._order = np.where(several, len(numbers) + rank, self.firsts)

    def __len__(self) -> int:
        return len(self.firsts)

    def merge(self, aggregate: Aggregate, column: pa.Array | pa.ChunkedArray, seed: int = 0) -> pa.Array:
        """An aggregate's column with one row for each set. Raises `SketchError` for bytes that it must merge
        and that are no sketches."""
        parts = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
        if self._several:
            groups = aggregate.groups(self._several, seed=seed)
            groups.merge(self._sets, column.take(pa.array(self._rows)))
            merged = groups.to_arrow()
            parts = [*parts, merged.cast(column.type) if merged.type != column.type else merged]
        return pa.concat_arrays(parts).take(pa.array(self._order))
