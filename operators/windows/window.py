"""The interface of a kind of windows, and the times that all of them share.

A kind divides time into **panes**, the intervals by which rows are sketched, once, however many windows a row
is in. Windows consist of whole panes, which the merger combines as the window closes; a tumbling window is a
single pane. Sessions have no fixed edges: rows are sketched by intervals without a gap, which are merged
where they meet (`sketching.session_rows`), and their panes only count messages. Count windows have no edges
in time at all.

All times are int64 microseconds since 1970 in UTC; windows include their start and not their end.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Protocol

from ...sketches.core.lazy import np, pa
from .durations import Duration, microseconds
from .table import TableWindows

LATEST = 2**62
"""After all times: the end of windows that time never ends."""

EARLIEST = -(2**62)
"""Before all times: a partition's time before its first row, with room to subtract a delay."""

YEAR_1, YEAR_10000 = -62_135_596_800_000_000, 253_402_300_800_000_000
"""Event times from the first up to, not including, the second are dates that every engine can represent."""


class StreamWindows(Protocol):
    """The windows that a row belongs to: the interface for a stream's definition, a sketcher and a merger.

    Each kind is a frozen dataclass, so that streams can be pickled and their windows compared. Rows and open
    windows are stored as for panes (`paned.Paned`, `sketching.panes`, `consumer.merge.paned_windows`), unless
    the kind has an entry of its own there (`window_rows`, `window_kinds`).
    """

    kind: ClassVar[str]
    """Its name in definitions."""
    of_panes: ClassVar[bool]
    """Whether windows are combinations of panes, the same for all groups, so that Spark can run them."""
    by_group: ClassVar[bool]
    """Whether a group's windows depend on its rows: with an additional key, they differ."""
    of_time: ClassVar[bool]
    """Whether time ends windows; otherwise rows do, and none of them is late."""

    @property
    def by(self) -> tuple[str, ...] | None:
        """The keys whose rows share windows; None: each group has its own."""

    @property
    def added_keys(self) -> Mapping[str, pa.DataType]:
        """Keys of the table after the stream's own, which distinguish windows of one group."""

    def definition(self) -> dict[str, Any]:
        """As plain JSON: its kind as ``window``, then its lengths."""

    @classmethod
    def from_definition(cls, definition: Mapping[str, Any]) -> StreamWindows:
        """The windows that `definition` describes. Raises `KeyError` or `ValueError` if it is invalid."""

    def of_table(self) -> TableWindows:
        """The windows of the stream's table."""

    def pane_start(self, time_us: int) -> int:
        """The start of the pane that contains a time."""

    def pane_starts(self, times_us: np.ndarray) -> np.ndarray:
        """The start of each time's pane."""

    def pane_over(self, pane_us: int) -> int:
        """The time after which no row of the pane that begins at `pane_us` counts."""

    def whole_until(self, time_us: int) -> int:
        """A row of this time counts in all its windows if its partition's watermark was below the result."""

    def last_end(self, time_us: int) -> int:
        """The end of the last window that may contain a time: a row counts until then."""

    @property
    def longest_us(self) -> int:
        """The longest time for which a row may count: `last_end` is no further from its time."""

    def last_ends(self, times_us: np.ndarray) -> np.ndarray:
        """`last_end` of each time."""

    def ended_by(self, time_us: int, reached_us: int) -> int:
        """The end of the last window with this time that ends by `reached_us`; `EARLIEST` if none does."""


def window_length(rule: str, length: Duration) -> int:
    """A length in microseconds. Raises `ValueError`, which begins with `rule`, for an empty one."""
    length_us = microseconds(length)
    if length_us < 1:
        raise ValueError(f"{rule} than {length!r}")
    return length_us
