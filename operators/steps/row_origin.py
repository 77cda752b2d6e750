"""Where rows come from, which tells rows of one event time apart."""

from __future__ import annotations

from dataclasses import dataclass

from ...sketches.core.lazy import np


@dataclass(frozen=True, slots=True)
class RowOrigin:
    """Where rows come from: their partition, and the offset of each (int64)."""

    partition: int
    offsets: np.ndarray

    def of(self, rows: np.ndarray) -> RowOrigin:
        """That of some of the rows, by their numbers."""
        return RowOrigin(self.partition, self.offsets[rows])
