"""Many KLL sketches in one set of arrays, by group number."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from ..core.aggregated import Aggregated
from ..core.answers import USUAL_QUANTILES
from ..core.columns.column_kinds import long_or_double
from ..core.columns.weights import optional_weights
from ..core.groups.group_numbers import as_groups
from ..core.protocol import Groups
from ..core.values.image_columns import as_images, image_column
from ..core.values.numbers import as_numbers
from .estimate import quantiles
from .sketch import KLL
from .store import Kind, Store


class KLLGroups(Groups):
    """Many `KLL` sketches of one k and kind in one pool of items.

    Errors and bytes are those of `KLL`; the column is `binary`, with one DataSketches image per group. A
    group with v values holds at most 2 v items until it compacts.

    >>> groups = KLLGroups(2, k=200)
    >>> groups.update([0, 1, 0, 1], [1.0, 5.0, 3.0, None])
    >>> groups[0].quantiles([0.5, 1]), groups[1].n
    ([1.0, 3.0], 1)
    >>> groups.merge([1], groups.to_arrow().slice(0, 1))
    >>> groups[1].n
    3
    """

    aggregate: ClassVar = Aggregated(
        {"k": 200},
        optional=("weight",),
        of_column=long_or_double,
        seeded=True,
        kinds=("double", "long", "float"),
        must_name_kind=True,
        spark_merge="kll_merge_agg_{kind}",
    )

    def __init__(self, n: int = 0, k: int = 200, kind: Kind = "double", seed: int | None = None) -> None:
        self._store = Store(n, k, kind, seed)

    def __len__(self) -> int:
        return self._store.n

    def resize(self, n: int) -> None:
        """Grow to `n` groups; the new ones are empty."""
        self._store.resize(n)

    def update(self, groups: np.ndarray, values: Any, weight: Any = None) -> None:
        """Add numbers to their groups, each as often as its `weight` says. Raises as for one."""
        numbers = as_numbers(values, self._store.dtype, KLL.family)
        at = numbers.per_value(as_groups(groups, numbers.length, len(self)))
        if weight is None:
            self._store.update(at, numbers.numbers)
        else:
            weights, most = optional_weights(KLL.family, weight, numbers, whole=True)
            self._store.update_weighted(at, numbers.numbers, weights, most)

    def merge(self, groups: np.ndarray, column: pa.Array) -> None:
        """Merge DataSketches images of any k.

        Raises `SketchError` for bytes that are not such a sketch; then nothing is merged.
        """
        numbers, images = as_images(groups, column, len(self), "KLL")
        self._store.merge_images(numbers, images.data, images.offsets)

    def to_arrow(self) -> pa.Array:
        """Return a DataSketches image per group, as `binary` (`large_binary` beyond 2 GiB)."""
        return image_column(*self._store.images())

    def answers(self, **question: Any) -> pa.Array:
        """Return `KLL.answer` for each group: a struct of n and a list of quantiles."""
        shares = np.array(USUAL_QUANTILES)
        n = self._store.state.n
        some = n > 0
        rows = slice(None) if some.all() else some  # a slice copies nothing
        fields = (column[rows].ravel() for column in quantiles(self._store, shares))
        columns = [np.tile(shares, int(some.sum())), *fields]
        answers = pa.StructArray.from_arrays(columns, ["q", "value", "lower", "upper"])
        ends = np.concatenate([[0], np.cumsum(some * len(shares))]).astype(np.int32)
        quantiles_of = pa.ListArray.from_arrays(ends, answers)
        return pa.StructArray.from_arrays([n.copy(), quantiles_of], ["n", "quantiles"])

    def __getitem__(self, group: int) -> KLL:
        sketch = KLL(self._store.k, self._store.kind, seed=0)
        sketch._store = self._store.one(range(len(self))[group])
        return sketch
