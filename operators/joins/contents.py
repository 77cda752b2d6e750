"""A table's rows in memory: columns, and an index of their keys' hashes; no Python object for a row.

An update appends its rows and points its keys at them. What it replaces is dropped once that is half of all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from ...sketches.core.jit import kernel
from ..sketching.grouping import hash_keys, look_up, refill
from .frames import Frames

_OLDEST = pl.CompatLevel.oldest()
_FEW = 1024

Keys = Sequence[pl.Series]
"""The columns that make up the keys."""


@kernel
def _find(h1, h2, slots, known1, known2, row_of, numbers):
    mask = np.uint64(len(slots) - 1)
    for i in range(len(h1)):
        at = h1[i] & mask
        numbers[i] = -1
        while slots[at] >= 0:
            found = slots[at]
            if known1[found] == h1[i] and known2[found] == h2[i]:
                numbers[i] = row_of[found]
                break
            at = (at + np.uint64(1)) & mask


class Contents:
    """The rows of a table by their keys.

    Keys are known by 128 bits of their hashes: among a billion, two are confused with a probability below
    10⁻²⁰.

    >>> contents = Contents({"country": pl.String})
    >>> contents.update([pl.Series(["ann", "bob"])], pl.DataFrame({"country": ["FI", "NO"]}))
    >>> contents.update([pl.Series(["ann", "bob"])], pl.DataFrame({"country": ["SE"]}), np.array([0, -1]))
    >>> contents.take(contents.find([pl.Series(["bob", "ann", None])]))["country"].to_list(), len(contents)
    ([None, 'SE', None], 1)
    """

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._rows = Frames(schema)
        self._n = 0
        self._room(128)

    def __len__(self) -> int:
        return int(np.count_nonzero(self._row_of[: self._n] >= 0))

    @property
    def size(self) -> int:
        """Bytes of memory, about."""
        index = (self._slots, self._known1, self._known2, self._row_of)
        return sum(part.nbytes for part in index) + self._rows.size

    def update(self, keys: Keys, rows: pl.DataFrame, numbers: np.ndarray | None = None) -> None:
        """Give keys their rows, in order: key i has row ``numbers[i]`` of `rows`, or none for -1."""
        h1, h2 = _hashes(keys)
        given = np.arange(len(h1)) if numbers is None else numbers
        pointed = np.where(given < 0, np.int64(-1), given + len(self._rows))
        at, entries = 0, np.empty(len(h1), np.int64)
        while True:
            firsts = np.empty(len(self._known1), np.int64)
            index = self._slots, self._known1, self._known2
            at, self._n = look_up(h1, h2, at, *index, self._n, entries, firsts)
            if at == len(h1):
                break
            self._grow()
        self._row_of[entries] = pointed  # of a key that is given twice, the last
        self._rows.append(rows)
        live = len(self)
        if len(self._rows) > 2 * live + _FEW or self._n > 2 * live + _FEW:
            self._compact()

    def find(self, keys: Keys) -> np.ndarray:
        """The number of each key's row; -1 for keys that it doesn't have, and for any null in one."""
        h1, h2 = _hashes(keys)
        numbers = np.empty(len(h1), np.int64)
        _find(h1, h2, self._slots, self._known1, self._known2, self._row_of, numbers)
        for part in keys:
            if part.null_count():
                numbers[part.is_null().to_numpy()] = -1
        return numbers

    def take(self, numbers: np.ndarray) -> pl.DataFrame:
        """The rows of these numbers; nulls for -1."""
        return self._rows.take(numbers)

    def _room(self, entries: int) -> None:
        self._slots = np.full(2 * entries, -1, np.int64)
        self._known1, self._known2 = np.empty(entries, np.uint64), np.empty(entries, np.uint64)
        self._row_of = np.empty(entries, np.int64)

    def _grow(self) -> None:
        self._keep_entries(np.arange(self._n), 2 * len(self._known1))

    def _compact(self) -> None:
        """Drop rows that no key has, and keys that have no row."""
        entries = np.flatnonzero(self._row_of[: self._n] >= 0)
        self._rows.keep(self._row_of[entries])
        self._row_of[entries] = np.arange(len(entries))
        room = 128
        while room < 2 * len(entries):
            room *= 2
        self._keep_entries(entries, room)

    def _keep_entries(self, entries: np.ndarray, room: int) -> None:
        held = self._known1, self._known2, self._row_of
        self._room(room)
        self._n = len(entries)
        for old, new in zip(held, (self._known1, self._known2, self._row_of)):
            new[: self._n] = old[entries]
        refill(self._slots, self._known1, self._n)


def _hashes(keys: Keys) -> tuple[np.ndarray, np.ndarray]:
    return hash_keys([part.to_arrow(compat_level=_OLDEST) for part in keys], len(keys[0]))
