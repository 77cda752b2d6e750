"""What a kind of windows answers, and the times that all of them share.

A kind cuts time into **panes**, the stretches that rows are sketched by, once, however many windows a row is
part of. Windows are made of whole panes, which the merger puts together as the window closes; a tumbling
window is its own single pane. Sessions have no fixed edges: rows are sketched by stretches without a gap,
which are put together where they meet (`session.rows`), and their panes only count messages. Windows by count
have no edges in time at all.
All times are int64 microseconds since 1970 in UTC; windows include their start and not their end.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Protocol

from ...sketches.core.lazy import np, pa
from .durations import Duration, microseconds
from .table import TableWindows

LATEST = 2**62
"""After all times: when windows end that no time ends."""

EARLIEST = -(2**62)
"""Before all times: what a partition knows before its first row, with room to subtract a delay from."""

YEAR_1, YEAR_10000 = -62_135_596_800_000_000, 253_402_300_800_000_000
"""Event times from the first up to, not including, the second are dates that every engine knows."""


class StreamWindows(Protocol):
    """The windows that a row is part of: what a stream's definition, a sketcher and a merger ask of a kind.

    Each is a frozen dataclass, so that streams pickle and their windows can be compared. What is kept of rows
    and of open windows is that of panes (`paned.Paned`, `sketching.panes`, `consumer.merge.paned_windows`),
    unless the kind has a line of its own there (`window_rows`, `window_kinds`).
    """

    kind: ClassVar[str]
    """Its name in definitions."""
    of_panes: ClassVar[bool]
    """Whether windows are the panes in them put together, whatever the group, so that Spark runs it."""
    by_group: ClassVar[bool]
    """Whether a group's windows lie where it has rows: with one key more, they lie elsewhere."""
    of_time: ClassVar[bool]
    """Whether time ends windows; rows do otherwise, and none of them is late."""

    @property
    def by(self) -> tuple[str, ...] | None:
        """Keys whose rows have their windows together; None: each group has its own."""

    @property
    def added_keys(self) -> Mapping[str, pa.DataType]:
        """Keys of the table behind the stream's own, which tell windows of one group apart."""

    def definition(self) -> dict[str, Any]:
        """As plain JSON: its kind as ``window``, then its lengths."""

    @classmethod
    def from_definition(cls, definition: Mapping[str, Any]) -> StreamWindows:
        """The windows that `definition` describes. Raises `KeyError` or `ValueError` if it doesn't."""

    def of_table(self) -> TableWindows:
        """The windows of the stream's table."""

    def pane_start(self, time_us: int) -> int:
        """The start of the pane that holds a time."""

    def pane_starts(self, times_us: np.ndarray) -> np.ndarray:
        """The start of each time's pane."""

    def pane_over(self, pane_us: int) -> int:
        """When no row of the pane that begins there matters any more."""

    def whole_until(self, time_us: int) -> int:
        """A row of this time is in all of its windows if its partition's watermark was below this."""

    def last_end(self, time_us: int) -> int:
        """The end of the last window that may hold a time: a row matters until then."""

    @property
    def longest_us(self) -> int:
        """How long a row may matter at most: `last_end` is no further from its time."""

    def last_ends(self, times_us: np.ndarray) -> np.ndarray:
        """`last_end` of each time."""

    def ended_by(self, time_us: int, reached_us: int) -> int:
        """The end of the last window with this time that ends by another one; `EARLIEST` if none does."""


def window_length(rule: str, length: Duration) -> int:
    """A length in microseconds. Raises `ValueError`, which begins with `rule`, for an empty one."""
    length_us = microseconds(length)
    if length_us < 1:
        raise ValueError(f"{rule} than {length!r}")
    return length_us
