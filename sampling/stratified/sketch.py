"""A uniform sample of each key's rows, so that rare keys are represented beside frequent ones."""

from __future__ import annotations

from typing import Any, Self

import pyarrow as pa

from ...sketches.core.columns.lists import elements
from ...sketches.core.protocol import SketchError
from ..core.bottom_k import BottomK, plain
from ..core.images import MOST_K
from ..core.uniform import share_error
from .groups import StratifiedReservoirGroups


class StratifiedReservoir(BottomK):
    """A uniform sample of k rows for each key: for each key every set of k of its rows is equally likely.

    Use it to compare keys of very different sizes: users, shops, error codes. It stores at most `capacity`
    items in all. If k rows for each key would exceed this, k is lowered for all keys alike (`k` returns it).
    If there are more keys than `capacity`, it stores one row for each of the `capacity` keys with the
    smallest hashes, which are a uniform sample of the keys. The stored rows of a key stay a uniform sample of
    all its rows, and a key's `n` counts all of them. A share estimated from a key's m items is within
    sqrt(ln(40) / 2m) of the key's true one at 95 % (Hoeffding 1963).

    Merging is exact, associative and commutative; the smaller k wins. Keys may be of any type that can be
    hashed, including records, and null is a key; they are distinguished by 64 bits of MurmurHash3. Memory is
    up to `capacity` items and 16 bytes each, and 90 bytes per key; `seed` is as in `Reservoir`. Raises
    `SketchError` for parameters out of range, samples of another capacity, and bytes that aren't a stratified
    sample.

    Source: Cohen, Kaplan, "Summarizing Data Using Bottom-k Sketches", PODC 2007, one for each key; Hoeffding,
    "Probability Inequalities for Sums of Bounded Random Variables", JASA 1963.

    >>> import streamgauge as sg
    >>> sample = sg.StratifiedReservoir(2, seed=1)
    >>> sample.update([5, 6, 7, 8], key=["a", "a", "a", "b"]).strata().sort_by("key").to_pydict()["n"]
    [3, 1]
    >>> len(sample)
    3
    """

    family = "StratifiedReservoir"

    def __init__(self, k: int = 10, capacity: int = 100_000, seed: int | None = None) -> None:
        self._groups: Any = StratifiedReservoirGroups(1, k, capacity, seed)

    @classmethod
    def _empty(cls, k: int, parameter: float) -> Self:
        if not 1 <= parameter <= MOST_K or parameter != int(parameter):
            raise SketchError(f"StratifiedReservoir: the image's capacity {parameter} is out of range")
        return cls(k, int(parameter))

    @property
    def capacity(self) -> int:
        """The largest number of items stored over all keys."""
        return int(self._groups._format.parameter)

    def __len__(self) -> int:
        return int(self._groups._pool.sizes[0])

    def update(self, values: Any, key: Any = None) -> Self:
        """Add values with their keys, one per row or one for all."""
        return self._update(values, key=key)

    def strata(self) -> pa.Table:
        """One row per key: `key`, `n` (its rows seen, without nulls) and `items`, the list of stored rows."""
        table: pa.Table = self._groups._pool.table()
        return table.drop_columns("group")

    def values(self) -> pa.Table:
        """One row per item: `key` and `item`, key by key, each key's items in random order."""
        table = self.strata().combine_chunks()
        items, rows = elements(table.column("items").combine_chunks())
        return pa.table({"key": table.column("key").take(pa.array(rows)), "item": items})

    def answer(self) -> dict[str, Any]:
        """``{"n": rows seen, "strata": [{"key", "n", "values", "error"}, …]}``, as JSON can hold it.

        `error` is the largest difference between a share in a key's values and in all its rows, at 95 %.
        """
        strata = []
        for row in self.strata().to_pylist():
            kept = len(row["items"])
            error = share_error(kept) if kept < row["n"] else 0.0
            stratum = {"key": plain(row["key"]), "n": row["n"], "values": plain(row["items"])}
            strata.append({**stratum, "error": error})
        return {"n": self.n, "strata": strata}

    def __repr__(self) -> str:
        keys = len(self.strata())
        return f"{self.family}(k={self.k}): {len(self):,} of {self.n:,} rows of {keys:,} keys"
