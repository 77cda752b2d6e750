"""Rows of one side of a join that wait for partners: by their keys, with the time of each.

Keys are found by 128 bits of their hashes: among a billion, two are confused with a probability below 10⁻²⁰.
Rows of one key are a chain, the latest first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from ...sketches.core.jit import kernel
from ..sketching.grouping import hash_keys, refill
from .frames import Frames

_OLDEST = pl.CompatLevel.oldest()


@kernel
def _chain(h1, h2, first, start, slots, known1, known2, heads, n, before):
    """Put rows, the first of which has the number `first`, into chains; stops early at half full."""
    mask = np.uint64(len(slots) - 1)
    limit = len(slots) // 2
    for i in range(start, len(h1)):
        at = h1[i] & mask
        while True:
            found = slots[at]
            if found < 0:
                if n >= limit:
                    return i, n
                slots[at] = n
                known1[n], known2[n] = h1[i], h2[i]
                before[first + i] = -1
                heads[n] = first + i
                n += 1
                break
            if known1[found] == h1[i] and known2[found] == h2[i]:
                before[first + i] = heads[found]
                heads[found] = first + i
                break
            at = (at + np.uint64(1)) & mask
    return len(h1), n


@kernel
def _head(h1, h2, slots, known1, known2, heads):
    at = h1 & np.uint64(len(slots) - 1)
    while slots[at] >= 0:
        found = slots[at]
        if known1[found] == h1 and known2[found] == h2:
            return heads[found]
        at = (at + np.uint64(1)) & np.uint64(len(slots) - 1)
    return np.int64(-1)


@kernel
def _count(h1, h2, times, within, slots, known1, known2, heads, before, waiting, counts):
    """How many partners each row has."""
    for i in range(len(h1)):
        row = _head(h1[i], h2[i], slots, known1, known2, heads)
        counts[i] = 0
        while row >= 0:
            if abs(waiting[row] - times[i]) <= within:
                counts[i] += 1
            row = before[row]


@kernel
def _pair(h1, h2, times, within, slots, known1, known2, heads, before, waiting, ends, partners):
    """The partners of each row, earliest first, up to its place in `ends`."""
    for i in range(len(h1)):
        row = _head(h1[i], h2[i], slots, known1, known2, heads)
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
    "settled": np.bool_,
    "given": np.bool_,
}

_PAIRS = 1_000_000
"""Pairs that are made at a time, unless one message has more."""
_FEW = 1024


class Arrived(NamedTuple):
    """Rows with their keys' hashes, ready to be paired; `times`, `reached` and `offsets` are int64.

    `reached` is the watermark of each row's partition before it.
    """

    frame: pl.DataFrame
    h1: np.ndarray
    h2: np.ndarray
    times: np.ndarray
    reached: np.ndarray
    offsets: np.ndarray

    def slice(self, start: int, stop: int) -> Arrived:
        """Consecutive ones of them."""
        frame, *columns = self
        return Arrived(frame.slice(start, stop - start), *(column[start:stop] for column in columns))

    def keep(self, kept: np.ndarray) -> Arrived:
        """Those that a mask selects."""
        frame, *columns = self
        return Arrived(frame.filter(pl.Series(kept)), *(column[kept] for column in columns))


def arrived(
    frame: pl.DataFrame, on: Sequence[str], times: np.ndarray, reached: np.ndarray, offsets: np.ndarray
) -> tuple[Arrived, np.ndarray]:
    """Rows by their keys in the columns `on`, and a mask of those that have one: no null in any of them."""
    keys = [frame[name] for name in on]
    h1, h2 = hash_keys([key.to_arrow(compat_level=_OLDEST) for key in keys], frame.height)
    known = np.ones(frame.height, bool)
    for key in keys:
        if key.null_count():
            known &= key.is_not_null().to_numpy()
    return Arrived(frame, h1, h2, times, reached, offsets), known


class WaitingRows:
    """The rows of one partition of one side, numbered in the order of their offsets.

    Beside what `Arrived` has, each has a mark in `paired` if it has found a partner, in `given` if it was
    given without one, and in `settled` if its message is counted, or a dead letter; there the mark of a
    message's first row stands for all of them.

    >>> rows = WaitingRows({"user": pl.String}, within_us=10)
    >>> names, none = pl.DataFrame({"user": ["ann", "bob", "ann"]}), np.zeros(3, np.int64)
    >>> came, _ = arrived(names, ["user"], np.array([0, 0, 7]), none, np.arange(3))
    >>> rows.append(came)
    >>> later = came.slice(0, 2)._replace(times=np.array([10, 11]))
    >>> [(mine.tolist(), theirs.tolist()) for _, _, mine, theirs in rows.partners(later)]
    [([0, 0], [0, 2])]
    """

    def __init__(self, schema: Mapping[str, Any], within_us: int) -> None:
        self._within = within_us
        self._frames = Frames(schema)
        self._n = self._keys = 0
        self._columns = {name: np.empty(128, kind) for name, kind in _COLUMNS.items()}
        self._room(128)
        self._look_at = _FEW

    def __len__(self) -> int:
        return self._n

    @property
    def size(self) -> int:
        """Bytes of memory, about."""
        arrays = (*self._columns.values(), *self._index)
        return sum(array.nbytes for array in arrays) + self._frames.size

    def column(self, name: str) -> np.ndarray:
        """One of the columns of all rows; marks may be set in it."""
        return self._columns[name][: self._n]

    def take(self, rows: np.ndarray) -> pl.DataFrame:
        """The rows of these numbers."""
        return self._frames.take(rows)

    def settle(self, offsets: np.ndarray) -> np.ndarray:
        """Settle messages by their offsets, each named once; a mask of those that were not settled.

        A message of which no row waits is taken to be new.
        """
        held, settled = self.column("offsets"), self.column("settled")
        at = np.searchsorted(held, offsets)
        there = at < self._n
        there[there] = held[at[there]] == offsets[there]
        fresh = np.ones(len(offsets), bool)
        fresh[there] = ~settled[at[there]]
        settled[at[there]] = True
        return fresh

    def is_settled(self, offset: int) -> bool:
        """Whether the message of an offset is settled."""
        at = int(np.searchsorted(self.column("offsets"), offset))
        return at < self._n and self.column("offsets")[at] == offset and bool(self.column("settled")[at])

    def append(self, came: Arrived) -> None:
        """Let rows wait."""
        first, many = self._n, len(came.times)
        self._grow(first + many)
        self._n += many
        for name in _COLUMNS:
            if name != "before":
                self.column(name)[first:] = getattr(came, name, False)
        self._frames.append(came.frame)
        self._link(first)

    def partners(self, came: Arrived) -> Iterator[tuple[int, int, np.ndarray, np.ndarray]]:
        """Pairs of rows that came with those that wait: stretch by stretch of them, whole messages each.

        Gives the stretch's first and last row, the latter not included, and for each pair the number of the
        row in the stretch and that of its partner, in the order of both.
        """
        counts = np.empty(len(came.times), np.int64)
        found = *self._index, self._columns["before"], self._columns["times"]
        _count(came.h1, came.h2, came.times, self._within, *found, counts)
        ends = np.cumsum(counts)
        edges = np.flatnonzero(np.diff(came.offsets, append=-1)) + 1
        low = 0
        while low < len(counts):
            begun = int(ends[low] - counts[low])
            whole = edges[edges > low]
            fitting = int(np.searchsorted(ends[whole - 1], begun + _PAIRS, side="right"))
            high = int(whole[max(0, fitting - 1)])
            part = came.slice(low, high)
            partners = np.empty(int(ends[high - 1]) - begun, np.int64)
            _pair(part.h1, part.h2, part.times, self._within, *found, ends[low:high] - begun, partners)
            yield low, high, np.repeat(np.arange(high - low), counts[low:high]), partners
            low = high

    def forget(self, reach_us: int, limit: int) -> bool:
        """Drop rows at or before a time if they are many; False if more than `limit` are left."""
        if self._n <= min(self._look_at, limit):
            return True
        kept = np.flatnonzero(self.column("times") > reach_us)
        if 4 * len(kept) <= 3 * self._n or self._n > limit:
            self._keep(kept)
        self._look_at = max(self._n + self._n // 2, _FEW)
        return self._n <= limit

    def _keep(self, rows: np.ndarray) -> None:
        self._frames.keep(rows)
        held = {name: column[rows] for name, column in self._columns.items()}
        self._n, room = len(rows), 128
        while room < self._n:
            room *= 2
        self._columns = {name: np.empty(room, kind) for name, kind in _COLUMNS.items()}
        for name, column in held.items():
            self._columns[name][: self._n] = column
        self._keys = 0
        self._room(128)
        self._link(0)

    def _grow(self, wanted: int) -> None:
        room = len(self._columns["times"])
        if wanted > room:
            more = max(wanted, 2 * room) - room
            for name, column in self._columns.items():
                self._columns[name] = np.concatenate([column, np.empty(more, column.dtype)])

    def _link(self, first: int) -> None:
        """Put the rows from a number on into the chains of their keys."""
        h1, h2 = self.column("h1")[first:], self.column("h2")[first:]
        at = 0
        while True:
            before = self._columns["before"]
            at, self._keys = _chain(h1, h2, first, at, *self._index, self._keys, before)
            if at == len(h1):
                return
            _, known1, known2, heads = self._index
            self._room(2 * len(known1))
            for old, new in zip((known1, known2, heads), self._index[1:]):
                new[: self._keys] = old[: self._keys]
            refill(self._index[0], self._index[1], self._keys)

    def _room(self, keys: int) -> None:
        """An empty index with room for so many keys: its slots, and of each key both hashes and the head."""
        known1, known2 = np.empty(keys, np.uint64), np.empty(keys, np.uint64)
        self._index = np.full(2 * keys, -1, np.int64), known1, known2, np.empty(keys, np.int64)
