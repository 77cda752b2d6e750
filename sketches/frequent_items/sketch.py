"""The most frequent items, of strings, numbers or bytes: counters with bounds.

Misra and Gries' counters with the purge of Anderson and others: when a map is full, the median of its
counters is subtracted from all of them, and counters that reach zero are dropped. `offset` is the sum of all
subtracted counts, so the true frequency of an item always lies between its counter and its counter plus
`offset`.

Source: Misra and Gries 1982; Anderson, Bevan, Lang, Liberty, Rhodes, Thaler, "A High-Performance Algorithm
for Identifying Frequent Items in Data Streams", IMC 2017; Agarwal and others, "Mergeable Summaries", 2012.
The bytes are those of Apache DataSketches; see `images`.
"""

from __future__ import annotations

import math
from typing import Any, Literal, NamedTuple, Self, cast

import numpy as np
import pyarrow as pa

from ..core.answers import finite
from ..core.arguments import plain
from ..core.columns.arrays import as_array
from ..core.columns.columns import as_values
from ..core.parameters import real, whole
from ..core.protocol import Sketch, SketchError, required_kind
from ..core.values.item_kinds import as_longs, joint_kind
from .groups import FrequentItemsGroups, Kind
from .images import MAX_LG, MIN_LG, kind_of
from .item_forms import STORED

__all__ = ["FrequentItems", "FrequentItemsGroups", "Item"]


_KINDS: dict[str, Kind] = {"int64": "long", "float64": "double", "string": "string", "binary": "binary"}
"""The kind of items by the kind of a column's values."""


class Item(NamedTuple):
    """A frequent item: its true frequency lies between `lower` and `upper`; `estimate` is `upper`."""

    item: Any
    estimate: int
    lower: int
    upper: int


def _plain(item: Any) -> Any:
    """Convert an item for JSON."""
    return item.hex() if isinstance(item, bytes) else finite(item)


