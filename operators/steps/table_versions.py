"""A table's rows in memory with their earlier versions: each key has a chain of versions, the latest first.

A version is valid from its own time until the next one's. Versions that were replaced longer ago than the
table keeps versions, by the table's own times, are dropped once they are half of all.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...sketches.core.compilation.jit import lean
from ...sketches.core.lazy import pl
from ..definition.event_time import in_utc
from ..grouping.key_index import KeyIndex
from ..windows.window import EARLIEST
from .row_store import RowStore
from .table_rows import Keys, hashes_of

_FEW = 1024
_DELETED = -1
"""The row of a version that deletes its key."""


@lean
def _insert(keys, first, heads, times, before):
    """Insert versions, numbered from `first`, into the chains of their keys; of equal times the last wins."""
    for i in range(len(keys)):
        version = first + i
        later, earlier = -1, heads[keys[i]]
        # Versions mostly arrive in the order of their times, so this usually ends at once.
        while earlier >= 0 and times[earlier] > times[version]:
            later, earlier = earlier, before[earlier]
        before[version] = earlier
        if later < 0:
            heads[keys[i]] = version
        else:
            before[later] = version


@lean
def _find(versions, moments, times, before):
    """Move each entry from its key's latest version to the one valid at its moment, or to -1."""
    for i in range(len(versions)):
        version = versions[i]
        while version >= 0 and times[version] > moments[i]:
            version = before[version]
        versions[i] = version


@lean
def _cut(heads, limit, times, before, kept, floors):
    """End each chain at the version that was valid at `limit`, and mark those that are kept."""
    for key in range(len(heads)):
        version = heads[key]
        while version >= 0:
            kept[version] = True
            if times[version] <= limit and before[version] >= 0:
                floors[key] = times[version]
                before[version] = -1
            version = before[version]


