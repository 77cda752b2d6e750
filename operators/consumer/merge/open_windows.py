"""What a merger needs of the windows that may still get rows, whatever their kind."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import pyarrow as pa

from ...sketching.delta import Delta
from ...table.window_groups import WindowGroups
from ..log.merger_state import EmittedWindows, LogState


class Beginning(NamedTuple):
    """Where the log and the merger were before a window's first row."""

    offset: int
    before: LogState


@dataclass(frozen=True, slots=True)
class Due:
    """Windows to hand over together, the last of which ends at `end_us`: for good (`final`), or for now."""

    end_us: int
    final: bool
    groups: Callable[[], WindowGroups]


class OpenWindows(Protocol):
    """The windows of one partition of the table topic that may still get rows, or were not handed over.

    Windows that close for good are put aside at the very delta that closes them, so that what they hold
    depends on the log alone, not on when they are requested. What was emitted stands in `EmittedWindows`,
    which outlives a restart.
    """

    def merge(self, delta: Delta, origin: Callable[[], Beginning], offset: int, closed_us: int) -> None:
        """Fold in a delta's rows; those whose windows all end at or before `closed_us` are left out."""

    def close(self, closed_us: int, emitted: EmittedWindows) -> None:
        """Put aside the windows that end at or before `closed_us`, except what was emitted."""

    def due(self, due_us: int, emitted: EmittedWindows) -> Due | None:
        """The earliest windows not emitted that are closed, for good or up to `due_us` for now."""

    def mark_emitted(self, due: Due, emitted: EmittedWindows, position: int) -> None:
        """Note in `emitted` that what `due` gave was emitted, with all of the log before `position`.

        With an earlier end than it gave: those of its windows only that end by then.
        """

    def open_tables(self, emitted: EmittedWindows, since: int = -1) -> list[pa.Table]:
        """All windows not emitted as they are now, closed or not, earliest first.

        Only those with rows of deltas from the offset `since` on.
        """

    def origins(self) -> Iterable[Beginning]:
        """Where the log must be read again from to have all of these windows whole."""

    def window_counts(self) -> tuple[int, int]:
        """How many stretches of time have rows, and of how many groups; of sessions, both are their parts."""

    @property
    def nbytes(self) -> int:
        """Bytes of memory they take."""

    def largest(self) -> list[tuple[str, int]]:
        """Those that take most memory: each in words, and its bytes."""

    def spill(self) -> None:
        """Move what is in memory to disk; it is read again as its windows close."""
