"""How many rows each group has in its open count window, and where that window began.

A worker knows this for its partitions' groups. A worker that takes a partition over reads it from the table
topic, whose deltas record it for each group with rows in them (`worker.count_window_recovery`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..grouping.key_index import KeyIndex

_FEW = 128
_ROWS_OF_MESSAGE = 1 << 20


class OpenCounts(NamedTuple):
    """Groups, by both halves of their hashes (uint64); their open windows' `rows`, `first_rows` (int64)."""

    h1: np.ndarray
    h2: np.ndarray
    rows: np.ndarray
    first_rows: np.ndarray


class Counts:
    """The groups of one partition that have an open window.

    >>> counts, one = Counts(), np.ones(1, np.uint64)
    >>> counts.note(OpenCounts(one, one, np.array([7]), np.array([42])))
    >>> at = counts.number(one, one)
    >>> int(counts.rows[at][0]), int(counts.first_rows[at][0])
    (7, 42)
    """

    def __init__(self) -> None:
        self._index = KeyIndex()
        self.rows, self.first_rows = np.empty(0, np.int64), np.empty(0, np.int64)

    def __len__(self) -> int:
        """The number of groups, including those between two windows."""
        return len(self._index)

    @property
    def size(self) -> int:
        """The approximate bytes of memory."""
        return self._index.nbytes + self.rows.nbytes + self.first_rows.nbytes

    def number(self, h1: np.ndarray, h2: np.ndarray) -> np.ndarray:
        """The number of each row's group, valid until `forget`; new groups have no rows."""
        numbers, _ = self._index.number(h1, h2)
        self.rows, self.first_rows = (
            self._index.widened(column, 0) for column in (self.rows, self.first_rows)
        )
        return numbers

    def note(self, known: OpenCounts) -> None:
        """Set the state of some groups; for repeated groups the last one counts."""
        at = self.number(known.h1, known.h2)
        self.rows[at], self.first_rows[at] = known.rows, known.first_rows

    def known(self) -> OpenCounts:
        """The whole state."""
        n = len(self)
        return OpenCounts(*self._index.hashes, self.rows[:n], self.first_rows[:n])

    def forget(self) -> None:
        """Drop groups between two windows, if they are many; the others are renumbered."""
        kept = np.flatnonzero(self.rows[: len(self)])
        if 2 * len(kept) < len(self) and len(self) > _FEW:
            self._index.keep(kept)
            self.rows, self.first_rows = self.rows[kept], self.first_rows[kept]


def places_of(offsets: np.ndarray) -> np.ndarray:
    """A number for each row, from its message's offset and its position among the rows of that message.

    The numbers in a partition are unique, because no message has more than a million rows of one group.

    >>> row_text(int(places_of(np.array([7, 7, 9]))[1]))
    '7.1'
    """
    at = np.arange(len(offsets))
    first = np.concatenate([[True], offsets[1:] != offsets[:-1]])[: len(offsets)]
    nth = at - np.maximum.accumulate(np.where(first, at, 0))
    return offsets * np.int64(_ROWS_OF_MESSAGE) + nth % _ROWS_OF_MESSAGE


def row_text(place: int) -> str:
    """A row's number as text: the offset and, from the second row of a message on, its position there."""
    offset, nth = divmod(place, _ROWS_OF_MESSAGE)
    return f"{offset}.{nth}" if nth else str(offset)
