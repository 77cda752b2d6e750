"""Tables of one shape for many groups, allocated only for groups with enough rows to need one.

Until then, a group's rows are lines of a log shared by all groups. From time to time, at least when the log
has doubled, groups with many lines get a table, and the log is replayed into it; so a row is moved a bounded
number of times on average.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .group_numbers import grown

Replay = Callable[[np.ndarray, np.ndarray, np.ndarray, bool], int]

ROWS_AT_ONCE = 1 << 16
"""The number of rows that a family should add at a time."""


class LazyTables:
    """`slots[g]` is the index of group `g`'s table in `tables`, −1 while it has none.

    `replay(tables, slots, log, keep)` adds the lines of groups with a table to their tables. Unless `keep`
    preserves the log, it moves the other lines to the front and returns their number. A group gets a table
    after `patience` lines.
    """

    def __init__(self, shape: tuple[int, ...], dtype: Any, words: int, patience: int, replay: Replay) -> None:
        self.tables = np.zeros((0, *shape), dtype)
        self.slots = np.full(0, -1, np.int64)
        self.logged = np.zeros(0, np.int64)
        self.log = np.empty((0, words), np.int64)
        self.patience = patience
        self.lines = 0
        self.used = 0
        self.replay_at = ROWS_AT_ONCE
        self._replay = replay

    @property
    def nbytes(self) -> int:
        """Memory used."""
        return sum(array.nbytes for array in (self.tables, self.slots, self.logged, self.log))

    def resize(self, n: int) -> None:
        """Grow to at least `n` groups."""
        if n > len(self.slots):
            room = max(n, 2 * len(self.slots))
            self.slots = grown(self.slots, room, -1)
            self.logged = grown(self.logged, room)

    def make_room(self, rows: int) -> None:
        """Make room for this many more lines."""
        if self.lines + rows > len(self.log):
            self.log = grown(self.log, max(self.lines + rows, min(2 * len(self.log), 1 << 22)))

    def logged_up_to(self, lines: int) -> None:
        """Note that the log now has this many lines; allocate tables if it is time to."""
        self.lines = lines
        if lines > self.replay_at:
            self.give(np.flatnonzero(self.logged > self.patience))
            self.replay_at = max(2 * self.lines, ROWS_AT_ONCE)

    def give(self, groups: np.ndarray) -> None:
        """Allocate tables for these groups and fill them from the log."""
        groups = np.unique(groups[self.slots[groups] < 0])
        if not len(groups):
            return
        needed = self.used + len(groups)
        if needed > len(self.tables):
            self.tables = grown(self.tables, max(needed, 2 * self.used))
        self.slots[groups] = np.arange(self.used, needed)
        self.used = needed
        if self.logged[groups].any():
            self.logged[groups] = 0
            self.lines = self._replay(self.tables, self.slots, self.log[: self.lines], False)

    def table(self, group: int) -> np.ndarray:
        """Return a copy of one group's table, built from the log if it has none."""
        if self.slots[group] >= 0:
            return self.tables[self.slots[group]].copy()
        table = np.zeros((1, *self.tables.shape[1:]), self.tables.dtype)
        if self.logged[group]:
            mine = np.full(len(self.slots), -1, np.int64)
            mine[group] = 0
            self._replay(table, mine, self.log[: self.lines], True)
        return table[0]
