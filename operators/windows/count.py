"""For each group, windows of a fixed number of its rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Self

from ...sketches.core.lazy import np, pa
from .table import LargerWindows, TableWindows
from .window import EARLIEST, LATEST

WINDOW_ID = "window_id"
"""The key that distinguishes count windows, after the stream's own keys."""


@dataclass(frozen=True, slots=True)
class ByCountTable(TableWindows):
    """Count windows in a table: `size_us` is a number of rows."""

    kind: ClassVar[str] = "count"
    common_edges: ClassVar[bool] = False

    def definition(self) -> dict[str, str]:
        """As plain JSON."""
        return {"kind": self.kind, "rows": str(self.size_us)}

    @classmethod
    def from_definition(cls, definition: Mapping[str, str]) -> Self:
        """See `TableWindows`."""
        return cls(int(definition["rows"]))

    def contain(self, starts: np.ndarray, ends: np.ndarray) -> bool:
        """See `TableWindows`: they may lie anywhere."""
        return True

    def fit_into(self, larger: LargerWindows) -> bool:
        """See `TableWindows`: the rows decide."""
        return True

    def __str__(self) -> str:
        return f"windows of {self.size_us} rows"


@dataclass(frozen=True, slots=True)
class ByCount:
    """For each group, windows of a fixed number of its rows, in the order of its partition.

    They have no edges in time: no row is late for them, and a single pane counts all messages.

    >>> ByCount.of(100).definition()
    {'window': 'count', 'size': '100 rows'}
    """

    rows: int

    kind: ClassVar[str] = "count"
    of_panes: ClassVar[bool] = False
    by_group: ClassVar[bool] = True
    of_time: ClassVar[bool] = False
    by: ClassVar[tuple[str, ...] | None] = None

    @property
    def added_keys(self) -> Mapping[str, pa.DataType]:
        """See `StreamWindows`."""
        return {WINDOW_ID: pa.string()}

    @classmethod
    def of(cls, rows: int) -> ByCount:
        """Windows of so many rows. Raises `TypeError` unless it is a whole number, `ValueError` below 1."""
        if type(rows) is not int:
            raise TypeError(f"count_window: rows must be an integer, as in .count_window(100), got {rows!r}")
        if rows < 1:
            raise ValueError(f"count_window: rows must be an integer ≥ 1, got {rows}")
        return cls(rows)

    def definition(self) -> dict[str, str]:
        """As plain JSON."""
        return {"window": self.kind, "size": f"{self.rows} rows"}

    @classmethod
    def from_definition(cls, definition: Mapping[str, str]) -> ByCount:
        """See `StreamWindows`."""
        return cls.of(int(definition["size"].removesuffix(" rows")))

    def of_table(self) -> ByCountTable:
        """See `StreamWindows`."""
        return ByCountTable(self.rows)

    def pane_start(self, time_us: int) -> int:
        """The start of the only pane."""
        return 0

    def pane_starts(self, times_us: np.ndarray) -> np.ndarray:
        """The start of each time's pane."""
        return np.zeros(len(times_us), np.int64)

    def pane_over(self, pane_us: int) -> int:
        """The time after which no row of the pane counts: never."""
        return LATEST

    def whole_until(self, time_us: int) -> int:
        """A row is on time whatever its partition's watermark was."""
        return LATEST

    def last_end(self, time_us: int) -> int:
        """A row counts for ever."""
        return LATEST

    @property
    def longest_us(self) -> int:
        """See `StreamWindows`."""
        return LATEST

    def last_ends(self, times_us: np.ndarray) -> np.ndarray:
        """`last_end` of each time."""
        return np.full(len(times_us), LATEST)

    def ended_by(self, time_us: int, reached_us: int) -> int:
        """No window ends by time."""
        return EARLIEST
