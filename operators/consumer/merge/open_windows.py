"""The interface of windows that may still get rows, for mergers, whatever the kind of windows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import pyarrow as pa

from ...sketching.delta import Delta
from ...table.window_groups import WindowGroups
from ..log.merger_state import EmittedWindows, LogState


class Beginning(NamedTuple):
    """The position of the log and the state of the merger before a window's first row."""

    offset: int
    before: LogState


@dataclass(frozen=True, slots=True)
class Due:
    """Windows to emit together, the last of which ends at `end_us`: for good (`final`), or provisionally."""

    end_us: int
    final: bool
    groups: Callable[[], WindowGroups]


class OpenWindows(Protocol):
    """The windows of one partition of the table topic that may still get rows, or were not emitted.

    Windows that close for good are put aside by the delta that closes them, so that their content depends
    only on the log, not on when they are requested. `EmittedWindows` records what was emitted, and survives a
    restart.
    """

    def merge(self, delta: Delta, origin: Callable[[], Beginning], offset: int, closed_us: int) -> None:
        """Fold in a delta's rows; rows whose windows all end at or before `closed_us` are dropped."""

    def close(self, closed_us: int, emitted: EmittedWindows) -> None:
        """Put aside the windows that end at or before `closed_us`, except what was emitted."""

    def due(self, due_us: int, emitted: EmittedWindows) -> Due | None:
        """The earliest closed windows not yet emitted, closed for good or, up to `due_us`, provisionally."""

    def mark_emitted(self, due: Due, emitted: EmittedWindows, position: int) -> None:
        """Record in `emitted` that `due` was emitted, with all of the log before `position`.

        If its end is earlier than that of the windows returned, only the windows that end by then were
        emitted.
        """

    def open_tables(self, emitted: EmittedWindows, since: int = -1) -> list[pa.Table]:
        """All windows not emitted in their current form, closed or not, earliest first.

        With `since`, only those with rows of deltas from that offset on.
        """

    def origins(self) -> Iterable[Beginning]:
        """The positions from which the log must be reread to complete all of these windows."""

    def window_counts(self) -> tuple[int, int]:
        """The number of panes or windows with rows, and of their groups; for sessions, both count parts."""

    @property
    def nbytes(self) -> int:
        """Bytes of memory they take."""

    def largest(self) -> list[tuple[str, int]]:
        """The windows that take most memory: a description of each, and its bytes."""

    def spill(self) -> None:
        """Move windows from memory to disk; they are read again as they close."""
