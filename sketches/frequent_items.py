"""Which items are the most frequent? Counters with bounds, for strings and longs.

Misra and Gries' counters with the purge of Anderson and others: when a map is full, the median of its
counters is taken from all of them and what falls to zero is dropped. Every count that was taken is in
`offset`, so the true frequency of an item lies between its counter and its counter plus `offset`, always.

Source: Misra and Gries 1982; Anderson, Bevan, Lang, Liberty, Rhodes, Thaler, "A High-Performance Algorithm
for Identifying Frequent Items in Data Streams", IMC 2017; Agarwal and others, "Mergeable Summaries", 2012.
Bytes as Apache DataSketches has them, see `frequent_items_bytes`.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, Self

import numpy as np
import pyarrow as pa

from . import frequent_items_bytes as images
from . import frequent_items_kernels as kernels
from . import frequent_items_strings as strings
from . import frequent_items_tables as tables
from .columns import Values, as_array, as_values
from .group_numbers import as_groups, frozen, grown
from .group_order import by_group
from .protocol import Groups, Sketch, SketchError
from .weights import as_weights, total

Kind = Literal["string", "long"]

_ROWS_AT_ONCE = 1 << 16
_NONE = np.empty(0, np.int64)


class Item(NamedTuple):
    """A frequent item: its true frequency lies between `lower` and `upper`; `estimate` is `upper`."""

    item: Any
    estimate: int
    lower: int
    upper: int


class FrequentItems(Sketch):
    """The most frequent strings or longs of a stream, each with bounds on its frequency.

    `max_size` is the size of DataSketches' map, a power of two from 8: at most three quarters of it are
    counted at a time. Promise, for every item and with certainty: ``lower ≤ frequency ≤ upper``, and
    ``upper − lower`` (`error`, one number for all items) is at most ``3.5 / max_size`` of the stream's
    weight (2.7 in fact, as purges take the true median), merged sketches included. So an item with more than
    that share of the stream is always found. At 4,096, the default, that is 0.085 % of the stream; a full
    sketch takes 50 kB and its strings in bytes, up to four times that in memory.

    Merged with a sketch of another `max_size`, it takes the larger one; the promise is then the smaller
    one's. Merging is commutative to the counter, and associative up to the bounds.

    >>> tags = FrequentItems().update(["a", "b", "a", None, "c", "a"])
    >>> tags.top(2)
    [Item(item='a', estimate=3, lower=3, upper=3), Item(item='b', estimate=1, lower=1, upper=1)]
    """

    family = "frequent items"

    def __init__(self, max_size: int = 4096, kind: Kind = "string") -> None:
        """Raises `SketchError` for another kind, or a size that is no power of two from 8 to 2^26."""
        self._groups = FrequentItemsGroups(1, max_size=max_size, kind=kind)

    @property
    def max_size(self) -> int:
        """Size of the largest map; three quarters of it are counted at most."""
        return self._groups.max_size

    @property
    def kind(self) -> Kind:
        """What is counted: "string" or "long"."""
        return self._groups.kind

    @property
    def weight(self) -> int:
        """Sum of all weights: the rows counted, where none were given."""
        return int(self._groups._tables.weight[0])

    @property
    def error(self) -> int:
        """Upper minus lower bound, the same for every item; 0 as long as all of them fitted."""
        return int(self._groups._tables.offset[0])

    def __len__(self) -> int:
        """Items counted now."""
        return int(self._groups._tables.active[0])

    def update(self, values: Any, weights: Any = None) -> Self:
        """Count values, each with its weight (a whole number from 0) if given.

        Raises `TypeError` for values of the other kind, `ValueError` for weights that are negative or not
        one a value, `OverflowError` where all weights together exceed int64.
        """
        array = as_array(values)
        self._groups._update(_NONE, array, weights, len(array))
        return self

    def merge(self, other: Self) -> Self:
        """Add the counters of another sketch of the same kind. Raises `SketchError` for another kind."""
        if not isinstance(other, FrequentItems) or other.kind != self.kind:
            raise SketchError(f"frequent items: can't merge {other!r} into a sketch of {self.kind}s")
        self._groups.max_size = max(self.max_size, other.max_size)
        self._groups.merge(np.zeros(1, np.int64), other._groups.to_arrow())
        return self

    def bounds(self, item: Any) -> tuple[int, int]:
        """Lower and upper bound of one item's frequency; (0, `error`) for an item not counted now.

        >>> FrequentItems(kind="long").update([7, 7]).bounds(7)
        (2, 2)
        """
        values = self._groups._accepted(item)
        if len(values) != 1:
            raise ValueError(f"frequent items: bounds of one item at a time, got {len(values)}")
        count = self._groups._count(0, values)
        return count, count + self.error

    def estimate(self, item: Any) -> int:
        """The upper bound of an item counted now, 0 for any other, as DataSketches has it."""
        lower, upper = self.bounds(item)
        return upper if lower else 0

    def top(self, k: int = 10) -> list[Item]:
        """The `k` items with the largest counters, the largest first; equal ones by item.

        Those whose lower bound exceeds the next item's upper bound are certainly in order.
        """
        items, counts = self._groups._dense(0)
        kept = len(counts) if k >= len(counts) else int(np.searchsorted(-counts, -counts[k - 1], "right"))
        ranked = sorted(
            zip(counts[:kept].tolist(), items[:kept].to_pylist()), key=lambda pair: (-pair[0], pair[1])
        )
        return [Item(item, n + self.error, n, n + self.error) for n, item in ranked[: max(k, 0)]]

    def frequent(
        self,
        threshold: int | None = None,
        no_false: Literal["positives", "negatives"] = "positives",
    ) -> list[Item]:
        """All items more frequent than `threshold` (default and least: `error`), the largest first.

        ``no_false="positives"``: only items that certainly are (lower bound above it). ``"negatives"``: all
        that possibly are (upper bound above it), so that none is missed.

        >>> tags = FrequentItems().update(["a", "b", "a"])
        >>> [found.item for found in tags.frequent(1)]
        ['a']
        """
        if no_false not in ("positives", "negatives"):
            raise ValueError(f"no_false must be 'positives' or 'negatives', got {no_false!r}")
        above = self.error if threshold is None else max(threshold, self.error)
        return [
            item
            for item in self.top(len(self))
            if (item.lower if no_false == "positives" else item.upper) > above
        ]

    def answer(self, k: int = 10) -> list[dict[str, Any]]:
        """`top` as dictionaries of item, estimate, lower and upper."""
        return [item._asdict() for item in self.top(k)]

    def to_bytes(self) -> bytes:
        """The image that DataSketches and Spark read; equal sketches give equal bytes."""
        return self._groups.to_arrow()[0].as_py()

    @classmethod
    def from_bytes(cls, data: bytes, kind: Kind = "string") -> Self:
        """The sketch an image of that kind holds; the image itself doesn't say which it is.

        Raises `SketchError` for anything that is no such image.
        """
        largest = data[3] if len(data) > 3 and images.MIN_LG <= data[3] <= images.MAX_LG else images.MIN_LG
        sketch = cls(1 << largest, kind)
        sketch._groups.merge(np.zeros(1, np.int64), pa.array([data], pa.binary()))
        return sketch

    def copy(self) -> Self:
        """An independent equal sketch."""
        return self.from_bytes(self.to_bytes(), self.kind)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self).from_bytes, (self.to_bytes(), self.kind)

    def __eq__(self, other: object) -> bool:
        same = isinstance(other, FrequentItems) and self.kind == other.kind
        return same and self.to_bytes() == other.to_bytes()  # type: ignore[attr-defined]

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        top = ", ".join(f"{i.item!r}: {i.lower:,}…{i.upper:,}" for i in self.top(3)) or "nothing yet"
        return f"FrequentItems(max_size={self.max_size}, kind={self.kind!r}, weight={self.weight:,}; {top})"


class FrequentItemsGroups(Groups):
    """`FrequentItems` for many groups, all counters in one arena; a group of few items takes 100 bytes.

    >>> tags = FrequentItemsGroups(2)
    >>> tags.update([0, 1, 0], ["a", "b", "a"])
    >>> tags[0].top(1)
    [Item(item='a', estimate=2, lower=2, upper=2)]
    """

    def __init__(self, n: int = 0, max_size: int = 4096, kind: Kind = "string") -> None:
        """Raises `SketchError` for another kind, or a size that is no power of two from 8 to 2^26."""
        if max_size not in [1 << lg for lg in range(images.MIN_LG, images.MAX_LG + 1)]:
            raise SketchError(
                f"frequent items: max_size must be a power of two from 8 to 2^26, got {max_size}"
            )
        if kind not in ("string", "long"):
            raise SketchError(f"frequent items: kind must be 'string' or 'long', got {kind!r}")
        self.max_size = max_size
        self.kind: Kind = kind
        self._n = 0
        self._width = tables.STRING if kind == "string" else tables.LONG
        empty = np.zeros(0, np.int64)
        self._tables = tables.Tables(
            empty, empty, np.zeros(0, np.int8), empty, empty, empty, tables.new_heap()
        )
        self._arena = np.empty(0, np.uint8)
        self.resize(n)

    def __len__(self) -> int:
        return self._n

    @property
    def _lg_max(self) -> int:
        return self.max_size.bit_length() - 1

    def resize(self, n: int) -> None:
        """Grow to `n` groups."""
        if n > len(self._tables.base):
            room = max(n, 2 * self._n)
            t = self._tables
            larger = {
                name: grown(getattr(t, name), room) for name in ("base", "lg", "active", "offset", "weight")
            }
            self._tables = t._replace(**larger)
        self._n = max(n, self._n)

    def update(self, groups: np.ndarray, values: Any, **inputs: Any) -> None:
        """Count values in their groups, ``weight=`` giving whole numbers, one a row. Raises as for one."""
        if not isinstance(values, Values):
            values = as_array(values)
        rows = len(groups) if isinstance(values, Values) and values.rows is not None else len(values)
        self._update(as_groups(groups, rows, self._n), values, inputs.get("weight"), rows)

    def _update(self, groups: np.ndarray, values: Any, weights: Any, rows: int) -> None:
        found = self._accepted(values)
        groups = _NONE if self._n == 1 else found.per_value(groups)
        heavy = _NONE
        if weights is not None:
            heavy = np.ascontiguousarray(found.per_value(as_weights(weights, rows)))
            if total(heavy) + int(self._tables.weight.max(initial=0)) >= 1 << 63:
                raise OverflowError("frequent items: the weights add up to more than int64 holds")
            if not heavy.all():
                kept = np.flatnonzero(heavy)
                groups = groups[kept] if len(groups) else groups
                found, heavy = as_values(found.to_arrow().take(pa.array(kept))), heavy[kept]
        if len(found):
            self._add(groups, found, heavy)

    def _accepted(self, values: Any) -> Values:
        found = as_values(values)
        wanted = "string" if self.kind == "string" else "int64"
        if len(found) and found.kind != wanted:
            raise TypeError(f"frequent items: this sketch counts {self.kind}s, got a column of {found.kind}")
        return found

    def _add(self, groups: np.ndarray, found: Values, weights: np.ndarray) -> None:
        for begin in range(0, len(found), _ROWS_AT_ONCE):
            part = slice(begin, min(begin + _ROWS_AT_ONCE, len(found)))
            some = frozen(groups[part])
            order = by_group(some, self._n) if len(some) else None
            if self.kind == "long":
                columns: tuple[np.ndarray, ...] = (found.numbers[part],)
            else:
                offsets = found.offsets[begin : part.stop + 1]
                columns = tuple(np.empty(part.stop - begin, np.int64) for _ in range(3))
                self._make_room(strings.identify(frozen(offsets), frozen(found.data), *columns))
            rows = some, *columns, weights[part]
            if order is not None:
                rows = tuple(column[order] if len(column) else column for column in rows)
            self._count_rows(tuple(frozen(column) for column in rows), frozen(found.data))

    def _count_rows(self, rows: tuple[np.ndarray, ...], data: np.ndarray) -> None:
        """Groups, keys (of strings two and where they begin in `data`) and weights into the tables."""
        row, n = 0, len(rows[1])
        while row < n:
            if self.kind == "long":
                groups, keys, weights = rows
                row = kernels.add_longs((*self._tables,), groups, keys, weights, row, self._lg_max)
            else:
                groups, keys, mores, begins, weights = rows
                row = strings.add_strings(
                    (*self._tables,),
                    self._arena,
                    data,
                    groups,
                    keys,
                    mores,
                    begins,
                    weights,
                    row,
                    self._lg_max,
                )
            if row < n:
                self._enlarge()

    def _enlarge(self) -> None:
        """More room for tables."""
        cells = self._tables.cells
        larger = np.empty(max(2 * len(cells), int(self._tables.heap[tables.WANTED]), 64), np.int64)
        larger[: len(cells)] = cells
        self._tables = self._tables._replace(cells=larger)

    def _make_room(self, needed: int) -> None:
        """Room for `needed` bytes of strings, after dropping those no longer counted."""
        used = int(self._tables.heap[tables.BYTES])
        if used + needed <= len(self._arena):
            return
        live = np.empty(used, np.uint8)
        size = strings.compact_strings((*self._tables,), self._arena, live)
        self._arena = np.empty(2 * size + 4 * needed, np.uint8)
        self._arena[:size] = live[:size]

    def merge(self, groups: np.ndarray, column: pa.Array) -> None:
        """Add the counters of serialised sketches; nulls are skipped.

        Raises `SketchError`, naming the row, for bytes that are no such image: then nothing was merged.
        """
        column = as_array(column)
        numbers = as_groups(groups, len(column), self._n)
        found = as_values(column)
        if not len(found):
            return
        if found.kind != "binary":
            raise SketchError(f"frequent items: expected a column of binary to merge, got {column.type}")
        data, offsets = frozen(found.data), frozen(found.offsets)
        row, code = images.check_images(data, offsets, self._width)
        if code:
            at = row if found.rows is None else int(found.rows[row])
            raise SketchError(
                f"frequent items ({self.kind}s): row {at} is no image of one: {images.FAULTS[code]}"
            )
        numbers = frozen(found.per_value(numbers))
        if self.kind == "string":
            self._make_room(int(found.offsets[-1]) - int(found.offsets[0]))
        row = 0
        while row < len(found):
            some = numbers, data, offsets, row, self._width, self._lg_max
            row = images.merge_images((*self._tables,), self._arena, *some)
            if row < 0:
                raise OverflowError("frequent items: the weights add up to more than int64 holds")
            if row < len(found):
                self._enlarge()

    def to_arrow(self) -> pa.Array:
        """The images as `binary`, one a group. Raises `OverflowError` beyond 2 GiB in all."""
        ends = np.zeros(self._n + 1, np.int64)
        images.image_ends((*self._tables,), self._n, self._width, ends)
        if ends[-1] >= 1 << 31:
            raise OverflowError(
                f"frequent items: {ends[-1]} bytes of sketches don't fit one Arrow column; use fewer groups "
                "or a smaller max_size"
            )
        out = np.empty(int(ends[-1]), np.uint8)
        images.write_images((*self._tables,), self._arena, self._n, self._width, self._lg_max, ends, out)
        return Values("binary", _NONE, ends.astype(np.int32), out, None).to_arrow()

    def __getitem__(self, group: int) -> FrequentItems:
        one = FrequentItems(self.max_size, self.kind)
        items, counts = self._dense(range(self._n)[group])
        one.update(items, counts)
        one._groups._tables.weight[0] = self._tables.weight[group]
        one._groups._tables.offset[0] = self._tables.offset[group]
        return one

    def _dense(self, group: int) -> tuple[pa.Array, np.ndarray]:
        """Items and counters of a group, the largest first."""
        n = int(self._tables.active[group])
        keys, counts, mores, places = (np.empty(n, np.int64) for _ in range(4))
        images.dense((*self._tables,), group, self._width, keys, counts, mores, places)
        if self.kind == "long":
            return pa.array(keys), counts
        offsets = np.zeros(n + 1, np.int64)
        data = np.empty(strings.SHORT * n + int(self._tables.heap[tables.BYTES]), np.uint8)
        strings.copy_strings(keys, mores, places, self._arena, offsets, data)
        return Values("string", _NONE, offsets, data, None).to_arrow(), counts

    def _count(self, group: int, values: Values) -> int:
        if self.kind == "long":
            return int(kernels.find_long((*self._tables,), group, values.numbers[0]))
        offsets, data = values.offsets, values.data
        return int(strings.find_string((*self._tables,), self._arena, group, offsets, data))
