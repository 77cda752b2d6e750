"""Buffered rows of one side of a join, by their keys, with the time of each.

Keys are identified by 128 bits of their hashes: among a billion, two are confused with a probability below
10⁻²⁰. Rows of one key form a chain, the latest first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...sketches.core.compilation.jit import kernel
from ...sketches.core.lazy import pl
from ..grouping.arrow_columns import arrow_column
from ..grouping.group_index import hash_keys
from ..grouping.key_index import KeyIndex
from .row_store import RowStore


@kernel
def _chain(keys, first, heads, before):
    """Insert rows, numbered from `first`, into the chains of their keys."""
    for i in range(len(keys)):
        before[first + i] = heads[keys[i]]
        heads[keys[i]] = first + i


@kernel
def _count(heads, times, within, before, waiting, counts):
    """Count the partners of each row in the chain that begins at its head."""
    for i in range(len(heads)):
        row = heads[i]
        counts[i] = 0
        while row >= 0:
            if abs(waiting[row] - times[i]) <= within:
                counts[i] += 1
            row = before[row]


@kernel
def _pair(heads, times, within, before, waiting, ends, partners):
    """The partners of each row, earliest first, up to its position in `ends`."""
    for i in range(len(heads)):
        row = heads[i]
        at = ends[i]
        while row >= 0:
            if abs(waiting[row] - times[i]) <= within:
                at -= 1
                partners[at] = row
            row = before[row]


_COLUMNS: dict[str, Any] = {
    "h1": np.uint64,
    "h2": np.uint64,
    "times": np.int64,
    "reached": np.int64,
    "offsets": np.int64,
    "before": np.int64,
    "paired": np.bool_,
    "counted": np.bool_,
    "given": np.bool_,
}

_PAIRS = 1_000_000
"""The number of pairs formed at a time, unless a single message has more."""
_FEW = 1024


class KeyedRows(NamedTuple):
    """Rows with their keys' hashes, ready to be paired; `times`, `reached` and `offsets` are int64.

    `reached` is the watermark of each row's partition before that row.
    """

    frame: pl.DataFrame
    h1: np.ndarray
    h2: np.ndarray
    times: np.ndarray
    reached: np.ndarray
    offsets: np.ndarray

    def slice(self, start: int, stop: int) -> KeyedRows:
        """A slice of consecutive rows."""
        frame, *columns = self
        return KeyedRows(frame.slice(start, stop - start), *(column[start:stop] for column in columns))

    def keep(self, kept: np.ndarray) -> KeyedRows:
        """The rows that a mask selects."""
        frame, *columns = self
        return KeyedRows(frame.filter(pl.Series(kept)), *(column[kept] for column in columns))


def keyed_rows(
    frame: pl.DataFrame, on: Sequence[str], times: np.ndarray, reached: np.ndarray, offsets: np.ndarray
) -> tuple[KeyedRows, np.ndarray]:
    """The rows with a key in the columns `on`, and a mask of them: a key has no nulls."""
    keys = [frame[name] for name in on]
    h1, h2 = hash_keys([arrow_column(key) for key in keys], frame.height)
    known = np.ones(frame.height, bool)
    for key in keys:
        if key.null_count():
            known &= key.is_not_null().to_numpy()
    return KeyedRows(frame, h1, h2, times, reached, offsets), known


class JoinBuffer:
    """The rows of one partition of one side, numbered in the order of their offsets.

    In addition to the fields of `KeyedRows`, each has marks: `paired` if it has found a partner, `given` if
    it was emitted unmatched, and `counted` if its message is counted, or a dead letter; for `counted`, the
    mark of a message's first row stands for all of them.

    >>> rows = JoinBuffer({"user": pl.String}, within_us=10)
    >>> names, none = pl.DataFrame({"user": ["ann", "bob", "ann"]}), np.zeros(3, np.int64)
    >>> came, _ = keyed_rows(names, ["user"], np.array([0, 0, 7]), none, np.arange(3))
    >>> rows.append(came)
    >>> later = came.slice(0, 2)._replace(times=np.array([10, 11]))
    >>> [(mine.tolist(), theirs.tolist()) for _, _, mine, theirs in rows.partners(later)]
    [([0, 0], [0, 2])]
    """

    def __init__(self, schema: Mapping[str, Any], within_us: int) -> None:
        self._within = within_us
        self._frames = RowStore(schema)
        self._n = 0
        self._columns = {name: np.empty(128, kind) for name, kind in _COLUMNS.items()}
        self._index, self._heads = KeyIndex(), np.empty(0, np.int64)
        self._look_at = _FEW

    def __len__(self) -> int:
        return self._n

    @property
    def size(self) -> int:
        """The approximate bytes of memory."""
        arrays = (*self._columns.values(), self._heads)
        return sum(array.nbytes for array in arrays) + self._index.nbytes + self._frames.size

    def column(self, name: str) -> np.ndarray:
        """A column of all rows; marks may be set in it."""
        return self._columns[name][: self._n]

    def gather(self, rows: np.ndarray) -> pl.DataFrame:
        """The rows with these numbers."""
        return self._frames.gather(rows)

    def mark_counted(self, offsets: np.ndarray) -> np.ndarray:
        """Mark messages as counted by their distinct offsets; returns a mask of those that were not.

        A message without buffered rows counts as new.
        """
        held, counted = self.column("offsets"), self.column("counted")
        at = np.searchsorted(held, offsets)
        there = at < self._n
        there[there] = held[at[there]] == offsets[there]
        fresh = np.ones(len(offsets), bool)
        fresh[there] = ~counted[at[there]]
        counted[at[there]] = True
        return fresh

    def is_counted(self, offset: int) -> bool:
        """Whether the message at an offset is counted."""
        at = int(np.searchsorted(self.column("offsets"), offset))
        return at < self._n and self.column("offsets")[at] == offset and bool(self.column("counted")[at])

    def append(self, came: KeyedRows) -> None:
        """Buffer rows."""
        first, many = self._n, len(came.times)
        self._grow(first + many)
        self._n += many
        for name in _COLUMNS:
            if name != "before":
                self.column(name)[first:] = getattr(came, name, False)
        self._frames.append(came.frame)
        self._link(first)

    def partners(self, came: KeyedRows) -> Iterator[tuple[int, int, np.ndarray, np.ndarray]]:
        """Pairs of new rows with buffered ones, in ranges of the new rows that consist of whole messages.

        Yields each range's first row and its end, and for each pair the row's number in the range and its
        partner's number, both in order.
        """
        counts = np.empty(len(came.times), np.int64)
        keys, held = self._index.find(came.h1, came.h2), (self._columns["before"], self._columns["times"])
        heads = np.full(len(keys), -1)
        heads[keys >= 0] = self._heads[keys[keys >= 0]]
        _count(heads, came.times, self._within, *held, counts)
        ends = np.cumsum(counts)
        edges = np.flatnonzero(np.diff(came.offsets, append=-1)) + 1
        low = 0
        while low < len(counts):
            begun = int(ends[low] - counts[low])
            whole = edges[edges > low]
            fitting = int(np.searchsorted(ends[whole - 1], begun + _PAIRS, side="right"))
            high = int(whole[max(0, fitting - 1)])
            partners = np.empty(int(ends[high - 1]) - begun, np.int64)
            part = heads[low:high], came.times[low:high]
            _pair(*part, self._within, *held, ends[low:high] - begun, partners)
            yield low, high, np.repeat(np.arange(high - low), counts[low:high]), partners
            low = high

    def forget(self, reach_us: int, limit: int) -> bool:
        """Drop rows at or before a time if they are many; False if more than `limit` are left."""
        if self._n <= min(self._look_at, limit):
            return True
        kept = np.flatnonzero(self.column("times") > reach_us)
        if 4 * len(kept) <= 3 * self._n or self._n > limit:
            self._retain(kept)
        self._look_at = max(self._n + self._n // 2, _FEW)
        return self._n <= limit

    def _retain(self, rows: np.ndarray) -> None:
        self._frames.retain(rows)
        held = {name: column[rows] for name, column in self._columns.items()}
        self._n, room = len(rows), 128
        while room < self._n:
            room *= 2
        self._columns = {name: np.empty(room, kind) for name, kind in _COLUMNS.items()}
        for name, column in held.items():
            self._columns[name][: self._n] = column
        self._index, self._heads = KeyIndex(), np.empty(0, np.int64)
        self._link(0)

    def _grow(self, wanted: int) -> None:
        room = len(self._columns["times"])
        if wanted > room:
            more = max(wanted, 2 * room) - room
            for name, column in self._columns.items():
                self._columns[name] = np.concatenate([column, np.empty(more, column.dtype)])

    def _link(self, first: int) -> None:
        """Insert the rows from a number on into the chains of their keys."""
        h1, h2 = self.column("h1")[first:], self.column("h2")[first:]
        keys, _ = self._index.number(h1, h2)
        self._heads = self._index.widened(self._heads, -1)
        _chain(keys, first, self._heads, self._columns["before"])
