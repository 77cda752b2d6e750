"""Many DDSketches in one set of arrays, by group number."""

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
from .estimate import quantiles, seen_by
from .sketch import DDSketch, Kind, _known
from .store import Store


def relative_numbers(leaf: pa.DataType) -> dict[str, Any]:
    """Accept numbers for which a relative error is meaningful; integers are stored as longs.

    Raises `TypeError` for timestamps, whose magnitude counts from 1970, and for anything but numbers.
    """
    if pa.types.is_date(leaf) or pa.types.is_timestamp(leaf):
        raise TypeError(
            f"an error relative to the value says nothing of a {leaf}, which counts from 1970; ask for "
            "kll_quantiles, whose error is one of rank, or cast it to a duration"
        )
    return long_or_double(leaf)


class DDSketchGroups(Groups):
    """Many `DDSketch`es of one accuracy in one pool of buckets.

    Errors and bytes are those of `DDSketch`; the column is `binary`, with one protobuf per group. A group
    only stores the buckets between its own smallest and largest magnitude.

    >>> groups = DDSketchGroups(2)
    >>> groups.update([0, 1, 0], [1.0, -5.0, 3.0])
    >>> groups[0].n, round(groups[1].quantile(0.5), 1)
    (2, -5.0)
    """

    aggregate: ClassVar = Aggregated(
        {"relative_accuracy": 0.01}, optional=("weight",), of_column=relative_numbers, kinds=("long",)
    )

    def __init__(self, n: int = 0, relative_accuracy: float = 0.01, kind: Kind = "double") -> None:
        self._store = Store(n, relative_accuracy)
        self._kind = _known(kind)

    def __len__(self) -> int:
        return self._store.n

    def resize(self, n: int) -> None:
        """Grow to `n` groups; the new ones are empty."""
        self._store.resize(n)

    def update(self, groups: np.ndarray, values: Any, weight: Any = None) -> None:
        """Add numbers to their groups, each as often as its `weight` says. Raises as for one."""
        numbers = as_numbers(values, np.float64, DDSketch.family)
        at = numbers.per_value(as_groups(groups, numbers.length, len(self)))
        if weight is None:
            self._store.update(at, numbers.numbers)
        else:
            weights, most = optional_weights(DDSketch.family, weight, numbers, whole=False)
            self._store.update(at, numbers.numbers, weights, most)

    def merge(self, groups: np.ndarray, column: pa.Array) -> None:
        """Merge protobufs.

        Raises `SketchError` for bytes that are not such a sketch; then nothing is merged.
        """
        at, images = as_images(groups, column, len(self), "DDSketch")
        self._store.merge_images(at, images.data, images.offsets)

    def to_arrow(self) -> pa.Array:
        """Return a protobuf per group, as `binary` (`large_binary` beyond 2 GiB)."""
        return image_column(*self._store.images())

    def answers(self, **question: Any) -> pa.Array:
        """Return `DDSketch.answer` for each group: a struct of n and a list of quantiles."""
        seen = seen_by(self._store)
        some = seen > 0
        shares = np.array(USUAL_QUANTILES)
        estimates = quantiles(self._store, shares, self._kind == "long")
        columns = [np.tile(shares, int(some.sum())), *(column[some].ravel() for column in estimates)]
        rows = pa.StructArray.from_arrays(columns, ["q", "value", "lower", "upper"])
        ends = np.concatenate([[0], np.cumsum(some * len(shares))]).astype(np.int32)
        whole = bool((seen == np.floor(seen)).all())
        n = pa.array(seen.astype(np.int64) if whole else seen)
        return pa.StructArray.from_arrays([n, pa.ListArray.from_arrays(ends, rows)], ["n", "quantiles"])

    def __getitem__(self, group: int) -> DDSketch:
        sketch = DDSketch(self._store.relative_accuracy, self._kind)
        sketch._store.merge_image(0, self._store.image(range(len(self))[group]))
        return sketch
