"""Many t-digests in one set of arrays, by group number."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from ..core.aggregated import Aggregated
from ..core.answers import USUAL_QUANTILES
from ..core.columns.column_kinds import numeric
from ..core.groups.group_numbers import as_groups
from ..core.protocol import Groups
from ..core.values.image_columns import as_images, image_column
from ..core.values.numbers import as_numbers
from .sketch import TDigest
from .store import Store


class TDigestGroups(Groups):
    """Many `TDigest`s of one k in one pool; `TDigest` explains why no error is promised.

    >>> groups = TDigestGroups(2)
    >>> groups.update([0, 1, 0], [1.0, 2.0, 3.0])
    >>> groups[0].n, groups[1].quantile(0.5)
    (2, 2.0)
    """

    aggregate: ClassVar = Aggregated({"k": 200}, of_column=numeric)

    def __init__(self, n: int = 0, k: int = 200) -> None:
        self._store = Store(n, k)

    def __len__(self) -> int:
        return self._store.n

    def resize(self, n: int) -> None:
        """Grow to `n` groups; the new ones are empty."""
        self._store.resize(n)

    def update(self, groups: np.ndarray, values: Any) -> None:
        """Add numbers to their groups; NaN, infinities and nulls are skipped. Raises `TypeError`."""
        numbers = as_numbers(values, np.float64, TDigest.family)
        at = numbers.per_value(as_groups(groups, numbers.length, len(self)))
        self._store.update(at, numbers.numbers)

    def merge(self, groups: np.ndarray, column: pa.Array) -> None:
        """Merge DataSketches images of any k.

        Raises `SketchError` for bytes that are not such a sketch; then nothing is merged.
        """
        numbers, images = as_images(groups, column, len(self), TDigest.family)
        self._store.merge_images(numbers, images.data, images.offsets)

    def to_arrow(self) -> pa.Array:
        """Return a DataSketches image per group, as `binary` (`large_binary` beyond 2 GiB)."""
        return image_column(*self._store.images())

    def answers(self, **question: Any) -> pa.Array:
        """Return `TDigest.answer` for each group: a struct of n and a list of quantiles."""
        shares, n = np.array(USUAL_QUANTILES), self._store.counts
        some = n > 0
        values = self._store.quantiles(shares)[some].ravel()
        unknown = pa.nulls(len(values), pa.float64())
        columns = [np.tile(shares, int(some.sum())), values, unknown, unknown]
        rows = pa.StructArray.from_arrays(columns, ["q", "value", "lower", "upper"])
        ends = np.concatenate([[0], np.cumsum(some * len(shares))]).astype(np.int32)
        quantiles = pa.ListArray.from_arrays(ends, rows)
        return pa.StructArray.from_arrays([pa.array(n), quantiles], ["n", "quantiles"])

    def __getitem__(self, group: int) -> TDigest:
        sketch = TDigest(self._store.k)
        sketch._store = self._store.one(range(len(self))[group])
        return sketch
