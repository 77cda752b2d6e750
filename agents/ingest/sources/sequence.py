"""Ascending numbers, for trials."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..batch import Batch, Positions
from ..component import Place

_PART = "sequence"


@dataclass(frozen=True, kw_only=True)
class Sequence:
    """The numbers from 0 to `total` − 1, one per message, `batch` at a time; endless if `total` is 0.

    A restart continues after the last delivered number.
    """

    total: int = 0
    batch: int = 1_000

    def __post_init__(self) -> None:
        if self.total < 0:
            raise ValueError(f"total must be an integer ≥ 0, got {self.total}")
        if self.batch < 1:
            raise ValueError(f"batch must be an integer ≥ 1, got {self.batch}")

    def open(self, place: Place, positions: Positions) -> SequenceSource:
        """See `SourceSettings`."""
        return SequenceSource(self, int((positions.get(_PART) or {}).get("next", 0)))


class SequenceSource:
    """A `Source` of numbers."""

    waited_for = False

    def __init__(self, settings: Sequence, first: int) -> None:
        self._settings, self._next = settings, first
        self.finite = settings.total > 0

    @property
    def ended(self) -> bool:
        """See `Source`: an endless one is never read to its end."""
        return self.finite and self._next >= self._settings.total

    def read(self, seconds: float) -> Batch | None:
        """See `Source`."""
        end = self._next + self._settings.batch
        if self.finite:
            end = min(end, self._settings.total)
        if end <= self._next:
            return None
        values = [b"%d" % number for number in np.arange(self._next, end).tolist()]
        self._next = end
        return Batch.of(values, stream=_PART, positions={_PART: {"next": end}})

    def close(self) -> None:
        """See `Source`."""
