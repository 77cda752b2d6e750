"""For each group, stretches of rows without a gap."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Self

from ...sketches.core.lazy import np, pa
from .durations import Duration, duration_text, microseconds
from .table import TableWindows
from .window import EARLIEST, window_length


@dataclass(frozen=True, slots=True)
class SessionTable(TableWindows):
    """Sessions in a table, each at least as long as the gap, `size_us`."""

    kind: ClassVar[str] = "session"
    common_edges: ClassVar[bool] = False
    merging: ClassVar[bool] = True

    def definition(self) -> dict[str, str]:
        """As plain JSON."""
        return {"kind": self.kind, "gap": duration_text(self.size_us)}

    @classmethod
    def from_definition(cls, definition: Mapping[str, str]) -> Self:
        """See `TableWindows`."""
        return cls(microseconds(definition["gap"]))

    def contain(self, starts: np.ndarray, ends: np.ndarray) -> bool:
        """See `TableWindows`."""
        return bool((ends - starts >= self.size_us).all())

    def fit_into(self, larger_us: int) -> bool:
        """See `TableWindows`: the rows decide."""
        return True

    def __str__(self) -> str:
        return f"sessions with a gap of {duration_text(self.size_us)}"


@dataclass(frozen=True, slots=True)
class Session:
    """For each group, stretches of rows, each row less than `gap_us` after the one before.

    >>> Session.of("30m").last_end(0)
    1800000000
    """

    gap_us: int

    kind: ClassVar[str] = "session"
    of_panes: ClassVar[bool] = False
    by_group: ClassVar[bool] = True
    of_time: ClassVar[bool] = True
    added_keys: ClassVar[Mapping[str, pa.DataType]] = {}

    @classmethod
    def of(cls, gap: Duration) -> Session:
        """Sessions that a pause of `gap` ends. Raises `ValueError` for an empty one."""
        return cls(window_length("session: a gap must be longer", gap))

    def definition(self) -> dict[str, str]:
        """As plain JSON."""
        return {"window": self.kind, "gap": duration_text(self.gap_us)}

    @classmethod
    def from_definition(cls, definition: Mapping[str, str]) -> Session:
        """See `StreamWindows`."""
        return cls.of(definition["gap"])

    def of_table(self) -> SessionTable:
        """See `StreamWindows`."""
        return SessionTable(self.gap_us)

    def pane_start(self, time_us: int) -> int:
        """The start of the pane that holds a time; panes are as long as the gap, and only count messages."""
        return time_us - time_us % self.gap_us

    def pane_starts(self, times_us: np.ndarray) -> np.ndarray:
        """The start of each time's pane."""
        return times_us - times_us % np.int64(self.gap_us)

    def pane_over(self, pane_us: int) -> int:
        """When no row of the pane that begins there matters any more."""
        return pane_us + 2 * self.gap_us - 1

    def whole_until(self, time_us: int) -> int:
        """A row of this time may meet any session if its partition's watermark was below this."""
        return time_us + 1

    def last_end(self, time_us: int) -> int:
        """The end of a session whose last row has this time."""
        return time_us + self.gap_us

    def last_ends(self, times_us: np.ndarray) -> np.ndarray:
        """`last_end` of each time."""
        return times_us + np.int64(self.gap_us)

    def ended_by(self, time_us: int, reached_us: int) -> int:
        """The end of a session whose last row has this time, if that is at or before `reached_us`."""
        end = time_us + self.gap_us
        return end if end <= reached_us else EARLIEST