class TableVersions:
    """The rows of a table by key and the time from which they are valid.

    >>> contents = TableVersions({"rate": pl.Float64}, keep_us=10)
    >>> rates = pl.DataFrame({"rate": [1.1, 1.2]})
    >>> contents.update([pl.Series(["eur", "eur"])], rates, times=np.array([5, 9]))
    >>> eur, at = [pl.Series(["eur"] * 3)], pl.Series([4, 8, 9]).cast(pl.Datetime("us"))
    >>> contents.gather(contents.find_as_of(eur, at))["rate"].to_list()
    [None, 1.1, 1.2]
    """

    def __init__(self, schema: Mapping[str, Any], keep_us: int) -> None:
        self._keep_us = keep_us
        self._rows = RowStore(schema)
        self._index = KeyIndex()
        self._heads, self._floors = np.empty(0, np.int64), np.empty(0, np.int64)
        self._times, self._before, self._row_of = (np.empty(0, np.int64) for _ in range(3))
        self._newest = EARLIEST
        self._forgotten = EARLIEST
        """Up to this time, keys may have had versions that were dropped."""
        self._look_at = _FEW

    def __len__(self) -> int:
        heads = self._heads[self._heads >= 0]
        return int(np.count_nonzero(self._row_of[heads] != _DELETED))

    @property
    def versions(self) -> int:
        """The number of stored versions."""
        return len(self._times)

    @property
    def size(self) -> int:
        """The approximate bytes of memory."""
        arrays = (self._heads, self._floors, self._times, self._before, self._row_of)
        return self._index.nbytes + self._rows.size + sum(array.nbytes for array in arrays)

    def update(
        self,
        keys: Keys,
        rows: pl.DataFrame,
        numbers: np.ndarray | None = None,
        times: np.ndarray | None = None,
    ) -> None:
        """Add versions: from ``times[i]`` on, key i has row ``numbers[i]`` of `rows`, or none for -1."""
        h1, h2 = hashes_of(keys)
        if not len(h1):
            return
        assert times is not None, "versions have times"
        given = np.arange(len(h1)) if numbers is None else numbers
        entries, fresh = self._index.number(h1, h2)
        self._heads = self._index.widened(self._heads, -1)
        self._floors = self._index.widened(self._floors, EARLIEST)
        self._floors[entries[fresh]] = self._forgotten
        first = len(self._times)
        self._times = np.concatenate([self._times, times])
        self._before = np.concatenate([self._before, np.full(len(h1), -1)])
        self._row_of = np.concatenate(
            [self._row_of, np.where(given < 0, np.int64(_DELETED), given + len(self._rows))]
        )
        self._rows.append(rows)
        _insert(entries, first, self._heads, self._times, self._before)
        self._newest = max(self._newest, int(times.max()))
        if len(self._times) > self._look_at:
            self._compact()

    def find(self, keys: Keys) -> np.ndarray:
        """The number of each key's latest row; -1 for keys without one, and for keys with a null."""
        return self._rows_of(self._versions(keys))

    def find_as_of(self, keys: Keys, moments: pl.Series) -> np.ndarray:
        """The number of the row that each key has at a moment; -1 for none, and for nulls.

        Raises `ValueError` for a moment whose version was dropped.
        """
        points = in_utc(moments)
        known = points.is_not_null().to_numpy()
        points_us = np.ascontiguousarray(points.to_physical().fill_null(0).to_numpy(), np.int64)
        entries = self._entries(keys)
        versions = self._versions(keys)
        _find(versions, points_us, self._times, self._before)
        floors = np.full(len(entries), self._forgotten)
        floors[entries >= 0] = self._floors[entries[entries >= 0]]
        keyed = np.logical_and.reduce([part.is_not_null().to_numpy() for part in keys])
        gone = np.flatnonzero(known & keyed & (points_us < floors))
        if len(gone):
            at = moments[int(gone[0])]
            raise ValueError(f"the table's versions of {at} are not held any more: set a longer versions=")
        versions[~known] = -1
        return self._rows_of(versions)

    def gather(self, numbers: np.ndarray) -> pl.DataFrame:
        """The rows with these numbers; nulls for -1."""
        return self._rows.gather(numbers)

    def _entries(self, keys: Keys) -> np.ndarray:
        """The keys' numbers in the index; -1 for unknown keys and for keys with a null."""
        entries = self._index.find(*hashes_of(keys))
        for part in keys:
            if part.null_count():
                entries = np.where(part.is_null().to_numpy(), -1, entries)
        return entries

    def _versions(self, keys: Keys) -> np.ndarray:
        """The keys' latest versions."""
        entries = self._entries(keys)
        versions = np.full(len(entries), -1)
        versions[entries >= 0] = self._heads[entries[entries >= 0]]
        return versions

    def _rows_of(self, versions: np.ndarray) -> np.ndarray:
        numbers = np.full(len(versions), -1)
        numbers[versions >= 0] = self._row_of[versions[versions >= 0]]
        return numbers

    def _compact(self) -> None:
        """Drop versions that no row can request, and keys that were deleted earlier."""
        limit, kept = self._newest - self._keep_us, np.zeros(len(self._times), bool)
        _cut(self._heads, limit, self._times, self._before, kept, self._floors)
        entries = np.flatnonzero(self._heads >= 0)
        last = self._heads[entries]
        deleted = (self._row_of[last] == _DELETED) & (self._before[last] < 0) & (self._times[last] <= limit)
        if deleted.any():
            self._forgotten = max(self._forgotten, int(self._times[last[deleted]].max()))
            kept[last[deleted]] = False
            self._retain_keys(entries[~deleted])
        if 4 * int(kept.sum()) <= 3 * len(kept):
            self._retain(np.flatnonzero(kept))
        self._look_at = max(2 * len(self._times), _FEW)

    def _retain_keys(self, entries: np.ndarray) -> None:
        self._index.keep(entries)
        self._heads, self._floors = self._heads[entries], self._floors[entries]

    def _retain(self, versions: np.ndarray) -> None:
        renumbered = np.full(len(self._times) + 1, -1)  # the last entry stands for -1
        renumbered[versions] = np.arange(len(versions))
        self._heads, self._before = renumbered[self._heads], renumbered[self._before[versions]]
        self._times, row_of = self._times[versions], self._row_of[versions]
        some = row_of != _DELETED
        self._rows.retain(row_of[some])
        row_of[some] = np.arange(int(some.sum()))
        self._row_of = row_of
