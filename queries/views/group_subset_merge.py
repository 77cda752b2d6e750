"""Merging few groups over many windows at once, where `MergeCache` merges all groups window by window.

For each window only the hashes of its groups are stored: they find the rows of some groups in a fraction of
the time that merging all takes. Those rows are then merged level by level in the tree of windows.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from ...operators.grouping.group_index import hash_keys
from ...operators.table.merge import Accumulator
from ...operators.table.schema import TIME_TYPE, keys_of
from ...operators.table.windows import END, START
from .cache import ResultCache
from .view import ServedWindow, new_version

Hashes = tuple[np.ndarray, np.ndarray]
"""Both halves of the hash of each row's keys."""

BLOCK = 3
"""The level of the nodes that are cached for each group: eight windows."""

_NUMBER_BYTES = 1_000
_FILTER_BITS = np.uint64((1 << 16) - 1)


def hashes_of(table: pa.Table, keys: Sequence[str]) -> Hashes:
    """The hashes of each row's keys."""
    return hash_keys([table.column(key).combine_chunks() for key in keys], table.num_rows)


class GroupSubset:
    """Some groups, identified by the hashes of their keys.

    >>> keys = pa.table({"lang": pa.array(["en", None, "de", "fr"])})
    >>> GroupSubset(hashes_of(keys[1:3], ["lang"])).among(hashes_of(keys, ["lang"])).tolist()
    [1, 2]
    """

    def __init__(self, hashes: Hashes) -> None:
        order = np.argsort(hashes[0])
        self._first, self._second = (half[order] for half in hashes)
        self._filter = np.zeros(int(_FILTER_BITS) + 1, bool)
        self._filter[self._first & _FILTER_BITS] = True

    @property
    def name(self) -> bytes:
        """A name that is the same for the same groups, whatever their order."""
        return self._first.tobytes() + self._second.tobytes()

    @property
    def ids(self) -> list[tuple[int, int]]:
        """Identifiers of the groups, sorted."""
        return list(zip(self._first.tolist(), self._second.tolist()))

    def only(self, mask: np.ndarray) -> GroupSubset:
        """Some of them, selected by a mask over `ids`."""
        return GroupSubset((self._first[mask], self._second[mask]))

    def places(self, hashes: Hashes) -> np.ndarray:
        """The index in `ids` for each row; all rows must belong to one of the groups."""
        return np.searchsorted(self._first, hashes[0])

    def among(self, hashes: Hashes) -> np.ndarray:
        """The numbers of the rows that belong to these groups, in order."""
        first, second = hashes
        rows = np.flatnonzero(self._filter[first & _FILTER_BITS])
        places = np.minimum(np.searchsorted(self._first, first[rows]), len(self._first) - 1)
        return rows[(self._first[places] == first[rows]) & (self._second[places] == second[rows])]


