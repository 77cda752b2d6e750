"""A server's knowledge of a table at one moment: its windows, their progress, and what is missing.

A view is a value: a query works on one from beginning to end, whatever the log brings meanwhile.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from ...operators.table.windows import edges
from ...operators.windows.window import EARLIEST
from ...sketches.core.errors import StreamgaugeError

_versions = itertools.count(1)


def new_version() -> int:
    """A number that was never used before in this process."""
    return next(_versions)


@dataclass(frozen=True, slots=True, eq=False)
class ServedWindow:
    """One window's rows in one partition of the table topic, times in int64 microseconds.

    They are the rows from `low` up to, not including, `high` of a table that may contain other windows as
    well. `version` changes with the content, so that results can be cached under it.
    """

    partition: int
    start: int
    end: int
    batch: pa.Table
    low: int
    high: int
    open: bool = False
    version: int = field(default_factory=new_version)

    @property
    def key(self) -> tuple[int, ...]:
        """Identifies the window: only one exists for each key."""
        return self.partition, self.start, self.end

    @property
    def rows(self) -> int:
        """The number of groups."""
        return self.high - self.low

    @property
    def table(self) -> pa.Table:
        """Its rows."""
        return self.batch.slice(self.low, self.rows)

    def with_table(self, table: pa.Table) -> ServedWindow:
        """The same window with other rows."""
        return replace(self, batch=table, low=0, high=table.num_rows)


def rows_of(windows: Iterable[ServedWindow]) -> pa.Table:
    """The rows of some windows, at least one, in order.

    Adjacent rows of one table become one slice of it: a day of minutes costs the same as a single window.
    """
    runs: list[tuple[pa.Table, int, int]] = []
    for window in windows:
        if runs and runs[-1][0] is window.batch and runs[-1][2] == window.low:
            runs[-1] = window.batch, runs[-1][1], window.high
        else:
            runs.append((window.batch, window.low, window.high))
    return pa.concat_tables(batch.slice(low, high - low) for batch, low, high in runs)


def windows_of(partition: int, table: pa.Table, open: bool = False) -> Iterator[ServedWindow]:
    """The windows in a table that is ordered by window. One may contain sessions of several groups."""
    if not table.num_rows:
        return
    starts, ends = edges(table)
    changes = (starts[1:] != starts[:-1]) | (ends[1:] != ends[:-1])
    cuts = [0, *(np.flatnonzero(changes) + 1).tolist(), len(starts)]
    for low, high in itertools.pairwise(cuts):
        yield ServedWindow(partition, int(starts[low]), int(ends[low]), table, low, high, open)


@dataclass(frozen=True, slots=True)
class Gap:
    """A span of event time (int64 microseconds) whose windows are missing here, and why."""

    since: int
    until: int
    why: str


@dataclass(frozen=True, slots=True)
class Stale:
    """Since when a table is no longer followed (seconds since 1970), and why."""

    since: float
    why: str


@dataclass(frozen=True, slots=True)
class TableView:
    """A table at one moment.

    `windows` are ordered by start, end and partition. Windows that end at or before `final_us` no longer
    change. `lag` is the number of unread messages in the table topic, None if it is unknown or meaningless.
    """

    name: str
    schema: pa.Schema
    windows: tuple[ServedWindow, ...]
    version: int
    final_us: int = EARLIEST
    gaps: tuple[Gap, ...] = ()
    stale: Stale | None = None
    lag: int | None = None
    ready: bool = True


class ServedTable(Protocol):
    """A table that a server answers from, wherever its windows come from."""

    name: str

    def view(self) -> TableView:
        """The current table. Raises `NotReady` while nothing is known of it."""

    def describe(self) -> dict[str, Any]:
        """Where it comes from, as plain JSON."""

    def watch(self, changed: Any) -> Any:
        """Call `changed` from any thread after each change; returns a function that ends this."""

    def close(self) -> None:
        """Close files and connections."""


class NotReady(StreamgaugeError):
    """Nothing is known of a table yet; the message says what it waits for."""
