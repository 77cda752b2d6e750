"""Many REQ sketches in one set of arrays, by group number."""

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
from .estimate import quantiles
from .sketch import REQ
from .store import Store


def float_numbers(leaf: pa.DataType) -> dict[str, Any]:
    """Accept numbers that 4-byte floats can represent.

    Raises `TypeError` for timestamps, whose minutes floats can't distinguish, and for anything but numbers.
    """
    if pa.types.is_date(leaf) or pa.types.is_timestamp(leaf):
        raise TypeError(
            f"REQ keeps 4-byte floats, which can't tell the minutes of a {leaf} apart; ask for "
            "kll_quantiles, or cast it to a duration"
        )
    return numeric(leaf)


class REQGroups(Groups):
    """Many `REQ` sketches of one k in one pool of items.

    Errors and bytes are those of `REQ`; the column is `binary`, with one DataSketches image per group. A
    group with v values holds at most 2 v items, or 8, until it compacts.

    >>> groups = REQGroups(2)
    >>> groups.update([0, 1, 0], [1.0, 2.0, 3.0])
    >>> groups[0].n, groups[1].quantile(0.5)
    (2, 2.0)
    """

    aggregate: ClassVar = Aggregated({"k": 12, "high_ranks": True}, of_column=float_numbers, seeded=True)

    def __init__(self, n: int = 0, k: int = 12, high_ranks: bool = True, seed: int | None = None) -> None:
        self._store = Store(n, k, high_ranks, seed)

    def __len__(self) -> int:
        return self._store.n

    def resize(self, n: int) -> None:
        """Grow to `n` groups; the new ones are empty."""
        self._store.resize(n)

    def update(self, groups: np.ndarray, values: Any) -> None:
        """Add numbers to their groups. Raises `TypeError` for other types."""
        numbers = as_numbers(values, np.float32, REQ.family)
        at = numbers.per_value(as_groups(groups, numbers.length, len(self)))
        self._store.update(at, numbers.numbers)

    def merge(self, groups: np.ndarray, column: pa.Array) -> None:
        """Merge DataSketches images of any k.

        Raises `SketchError` for bytes that are not such a sketch, or of a sketch that is accurate at the
        other end; then nothing is merged.
        """
        numbers, images = as_images(groups, column, len(self), REQ.family)
        self._store.merge_images(numbers, images.data, images.offsets)

    def to_arrow(self) -> pa.Array:
        """Return a DataSketches image per group, as `binary` (`large_binary` beyond 2 GiB)."""
        return image_column(*self._store.images())

    def answers(self, **question: Any) -> pa.Array:
        """Return `REQ.answer` for each group: a struct of n and a list of quantiles."""
        shares = np.array(USUAL_QUANTILES)
        n = self._store.state.n
        some = n > 0
        fields = [column[some].ravel() for column in quantiles(self._store, shares)]
        # As in a single sketch's answer: JSON can't represent infinities.
        known = [pa.array(column, mask=~np.isfinite(column)) for column in fields]
        rows = pa.StructArray.from_arrays(
            [pa.array(np.tile(shares, int(some.sum()))), *known], ["q", "value", "lower", "upper"]
        )
        ends = np.concatenate([[0], np.cumsum(some * len(shares))]).astype(np.int32)
        return pa.StructArray.from_arrays(
            [pa.array(n.copy()), pa.ListArray.from_arrays(ends, rows)], ["n", "quantiles"]
        )

    def __getitem__(self, group: int) -> REQ:
        sketch = REQ(self._store.k, self._store.high_ranks, seed=0)
        sketch._store = self._store.one(range(len(self))[group])
        return sketch
