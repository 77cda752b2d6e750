"""A uniform sample of each key's rows, so that small keys are seen beside large ones."""

from __future__ import annotations

from typing import Any, Self

import pyarrow as pa

from ...sketches.core.lists import elements
from ...sketches.core.protocol import SketchError
from ..core.bottom_k import BottomK, plain
from ..core.images import MOST_K
from ..core.uniform import share_error
from .groups import StratifiedReservoirGroups


class StratifiedReservoir(BottomK):
    """k rows of each key, uniformly: for each key every set of k of its rows is equally likely.

    For comparing keys of very different sizes: users, shops, error codes. The whole holds at most `capacity`
    items: when k of each key would be more, k falls for all keys alike to what fits (`k` tells); when there
    are more keys than `capacity`, one row is kept of each of `capacity` keys, those of smallest hash, which
    are a uniform sample of the keys. What is kept of a key stays a uniform sample of all its rows, and `n` of
    a key counts them all. A share read off a key's m items is within sqrt(ln(40) / 2m) of the key's at 95 %
    (Hoeffding 1963).

    Merging is exact, associative and commutative; the smaller k wins. Keys may be of any type that can be
    hashed, records included, and null is a key; they are told apart by 64 bits of MurmurHash3. Memory is up
    to `capacity` items and 16 bytes each, and 90 bytes a key; `seed` is as in `Reservoir`. Raises
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
        """Items kept over all keys, at most."""
        return int(self._groups._format.parameter)

    def __len__(self) -> int:
        return int(self._groups._pool.sizes[0])

    def update(self, values: Any, key: Any = None) -> Self:
        """Add values with their keys, one a row, or one for all."""
        return self._update(values, key=key)

    def strata(self) -> pa.Table:
        """A row a key: `key`, `n` (its rows seen, nulls aside) and `items`, a list of those kept."""
        table: pa.Table = self._groups._pool.table()
        return table.drop_columns("group")

    def values(self) -> pa.Table:
        """A row an item: `key` and `item`, key by key, each key's in random order."""
        table = self.strata().combine_chunks()
        items, rows = elements(table.column("items").combine_chunks())
        return pa.table({"key": table.column("key").take(pa.array(rows)), "item": items})

    def answer(self) -> dict[str, Any]:
        """``{"n": rows seen, "strata": [{"key", "n", "values", "error"}, …]}``, as JSON can hold it.

        `error` is how far a share read off a key's values is from that of all its rows, at most, at 95 %.
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


StratifiedReservoirGroups._single = StratifiedReservoir
