"""Group numbers for rows: equal for the same window and keys, without Python objects for rows.

Keys are hashed to 128 bits from Arrow's buffers and numbered by one table (`key_index`). Two groups are
confused only if all 128 bits are equal: with a billion groups, the probability is below 10⁻²⁰. The same hash
determines the partition of a table topic that a group belongs to.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from ...sketches.core.columns.columns import as_array, stored_values
from ...sketches.core.compilation.jit import kernel
from ...sketches.core.hashing.hash import SEED, fmix, hash_int64, hash_values
from ...sketches.core.parallel import each_slice
from .key_index import KeyIndex
from .recent_groups import RecentGroups

_BLOCK = 1 << 14
"""The number of rows hashed at a time, so that intermediate results stay in the cache."""
_NULL = np.uint64(0x9E3779B97F4A7C15)


@kernel
def _combine(h1, h2, more1, more2):
    """Combine another column's hashes; the order of columns matters."""
    for i in range(len(h1)):
        h1[i] = fmix(h1[i] * np.uint64(31) + more1[i])
        h2[i] = fmix(h2[i] * np.uint64(37) + more2[i])


@kernel
def _add_starts(h1, h2, start1, start2):
    """Add the hashes of windows' starts to those of keys.

    The factors keep a key that equals its window's start from cancelling it.
    """
    for i in range(len(h1)):
        h1[i] += start1[i] * np.uint64(31)
        h2[i] += start2[i] * np.uint64(37)


def _hashes(key: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    # Decimals of one type are equal if their digits are.
    values = stored_values(key.cast(pa.string()) if pa.types.is_decimal(key.type) else key)
    h1, h2 = hash_values(values)
    if values.rows is None:
        return h1, h2
    all1, all2 = np.full(len(key), _NULL), np.full(len(key), _NULL)
    all1[values.rows], all2[values.rows] = h1, h2
    return all1, all2


def hash_keys(keys: Sequence[pa.Array], rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Both halves of the hash of each row's keys; null is a key like any other.

    >>> h1, _ = hash_keys([pa.array(["a", None, "a"])], 3)
    >>> bool(h1[0] == h1[2]), bool(h1[0] == h1[1])
    (True, False)
    """
    h1 = np.zeros(rows, np.uint64)
    h2 = np.zeros(rows, np.uint64)

    def some(low: int, high: int) -> None:
        for first in range(low, high, _BLOCK):
            last = min(first + _BLOCK, high)
            for key in keys:
                _combine(h1[first:last], h2[first:last], *_hashes(key[first:last]))

    each_slice(rows, some)
    return h1, h2


class GroupIndex:
    """The groups seen so far, numbered from 0 in the order of their first rows.

    >>> index = GroupIndex()
    >>> index.number(np.array([0, 0, 60]), [pa.array(["a", "b", "a"])]).tolist()
    [0, 1, 2]
    >>> index.number(np.array([60]), [pa.array(["a"])]).tolist(), index.starts().tolist()
    ([2], [0, 0, 60])
    """

    def __init__(self) -> None:
        self._index, self._recent = KeyIndex(), RecentGroups()
        self._starts: list[np.ndarray] = []
        self._keys: list[list[pa.Array]] = []
        self._single: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self._index)

    def number(self, starts: np.ndarray, keys: Sequence[pa.Array]) -> np.ndarray:
        """The group of each row, from its window's start (int64 microseconds) and its keys."""
        numbers = np.empty(len(starts), np.int64)
        for first in range(0, len(starts), _BLOCK):
            rows = slice(first, first + _BLOCK)
            numbers[rows] = self._recent.number(starts[rows], [key[rows] for key in keys], self._number)
        return numbers

    def _number(self, starts: np.ndarray, keys: Sequence[pa.Array]) -> np.ndarray:
        """The same for a block of rows, by the hashes of their keys."""
        h1, h2 = hash_keys(keys, len(starts))
        start1, start2 = np.empty((2, len(starts)), np.uint64)
        hash_int64(starts, SEED, start1, start2)
        _add_starts(h1, h2, start1, start2)
        numbers, new_rows = self._index.number(h1, h2)
        if len(new_rows):
            self._remember(new_rows, starts, keys)
        return numbers

    def number_of(self, start: int) -> int:
        """The group of a window of a stream without keys."""
        if start not in self._single:
            self._single[start] = int(self.number(np.array([start]), [])[0])
        return self._single[start]

    def starts(self) -> np.ndarray:
        """The window's start of each group."""
        return np.concatenate(self._starts) if self._starts else np.empty(0, np.int64)

    def keys(self, types: Sequence[pa.DataType]) -> list[pa.Array]:
        """The key columns of all groups, in group order, as `types`."""
        return [
            pa.concat_arrays([batch[at].cast(kind) for batch in self._keys])
            if self._keys
            else pa.array([], kind)
            for at, kind in enumerate(types)
        ]

    def _remember(self, rows: np.ndarray, starts: np.ndarray, keys: Sequence[pa.Array]) -> None:
        self._starts.append(np.asarray(starts, np.int64)[rows])
        chosen = pa.array(rows)
        self._keys.append([as_array(key).take(chosen) for key in keys])
