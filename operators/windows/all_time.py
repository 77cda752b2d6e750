"""The only window of a bounded input without windows: it contains all rows, whatever their times."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from ...sketches.core.lazy import np
from .paned import Paned
from .table import ALL_TIME, AllTime
from .window import EARLIEST


@dataclass(frozen=True, slots=True)
class WholeInput(Paned):
    """One window for all rows of frames and files; engines that follow a topic don't use it.

    >>> WholeInput().pane_start(0) == WholeInput().pane_start(10**15)
    True
    """

    size_us: int = ALL_TIME[1] - ALL_TIME[0]
    every_us: int = ALL_TIME[1] - ALL_TIME[0]

    kind: ClassVar[str] = "all"
    of_panes: ClassVar[bool] = True

    def definition(self) -> dict[str, str]:
        """As plain JSON."""
        return {"window": self.kind}

    @classmethod
    def from_definition(cls, definition: Mapping[str, str]) -> WholeInput:
        """See `StreamWindows`."""
        return cls()

    def of_table(self) -> AllTime:
        """See `StreamWindows`."""
        return AllTime()

    def pane_start(self, time_us: int) -> int:
        """See `StreamWindows`."""
        return ALL_TIME[0]

    def pane_starts(self, times_us: np.ndarray) -> np.ndarray:
        """See `StreamWindows`."""
        return np.full(len(times_us), ALL_TIME[0], np.int64)

    def first_end(self, time_us: int) -> int:
        """See `Paned`: no window follows, so a later end is one that no time reaches."""
        return ALL_TIME[1] if time_us < ALL_TIME[1] else ALL_TIME[1] + self.size_us

    def first_ends(self, times_us: np.ndarray) -> np.ndarray:
        """See `Paned`."""
        return np.full(len(times_us), ALL_TIME[1], np.int64)

    def last_end(self, time_us: int) -> int:
        """See `StreamWindows`."""
        return ALL_TIME[1]

    def last_ends(self, times_us: np.ndarray) -> np.ndarray:
        """See `StreamWindows`."""
        return self.first_ends(times_us)

    def ended_by(self, time_us: int, reached_us: int) -> int:
        """See `StreamWindows`: it never ends."""
        return EARLIEST