class FrequentItems(Sketch):
    """The most frequent strings, numbers or bytes of a stream, each with bounds on its frequency.

    `max_size` is the size of DataSketches' map, a power of two from 8: at most three quarters of it are
    counted at a time. Promise, for every item and with certainty: ``lower ≤ frequency ≤ upper``, and
    ``upper − lower`` (`error`, one number for all items) is at most ``3.5 / max_size`` of the stream's weight
    (in practice 2.7, because purges use the true median), also for merged sketches. An item with a larger
    share of the stream is therefore always found. At 4,096, the default, that is 0.085 % of the stream; a
    full sketch takes 50 kB plus its strings in bytes, and up to four times that in memory.

    `kind` is the type of the items, "string", "long" (whole numbers), "double" or "binary"; by default the
    first values decide. Floats that are all whole numbers are longs then. 0.0 and −0.0 are one item, and so
    are all NaN.
    After merging with a sketch of another `max_size`, the sketch has the larger size and the promise of the
    smaller one. Merging is commutative to the counter, and associative up to the bounds.

    Source: Anderson, Bevan, Lang, Liberty, Rhodes, Thaler, "A High-Performance Algorithm for Identifying
    Frequent Items in Data Streams", IMC 2017; Apache DataSketches.

    >>> import streamgauge as sg
    >>> tags = sg.FrequentItems().update(["a", "b", "a", None, "c", "a"])
    >>> sg.FrequentItems().update([7, 7]).top()
    [Item(item=7, estimate=2, lower=2, upper=2)]
    >>> tags.top(2)
    [Item(item='a', estimate=3, lower=3, upper=3), Item(item='b', estimate=1, lower=1, upper=1)]
    """

    family = "frequent items"

    def __init__(self, max_size: int = 4096, kind: Kind | None = None) -> None:
        """Raises `SketchError` for another kind, or a size that is not a power of two from 8 to 2^26."""
        self._groups: FrequentItemsGroups = FrequentItemsGroups(
            1, max_size, "string" if kind is None else kind
        )
        self._undecided = kind is None

    def _fix_kind(self, kind: Kind) -> None:
        """Fix the kind of the values, unless it was passed or decided before."""
        if self._undecided:
            self._groups = FrequentItemsGroups(1, self.max_size, kind)
            self._undecided = False

    def _change(self, values: Any, weight: Any, deleting: bool) -> Self:
        """Count values or remove them; the first accepted values decide the kind."""
        groups = self._groups
        if self._undecided:
            values = as_array(values)
            column = as_values(values)
            if column.kind == "float64" and (longs := as_longs(column)) is not None:
                column = longs
            if len(column):
                kind = _KINDS[column.kind]
                groups = FrequentItemsGroups(1, self.max_size, kind)
        groups._change(None, values, weight, deleting)
        if groups is not self._groups:
            self._groups, self._undecided = groups, False
        return self

    @property
    def item_kind(self) -> str | None:
        """The kind of the values (`values.item_kinds`), which also distinguishes the sorts of times among
        longs.
        """
        return self._groups.item_kind

    @item_kind.setter
    def item_kind(self, kind: str | None) -> None:
        self._groups.item_kind = kind

    @property
    def max_size(self) -> int:
        """Size of the largest map; at most three quarters of it hold counters."""
        return self._groups.max_size

    @property
    def kind(self) -> Kind:
        """The type of the items; "string" until the first values decide."""
        return self._groups.kind

    @property
    def weight(self) -> int:
        """Sum of all weights: the number of rows if none were given."""
        return int(self._groups._tables.groups["weight"][0])

    @property
    def error(self) -> int:
        """Upper minus lower bound, the same for every item; 0 as long as all items fit."""
        return int(self._groups._tables.groups["offset"][0])

    def _saw_nothing(self) -> bool:
        return not self.weight

    def __len__(self) -> int:
        """Items counted now."""
        return int(self._groups._tables.groups["active"][0])

    def update(self, values: Any, weight: Any = None) -> Self:
        """Count values, each with its weight (a whole number from 0), if given.

        Raises `TypeError` for values of the other kind, `SketchError` for unsigned ones beyond int64,
        `ValueError` for weights that are negative or not one per value, `OverflowError` if the sum of all
        weights exceeds int64.
        """
        return self._change(values, weight, deleting=False)

    def delete(self, values: Any, weight: Any = None) -> Self:
        """Remove values that were counted before, for streams with retractions (SpaceSaving±).

        Bounds stay certain as long as no value is deleted more often than it was added. `error` shrinks only
        when nothing is left: it is at most ``3.5 / max_size`` of all weight ever added, and therefore at most
        `α` times that share of the remaining weight if at most ``1 − 1/α`` was deleted. Raises as `update`
        does, and `ValueError` if the weight exceeds the total, or if a value evidently was not there.

        >>> import streamgauge as sg
        >>> sg.FrequentItems().update(["a", "a", "b"]).delete(["a", "b"]).top()
        [Item(item='a', estimate=1, lower=1, upper=1)]
        """
        return self._change(values, weight, deleting=True)

    def merge(self, other: Self) -> Self:
        """Add the counters of another sketch of the same kind. Raises `SketchError` for another kind."""
        if not isinstance(other, FrequentItems):
            raise SketchError(f"frequent items: can't merge {other!r}")
        if not (self._undecided or other._undecided) and other.kind != self.kind:
            raise SketchError(f"frequent items: can't merge {other!r} into a sketch of {self.kind}s")
        item_kind = joint_kind(self.item_kind, other.item_kind, self.family)
        self._groups._refuse_overflow(other.weight + other.error)
        if not other._undecided:
            self._fix_kind(other.kind)
        if other._saw_nothing():
            return self
        self.item_kind = item_kind
        self._groups._widen(other.max_size)
        self._groups.merge(np.zeros(1, np.int64), other._groups.to_arrow())
        return self

    def bounds(self, item: Any) -> tuple[int, int]:
        """Lower and upper bound of one item's frequency; (0, `error`) for an item without a counter.

        Raises `ValueError` for a column of items.

        >>> import streamgauge as sg
        >>> sg.FrequentItems(kind="long").update([7, 7]).bounds(7)
        (2, 2)
        """
        if self._undecided:
            return 0, 0
        values = self._groups._accepted(item)
        if len(values) != 1:
            raise ValueError(f"frequent items: bounds of one item at a time, got {len(values)}")
        count = self._groups._count(0, values)
        return count, count + self.error

    def estimate(self, item: Any) -> int:
        """The upper bound of an item that has a counter, 0 for any other, as in DataSketches."""
        lower, upper = self.bounds(item)
        return upper if lower else 0

    def top(self, k: int = 10) -> list[Item]:
        """The `k` items with the largest counters, the largest first; equal ones by item.

        An item whose lower bound exceeds the next item's upper bound is certainly in the right place.
        """
        k = whole("frequent items", "k", k, 0)
        items, counts = self._groups._ranked(0)
        last = len(counts) - 1 if k >= len(counts) else max(k, 1) - 1
        kept = int(np.searchsorted(-counts, -counts[last], "right")) if len(counts) else 0
        logical = self._groups._logical(items[:kept]).to_pylist()
        ranked = sorted(
            zip(counts[:kept].tolist(), items[:kept].to_pylist(), logical), key=lambda one: (-one[0], one[1])
        )
        return [Item(item, n + self.error, n, n + self.error) for n, _, item in ranked[:k]]

    def frequent(
        self,
        threshold: int | None = None,
        no_false: Literal["positives", "negatives"] = "positives",
    ) -> list[Item]:
        """All items more frequent than `threshold` (default and least: `error`), the largest first.

        ``no_false="positives"`` returns only items that certainly are (lower bound above it); ``"negatives"``
        returns all that possibly are (upper bound above it), so that none is missed. Raises `ValueError` for
        any other value.

        >>> import streamgauge as sg
        >>> tags = sg.FrequentItems().update(["a", "b", "a"])
        >>> [found.item for found in tags.frequent(1)]
        ['a']
        """
        if no_false not in ("positives", "negatives"):
            raise ValueError(f"no_false must be 'positives' or 'negatives', got {no_false!r}")
        least = 0 if threshold is None else plain(threshold)
        real("frequent items", "threshold", least, -math.inf, math.inf)
        above = max(least, self.error)
        return [
            item
            for item in self.top(len(self))
            if (item.lower if no_false == "positives" else item.upper) > above
        ]

    def answer(self, k: int = 10) -> list[dict[str, Any]]:
        """`top` as dictionaries of item, estimate, lower and upper; bytes are hexadecimal, as in JSON."""
        return [{**one._asdict(), "item": _plain(one.item)} for one in self.top(k)]

    def to_bytes(self) -> bytes:
        """The image that DataSketches and Spark read; equal sketches give equal bytes."""
        return self._groups.to_arrow()[0].as_py()

    @classmethod
    def from_bytes(cls, data: bytes, kind: Kind | None = None) -> Self:
        """Read a sketch from an image of this kind.

        Our own images record their kind; for images from Java, C++ and Spark it must be given. Raises
        `SketchError` if it is missing, and for anything that is not such an image.
        """
        if kind is None:
            kind = kind_of(data)
            if kind is None and data[:1] and data[0] & 63 != 1:
                kind = cast(Kind, required_kind(cls.family, None, tuple(STORED)))
        largest = data[3] if len(data) > 3 and MIN_LG <= data[3] <= MAX_LG else MIN_LG
        sketch = cls(1 << largest, kind)
        sketch._groups.merge(np.zeros(1, np.int64), pa.array([data], pa.binary()))
        return sketch

    def copy(self) -> Self:
        """Return an independent equal sketch."""
        return self._of_my_kind(self.from_bytes(self.to_bytes(), None if self._undecided else self.kind))

    def _untold(self) -> tuple[Any, ...]:
        return (None if self._undecided else self.kind,)

    def _compared(self) -> tuple[Any, ...]:
        return (self.kind,)

    def __repr__(self) -> str:
        top = ", ".join(f"{i.item!r}: {i.lower:,}…{i.upper:,}" for i in self.top(3)) or "nothing yet"
        return f"FrequentItems(max_size={self.max_size}, kind={self.kind!r}, weight={self.weight:,}; {top})"
