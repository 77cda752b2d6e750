"""The origin of rows, which distinguishes rows with the same event time."""

from __future__ import annotations

from dataclasses import dataclass

from ...sketches.core.lazy import np


@dataclass(frozen=True, slots=True)
class RowOrigin:
    """The origin of rows: their partition, and the offset of each (int64)."""

    partition: int
    offsets: np.ndarray

    def of(self, rows: np.ndarray) -> RowOrigin:
        """The origin of some of the rows, by their numbers."""
        return RowOrigin(self.partition, self.offsets[rows])
