"""For each group, windows that end with each step in which it has a row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .durations import Duration, duration_text
from .paned import Paned, check_panes, check_steps
from .table import TableWindows
from .window import window_length


@dataclass(frozen=True, slots=True)
class SlidingTable(TableWindows):
    """Windows in a table that end where a group has rows: only the rows show which windows are disjoint."""

    kind: ClassVar[str] = "sliding"
    apart: ClassVar[bool] = True
    rolls_up: ClassVar[bool] = False

    def __str__(self) -> str:
        return f"windows of {duration_text(self.size_us)} that end where a group has rows"


@dataclass(frozen=True, slots=True)
class Sliding(Paned):
    """For each group, windows that end with each step of `every_us` in which it has a row.

    >>> Sliding.of("1m", step="1s").definition()
    {'window': 'sliding', 'size': '1m', 'step': '1s'}
    """

    kind: ClassVar[str] = "sliding"
    step: ClassVar[str] = "step"
    by_group: ClassVar[bool] = True

    @classmethod
    def of(cls, size: Duration, step: Duration) -> Sliding:
        """Windows of these lengths. Raises `ValueError` if invalid, or if `step` doesn't divide `size`."""
        window = cls(
            window_length("sliding: a window must be longer", size),
            window_length("sliding: step= must be longer", step),
        )
        check_steps(window, "a step")
        check_panes(window, "step=")
        return window

    def of_table(self) -> SlidingTable:
        """See `StreamWindows`."""
        return SlidingTable(self.size_us, self.every_us, self.size_us % self.every_us)
