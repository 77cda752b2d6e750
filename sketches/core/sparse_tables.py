"""Tables of one shape for many groups, given only to groups that have seen enough to need one.

Until then a group's rows are lines of a log common to all. Now and then, at least when the log has doubled,
groups with many lines get a table, and the log is replayed into it; so a row is moved a bounded number of
times on average.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .group_numbers import grown

Replay = Callable[[np.ndarray, np.ndarray, np.ndarray, bool], int]

ROWS_AT_ONCE = 1 << 16
"""Rows that a family should add at a time."""


class LazyTables:
    """`slots[g]` is the place of group `g`'s table in `tables`, −1 while it has none.

    `replay(tables, slots, log, keep)` adds the lines of groups that have a table to it. Unless the log is to
    `keep` as it is, it moves the other lines to the front and returns how many those are. A group gets a
    table after `patience` lines.
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
        """Room for so many more lines."""
        if self.lines + rows > len(self.log):
            self.log = grown(self.log, max(self.lines + rows, min(2 * len(self.log), 1 << 22)))

    def logged_up_to(self, lines: int) -> None:
        """After rows were added: the log has so many lines; give tables where it is time to."""
        self.lines = lines
        if lines > self.replay_at:
            self.give(np.flatnonzero(self.logged > self.patience))
            self.replay_at = max(2 * self.lines, ROWS_AT_ONCE)

    def give(self, groups: np.ndarray) -> None:
        """Tables for these groups, filled from the log."""
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
        """A copy of one group's table, made up from the log where it has none."""
        if self.slots[group] >= 0:
            return self.tables[self.slots[group]].copy()
        table = np.zeros((1, *self.tables.shape[1:]), self.tables.dtype)
        if self.logged[group]:
            mine = np.full(len(self.slots), -1, np.int64)
            mine[group] = 0
            self._replay(table, mine, self.log[: self.lines], True)
        return table[0]
