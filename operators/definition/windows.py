"""Which stretch of event time a row falls into.

A window kind cuts time into **panes**: the stretches that rows are sketched by. Windows are made of whole
panes, merged when a window is complete; a tumbling window is its own single pane.
All times are int64 microseconds since 1970 in UTC; windows include their start and not their end.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .durations import microseconds, written

EARLIEST = -(2**62)
"""Before all times: what a partition knows before its first row, with room to subtract a delay from."""


@dataclass(frozen=True, slots=True)
class Tumbling:
    """Windows of one length, side by side, aligned to 1970-01-01 00:00 UTC.

    >>> hours = Tumbling.every("1h")
    >>> hours.pane_starts(np.array([-1, 0, 3_600_000_001])).tolist()
    [-3600000000, 0, 3600000000]
    """

    size_us: int

    @classmethod
    def every(cls, size: str) -> Tumbling:
        """Windows of `size`, such as ``"1m"``. Raises `ValueError` for an empty one."""
        size_us = microseconds(size)
        if size_us < 1:
            raise ValueError(f"a window must be longer than {size!r}")
        return cls(size_us)

    @property
    def pane_us(self) -> int:
        """The length of a pane."""
        return self.size_us

    def pane_start(self, time_us: int) -> int:
        """The start of the pane that holds a time."""
        return time_us - time_us % self.pane_us

    def pane_starts(self, times_us: np.ndarray) -> np.ndarray:
        """The start of each time's pane."""
        return times_us - times_us % np.int64(self.pane_us)

    def last_end(self, pane_start_us: int) -> int:
        """The end of the last window that a pane is part of: a row in the pane matters until then."""
        return pane_start_us + self.size_us

    def last_ends(self, times_us: np.ndarray) -> np.ndarray:
        """`last_end` of each time's pane."""
        return self.pane_starts(times_us) + np.int64(self.size_us)

    def definition(self) -> dict[str, str]:
        """As plain JSON."""
        return {"window": "tumbling", "size": written(self.size_us)}


Window = Tumbling