def pieces(numbers: np.ndarray) -> Iterator[tuple[int, int, int, int]]:
    """The spans of 2^n windows, at multiples of their length, that make up windows of these sorted numbers.

    Yields each span's first number, its size, and the range of `numbers` in it.

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


@dataclass(frozen=True)
class Tree:
    """The nodes by which windows are merged: the sorted numbers of windows, and the size of each piece."""

    numbers: np.ndarray
    sizes: np.ndarray

    @classmethod
    def of(cls, windows: Sequence[ServedWindow]) -> Tree:
        """The tree for these windows, in order."""
        unit = max(1, min(window.end - window.start for window in windows))
        numbers = np.array([window.start // unit for window in windows], np.int64)
        sizes = np.empty(len(windows), np.int64)
        for _, length, first, last in pieces(numbers):
            sizes[first:last] = length
        return cls(numbers, sizes)

    def sizes_at(self, at: np.ndarray) -> np.ndarray:
        """The size of the piece of each window, or of the node that begins there."""
        return self.sizes[np.searchsorted(self.numbers, at)]

    def nodes(self, level: int) -> np.ndarray:
        """The nodes of 2^level windows with something to merge: two halves, or several equal windows."""
        if level == 0:
            own, count = np.unique(self.numbers, return_counts=True)
            return own[count > 1]
        halves = np.unique(self.numbers[self.sizes >= 1 << level] >> (level - 1))
        low, high = halves[:-1], halves[1:]
        return low[(high == low + 1) & (low & 1 == 0)] >> 1


class GroupSubsetMerge:
    """Rows of few groups, by window, merged in the same way as whole windows.

    `schema` is the schema of the merged table, `rows` returns a window's rows of some groups, in order. The
    merge of a block of closed windows is cached for each group separately, under a name that identifies what
    is merged, so another closed window, or another group, costs little more than its own rows.
    """

    def __init__(
        self,
        schema: pa.Schema,
        rows: Callable[[ServedWindow, GroupSubset], pa.Table],
        kept: ResultCache,
        name: Hashable,
    ) -> None:
        self._schema = schema
        self._keys = keys_of(schema)
        self._rows = rows
        self._kept = kept
        self._name = name

    def merged(self, windows: Sequence[ServedWindow], groups: GroupSubset) -> pa.Table:
        """One row per group over all these windows; their times are lost."""
        closed = [window for window in windows if not window.open]
        parts = [self._of_closed(closed, groups)] if closed else []
        parts += [self._rows(window, groups) for window in windows if window.open]
        return parts[0] if len(parts) == 1 else self._folded(parts)

    def _of_closed(self, windows: Sequence[ServedWindow], groups: GroupSubset) -> pa.Table:
        key = "few", self._name, groups.name, tuple(window.version for window in windows)
        return self._kept.get(key, lambda: self._made(windows, groups), _size)

    def _made(self, windows: Sequence[ServedWindow], groups: GroupSubset) -> pa.Table:
        tree = Tree.of(windows)
        rows = self._of_blocks(windows, tree, groups)
        for level in range(BLOCK + 1, int(tree.sizes.max()).bit_length()):
            rows = self._level(rows, tree, level)
        return self._folded([rows])

    def _of_blocks(self, windows: Sequence[ServedWindow], tree: Tree, groups: GroupSubset) -> pa.Table:
        """The rows left after merging the nodes of complete blocks."""
        blocks = tree.numbers >> BLOCK
        cuts = [0, *(np.flatnonzero(np.diff(blocks)) + 1).tolist(), len(windows)]
        names: list[Hashable] = []
        known: dict[Hashable, pa.Table] = {}
        fresh = []
        for low, high in itertools.pairwise(cuts):
            # If a span begins within a block, it is divided into other nodes than if windows are missing.
            versions = tuple(window.version for window in windows[low:high])
            block = "block", self._name, versions, tree.sizes[low:high].tobytes()
            # A number in its place, because all of a name is hashed at each look-up.
            number = self._kept.get(block, new_version, lambda _: _NUMBER_BYTES)
            own = [(number, *one) for one in groups.ids]
            known |= self._kept.known(own)
            missing = np.array([name not in known for name in own])
            if missing.any():
                some = groups.only(missing)
                fresh += [_at(self._rows(windows[at], some), tree.numbers[at]) for at in range(low, high)]
            names += own
        if fresh:
            # All blocks at once: each step costs more than its rows.
            rows = pa.concat_tables(fresh).combine_chunks()
            for level in range(BLOCK + 1):
                rows = self._level(rows, tree, level)
            at = np.searchsorted(blocks[cuts[:-1]], _numbers(rows) >> BLOCK) * len(groups.ids)
            at += groups.places(hashes_of(rows, self._keys))
            order = np.argsort(at, kind="stable")
            edges = np.searchsorted(at, np.arange(len(names) + 1), sorter=order)
            for name, low, high in zip(names, edges[:-1], edges[1:]):
                if name not in known:
                    known[name] = rows.take(order[low:high])
                    self._kept.add(name, known[name], _size(known[name]))
        rows = pa.concat_tables([known[name] for name in names]).combine_chunks()
        return rows.take(np.argsort(_numbers(rows), kind="stable"))

    def _level(self, rows: pa.Table, tree: Tree, level: int) -> pa.Table:
        """The rows, with windows numbered in place of starts, after merging this level's nodes."""
        at = _numbers(rows)
        merging = np.isin(at >> level, tree.nodes(level)) & (tree.sizes_at(at) >= 1 << level)
        if not merging.any():
            return rows
        folded = Accumulator(self._schema)
        starts = at[merging] >> level
        folded.merge_as(rows.filter(pa.array(merging)), starts, np.ones(len(starts), np.int64))
        table = folded.table()
        both = pa.concat_tables([rows.filter(pa.array(~merging)), _at(table, _numbers(table) << level)])
        return both.take(np.argsort(_numbers(both.combine_chunks()), kind="stable")).combine_chunks()

    def _folded(self, tables: Iterable[pa.Table]) -> pa.Table:
        folded = Accumulator(self._schema)
        for table in tables:
            zeros = np.zeros(table.num_rows, np.int64)
            folded.merge_as(table, zeros, zeros + 1)
        return folded.table()


def _at(table: pa.Table, numbers: Any) -> pa.Table:
    """The rows with the number of their window, or of their node's first, in place of its start."""
    at = np.broadcast_to(np.asarray(numbers, np.int64), (table.num_rows,))
    return table.set_column(0, table.schema.field(START), pa.array(at).view(TIME_TYPE))


def _numbers(table: pa.Table) -> np.ndarray:
    numbers: np.ndarray = table[START].combine_chunks().view(pa.int64()).to_numpy()
    return numbers


def _size(table: pa.Table) -> int:
    return int(table.nbytes) + 1_000


def in_window(table: pa.Table, start: int, end: int) -> pa.Table:
    """The rows with this window assigned to all of them."""
    for at, (name, moment) in enumerate(((START, start), (END, end))):
        times = pa.array(np.full(table.num_rows, moment, np.int64)).view(TIME_TYPE)
        table = table.set_column(at, table.schema.field(name), times)
    return table
