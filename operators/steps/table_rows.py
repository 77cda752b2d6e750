"""A table's rows in memory: columns, and an index of their keys' hashes; no Python object for a row.

An update appends its rows and points its keys at them. What it replaces is dropped once that is half of all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...sketches.core.lazy import pl
from ..grouping.group_index import hash_keys
from ..grouping.key_index import KeyIndex
from .row_store import RowStore

_FEW = 1024

Keys = Sequence["pl.Series"]
"""The columns that make up the keys."""


class TableRows:
    """The rows of a table by their keys.

    Keys are known by 128 bits of their hashes: among a billion, two are confused with a probability below
    10⁻²⁰.

    >>> contents = TableRows({"country": pl.String})
    >>> contents.update([pl.Series(["ann", "bob"])], pl.DataFrame({"country": ["FI", "NO"]}))
    >>> contents.update([pl.Series(["ann", "bob"])], pl.DataFrame({"country": ["SE"]}), np.array([0, -1]))
    >>> contents.gather(contents.find([pl.Series(["bob", "ann", None])]))["country"].to_list(), len(contents)
    ([None, 'SE', None], 1)
    """

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._rows = RowStore(schema)
        self._index = KeyIndex()
        self._row_of = np.empty(0, np.int64)

    def __len__(self) -> int:
        return int(np.count_nonzero(self._row_of >= 0))

    @property
    def size(self) -> int:
        """Bytes of memory, about."""
        return self._index.nbytes + self._row_of.nbytes + self._rows.size

    def update(self, keys: Keys, rows: pl.DataFrame, numbers: np.ndarray | None = None) -> None:
        """Give keys their rows, in order: key i has row ``numbers[i]`` of `rows`, or none for -1."""
        h1, h2 = _hashes(keys)
        given = np.arange(len(h1)) if numbers is None else numbers
        pointed = np.where(given < 0, np.int64(-1), given + len(self._rows))
        entries, _ = self._index.number(h1, h2)
        self._row_of = self._index.widened(self._row_of, -1)
        self._row_of[entries] = pointed  # of a key that is given twice, the last
        self._rows.append(rows)
        live = len(self)
        if max(len(self._rows), len(self._index)) > 2 * live + _FEW:
            self._compact()

    def find(self, keys: Keys) -> np.ndarray:
        """The number of each key's row; -1 for keys that it doesn't have, and for any null in one."""
        h1, h2 = _hashes(keys)
        entries = self._index.find(h1, h2)
        numbers = np.full(len(h1), -1)
        numbers[entries >= 0] = self._row_of[entries[entries >= 0]]
        for part in keys:
            if part.null_count():
                numbers[part.is_null().to_numpy()] = -1
        return numbers

    def gather(self, numbers: np.ndarray) -> pl.DataFrame:
        """The rows of these numbers; nulls for -1."""
        return self._rows.gather(numbers)

    def _compact(self) -> None:
        """Drop rows that no key has, and keys that have no row."""
        entries = np.flatnonzero(self._row_of >= 0)
        self._rows.retain(self._row_of[entries])
        self._index.keep(entries)
        self._row_of = np.arange(len(entries))


def _hashes(keys: Keys) -> tuple[np.ndarray, np.ndarray]:
    return hash_keys([part.to_arrow(compat_level=pl.CompatLevel.oldest()) for part in keys], len(keys[0]))
