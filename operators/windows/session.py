"""For each group, sessions: rows without a gap."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from ...sketches.core.lazy import np, pa
from .durations import Duration, duration_text, microseconds
from .table import LargerWindows, TableWindows
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

    def fit_into(self, larger: LargerWindows) -> bool:
        """See `TableWindows`: the rows decide."""
        return True

    def __str__(self) -> str:
        return f"sessions with a gap of {duration_text(self.size_us)}"


@dataclass(frozen=True, slots=True)
class Session:
    """Sessions of each group: rows that are each at most `gap_us` after the one before.

    With `by`, rows that agree in these keys share sessions, and groups lie within them.

    >>> Session.of("30m").last_end(0)
    1800000000
    """

    gap_us: int
    by: tuple[str, ...] | None = None

    kind: ClassVar[str] = "session"
    of_panes: ClassVar[bool] = False
    by_group: ClassVar[bool] = True
    of_time: ClassVar[bool] = True
    added_keys: ClassVar[Mapping[str, pa.DataType]] = {}

    @classmethod
    def of(cls, gap: Duration, by: Sequence[str] | None = None) -> Session:
        """Sessions that end after a pause longer than `gap`. Raises `ValueError` for an empty one."""
        length = window_length("session: a gap must be longer", gap)
        return cls(length, None if by is None else tuple(by))

    def definition(self) -> dict[str, Any]:
        """As plain JSON."""
        by = {} if self.by is None else {"by": list(self.by)}
        return {"window": self.kind, "gap": duration_text(self.gap_us), **by}

    @classmethod
    def from_definition(cls, definition: Mapping[str, Any]) -> Session:
        """See `StreamWindows`."""
        return cls.of(definition["gap"], definition.get("by"))

    def of_table(self) -> SessionTable:
        """See `StreamWindows`."""
        return SessionTable(self.gap_us)

    def pane_start(self, time_us: int) -> int:
        """The start of the pane that contains a time; panes are one gap long and only count messages."""
        return time_us - time_us % self.gap_us

    def pane_starts(self, times_us: np.ndarray) -> np.ndarray:
        """The start of each time's pane."""
        gap = np.int64(self.gap_us)
        return times_us // gap * gap

    def pane_over(self, pane_us: int) -> int:
        """The time after which no row of the pane that begins at `pane_us` counts."""
        return pane_us + 2 * self.gap_us - 1

    def whole_until(self, time_us: int) -> int:
        """A row of this time may join any session if its partition's watermark was below the result."""
        return time_us

    def last_end(self, time_us: int) -> int:
        """The end of a session whose last row has this time."""
        return time_us + self.gap_us

    @property
    def longest_us(self) -> int:
        """See `StreamWindows`."""
        return self.gap_us

    def last_ends(self, times_us: np.ndarray) -> np.ndarray:
        """`last_end` of each time."""
        return times_us + np.int64(self.gap_us)

    def ended_by(self, time_us: int, reached_us: int) -> int:
        """The end of a session whose last row has this time, if that is at or before `reached_us`."""
        end = time_us + self.gap_us
        return end if end <= reached_us else EARLIEST
