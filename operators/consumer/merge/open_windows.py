"""What a merger asks of the windows that may still get rows, whatever their kind."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import pyarrow as pa

from ...sketching.delta import Delta
from ..log.state import LogState, Told


class Beginning(NamedTuple):
    """Where the log and the merger were before a window's first row."""

    offset: int
    before: LogState


@dataclass(frozen=True, slots=True)
class Due:
    """Windows to hand over together, which end at `end_us`: for good (`final`), or for now."""

    end_us: int
    final: bool
    table: Callable[[], pa.Table]


class OpenWindows(Protocol):
    """The windows of one partition of the table topic that may still get rows, or were not handed over.

    Windows that close for good are put aside at the very delta that closes them, so that what they hold
    depends on the log alone, not on when anybody asks for them. What was handed over stands in `Told`, which
    outlives a restart.
    """

    def take(self, delta: Delta, origin: Callable[[], Beginning], offset: int, closed_us: int) -> None:
        """Fold in a delta's rows; those of which all windows end at or before `closed_us` are left out."""

    def close(self, closed_us: int, told: Told) -> None:
        """Put aside the windows that end at or before `closed_us`, except what is told."""

    def due(self, due_us: int, told: Told) -> Due | None:
        """The earliest windows not told that are closed, for good or up to `due_us` for now."""

    def note(self, due: Due, told: Told, position: int) -> None:
        """Note in `told` that what `due` gave was handed over, with all of the log before `position`."""

    def filling(self, told: Told, since: int = -1) -> list[pa.Table]:
        """All windows not told as they are now, closed or not, earliest first.

        Only those with rows of deltas from the offset `since` on.
        """

    def origins(self) -> Iterable[Beginning]:
        """Where the log must be read again from to have all of these windows whole."""

    def held(self) -> tuple[int, int]:
        """How many stretches of time have rows, and of how many groups; of sessions, both are their parts."""

    @property
    def nbytes(self) -> int:
        """Bytes of memory they take."""

    def largest(self) -> list[tuple[str, int]]:
        """Those that take most memory: each in words, and its bytes."""

    def spill(self) -> None:
        """Move what is in memory to disk; it is read again as its windows close."""
