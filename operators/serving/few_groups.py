"""Few groups of many windows, merged all at once: as `Rollups` merges all groups, window by window.

What is kept of a window is only the hashes of its groups: they find the rows of some in a fraction of the
time that merging all takes. Those rows are then merged a level of the tree of windows at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa

from ..sketching.grouping import hash_keys
from ..table.merge import Accumulator
from ..table.schema import TIME_TYPE
from ..table.windows import END, START
from .view import ServedWindow

Hashes = tuple[np.ndarray, np.ndarray]
"""Both halves of the hash of each row's keys."""

_FILTER_BITS = np.uint64((1 << 16) - 1)


def hashes_of(table: pa.Table, keys: Sequence[str]) -> Hashes:
    """The hashes of each row's keys."""
    return hash_keys([table.column(key).combine_chunks() for key in keys], table.num_rows)


class Chosen:
    """Some groups, by the hashes of their keys.

    >>> keys = pa.table({"lang": pa.array(["en", None, "de", "fr"])})
    >>> Chosen(hashes_of(keys[1:3], ["lang"])).among(hashes_of(keys, ["lang"])).tolist()
    [1, 2]
    """

    def __init__(self, hashes: Hashes) -> None:
        order = np.argsort(hashes[0])
        self._first, self._second = (half[order] for half in hashes)
        self._filter = np.zeros(int(_FILTER_BITS) + 1, bool)
        self._filter[self._first & _FILTER_BITS] = True

    @property
    def name(self) -> bytes:
        """The same for the same groups, in whatever order they were given."""
        return self._first.tobytes() + self._second.tobytes()

    def among(self, hashes: Hashes) -> np.ndarray:
        """The rows that are of these groups, in their order."""
        first, second = hashes
        rows = np.flatnonzero(self._filter[first & _FILTER_BITS])
        places = np.minimum(np.searchsorted(self._first, first[rows]), len(self._first) - 1)
        return rows[(self._first[places] == first[rows]) & (self._second[places] == second[rows])]


def pieces(numbers: np.ndarray) -> Iterator[tuple[int, int, int, int]]:
    """The spans of 2^n windows at multiples of their length that make up windows of these numbers, ascending.

    Of each its first number, its size, and which of `numbers` are in it, from and to.

    >>> list(pieces(np.array([3, 4, 5, 6])))
    [(3, 1, 0, 1), (4, 2, 1, 3), (6, 1, 3, 4)]
    """
    low, high = int(numbers[0]), int(numbers[-1]) + 1
    while low < high:
        size = low & -low if low else 1 << 62
        while size > high - low:
            size >>= 1
        first, last = (int(at) for at in np.searchsorted(numbers, (low, low + size)))
        if first < last:
            yield low, size, first, last
        low += size


class FewGroups:
    """Rows of few groups, by window, merged as their whole windows would be.

    `schema` is that of the merged table, `rows` gives the rows of a window that are wanted, in its order.
    `once` gives what was made of closed windows before, or makes it.
    """

    def __init__(
        self,
        schema: pa.Schema,
        rows: Callable[[ServedWindow], pa.Table],
        once: Callable[[Sequence[ServedWindow], Callable[[], pa.Table]], pa.Table],
    ) -> None:
        self._schema = schema
        self._rows = rows
        self._once = once

    def merged(self, windows: Sequence[ServedWindow]) -> pa.Table:
        """One row a group over all these windows, their own times lost."""
        closed = [window for window in windows if not window.open]
        parts = [self._once(closed, lambda: self._of_closed(closed))] if closed else []
        parts += [self._rows(window) for window in windows if window.open]
        return parts[0] if len(parts) == 1 else self._folded(parts)

    def _of_closed(self, windows: Sequence[ServedWindow]) -> pa.Table:
        unit = max(1, min(window.end - window.start for window in windows))
        numbers = np.array([window.start // unit for window in windows], np.int64)
        sizes = np.empty(len(windows), np.int64)
        for _, length, first, last in pieces(numbers):
            sizes[first:last] = length
        found = [self._rows(window) for window in windows]
        of = np.repeat(np.arange(len(windows)), [table.num_rows for table in found])
        rows, at, size = pa.concat_tables(found).combine_chunks(), numbers[of], sizes[of]
        own, count = np.unique(numbers, return_counts=True)
        rows, at, size = self._level(rows, at, size, own[count > 1], 0)
        for level in range(1, int(sizes.max()).bit_length()):
            wide = np.unique(numbers[sizes >= 1 << level] >> (level - 1))
            both = wide[:-1][(wide[1:] == wide[:-1] + 1) & (wide[:-1] & 1 == 0)] >> 1
            rows, at, size = self._level(rows, at, size, both, level)
        return self._folded([rows])

    def _level(
        self, rows: pa.Table, at: np.ndarray, size: np.ndarray, nodes: np.ndarray, level: int
    ) -> tuple[pa.Table, np.ndarray, np.ndarray]:
        """The rows with those in these nodes of a level merged, in the order of windows still."""
        merging = np.isin(at >> level, nodes) & (size >= 1 << level)
        if not merging.any():
            return rows, at, size
        folded = Accumulator(self._schema)
        starts = at[merging] >> level
        folded.fold_as(rows.filter(pa.array(merging)), starts, np.ones(len(starts), np.int64))
        table = folded.table()
        made = table[START].combine_chunks().view(pa.int64()).to_numpy() << level
        # A node's size is that of the piece it is in, which begins no later and is as large.
        places = np.searchsorted(at, made)
        at, own = np.concatenate([at[~merging], made]), np.concatenate([size[~merging], size[places]])
        order = np.argsort(at, kind="stable")
        both = pa.concat_tables([rows.filter(pa.array(~merging)), table]).take(order)
        return both.combine_chunks(), at[order], own[order]

    def _folded(self, tables: Iterable[pa.Table]) -> pa.Table:
        folded = Accumulator(self._schema)
        for table in tables:
            zeros = np.zeros(table.num_rows, np.int64)
            folded.fold_as(table, zeros, zeros + 1)
        return folded.table()


def in_window(table: pa.Table, start: int, end: int) -> pa.Table:
    """The rows with this window given to all of them."""
    for at, (name, moment) in enumerate(((START, start), (END, end))):
        times = pa.array(np.full(table.num_rows, moment, np.int64)).view(TIME_TYPE)
        table = table.set_column(at, table.schema.field(name), times)
    return table
