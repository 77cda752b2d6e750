"""A table's rows in memory: columns, and an index of their keys' hashes, without a Python object per row.

An update appends its rows and points its keys at them. Replaced rows are dropped once they are half of all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...sketches.core.lazy import pl
from ..grouping.arrow_columns import arrow_column
from ..grouping.group_index import hash_keys
from ..grouping.key_index import KeyIndex
from .row_store import RowStore

_FEW = 1024

Keys = Sequence["pl.Series"]
"""The columns that make up the keys."""


class TableRows:
    """The rows of a table by key.

    Keys are identified by 128 bits of their hashes: among a billion, two are confused with a probability
    below 10⁻²⁰.

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
        """The approximate bytes of memory."""
        return self._index.nbytes + self._row_of.nbytes + self._rows.size

    def update(
        self,
        keys: Keys,
        rows: pl.DataFrame,
        numbers: np.ndarray | None = None,
        times: np.ndarray | None = None,
    ) -> None:
        """Set keys' rows, in order: key i has row ``numbers[i]`` of `rows`, or none for -1.

        `times` are for a table that keeps versions; here the last row counts.
        """
        h1, h2 = hashes_of(keys)
        given = np.arange(len(h1)) if numbers is None else numbers
        pointed = np.where(given < 0, np.int64(-1), given + len(self._rows))
        entries, _ = self._index.number(h1, h2)
        self._row_of = self._index.widened(self._row_of, -1)
        self._row_of[entries] = pointed  # for repeated keys, the last one
        self._rows.append(rows)
        live = len(self)
        if max(len(self._rows), len(self._index)) > 2 * live + _FEW:
            self._compact()

    def find(self, keys: Keys) -> np.ndarray:
        """The number of each key's row; -1 for unknown keys and for keys with a null."""
        h1, h2 = hashes_of(keys)
        entries = self._index.find(h1, h2)
        numbers = np.full(len(h1), -1)
        numbers[entries >= 0] = self._row_of[entries[entries >= 0]]
        for part in keys:
            if part.null_count():
                numbers[part.is_null().to_numpy()] = -1
        return numbers

    def gather(self, numbers: np.ndarray) -> pl.DataFrame:
        """The rows with these numbers; nulls for -1."""
        return self._rows.gather(numbers)

    def _compact(self) -> None:
        """Drop rows without a key, and keys without a row."""
        entries = np.flatnonzero(self._row_of >= 0)
        self._rows.retain(self._row_of[entries])
        self._index.keep(entries)
        self._row_of = np.arange(len(entries))


def hashes_of(keys: Keys) -> tuple[np.ndarray, np.ndarray]:
    """Both halves of the keys' hashes."""
    return hash_keys([arrow_column(part) for part in keys], len(keys[0]))
