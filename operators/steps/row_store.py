"""Rows in memory, numbered in order of arrival, for frequent appends and look-ups.

They are stored in frames whose sizes at least halve from one to the next, so that an append copies little,
and a look-up gathers from few frames.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...sketches.core.lazy import pl


class RowStore:
    """Rows with these columns.

    >>> frames = RowStore({"country": pl.String})
    >>> frames.append(pl.DataFrame({"country": ["FI", "NO"]}))
    >>> frames.append(pl.DataFrame({"country": ["SE"]}))
    >>> frames.gather(np.array([2, -1, 0]))["country"].to_list(), len(frames)
    (['SE', None, 'FI'], 3)
    """

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._schema = pl.Schema(schema)
        self._frames: list[pl.DataFrame] = []
        self._height = 0

    def __len__(self) -> int:
        return self._height

    @property
    def size(self) -> int:
        """The approximate bytes of memory."""
        return sum(int(frame.estimated_size()) for frame in self._frames)

    def append(self, rows: pl.DataFrame) -> None:
        """Add rows, which get the next numbers."""
        if not rows.height:
            return
        self._frames.append(rows.select(self._schema.names()))
        self._height += rows.height
        while len(self._frames) > 1 and self._frames[-2].height < 2 * self._frames[-1].height:
            last = self._frames.pop()
            self._frames[-1] = pl.concat([self._frames[-1], last], rechunk=True)

    def gather(self, numbers: np.ndarray) -> pl.DataFrame:
        """The rows with these numbers; nulls for -1."""
        if not self._frames or not len(numbers):
            return self._schema.to_frame().clear(len(numbers))
        wanted = pl.Series(numbers)
        if numbers.min() < 0:
            wanted = wanted.set(wanted < 0, None)
        return pl.concat(self._frames, rechunk=False).select(pl.all().gather(wanted))

    def retain(self, numbers: np.ndarray) -> None:
        """Drop all rows except these, which are renumbered from 0 in this order."""
        kept = self.gather(numbers)
        self._frames, self._height = ([kept.rechunk()] if len(numbers) else []), len(numbers)
