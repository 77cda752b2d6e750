"""Frequent items of many groups in one set of tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import pyarrow as pa

from ..core.aggregated import Aggregated
from ..core.column_kinds import long_or_string
from ..core.columns import Values, as_values
from ..core.group_numbers import as_groups, frozen, grown
from ..core.group_order import by_group, is_scattered
from ..core.image_columns import as_images
from ..core.numbers import check_signed
from ..core.parameters import one_of, whole
from ..core.protocol import Groups, SketchError
from ..core.weights import as_weights, total
from . import images
from . import store as tables
from . import update as kernels
from . import update_strings as strings
from .deletion import cells_of, delete, overdrawn, put_back
from .estimate import top

if TYPE_CHECKING:
    from .sketch import FrequentItems

Kind = Literal["string", "long"]

_ROWS_AT_ONCE = 1 << 16
_NONE = np.empty(0, np.int64)


class FrequentItemsGroups(Groups):
    """`FrequentItems` for many groups, all counters in one arena; a group of few items takes 100 bytes.

    >>> tags = FrequentItemsGroups(2)
    >>> tags.update([0, 1, 0], ["a", "b", "a"])
    >>> tags[0].top(1)
    [Item(item='a', estimate=2, lower=2, upper=2)]
    """

    aggregate: ClassVar = Aggregated(
        {"max_size": 4096},
        answer={"k": 10},
        of_column=long_or_string,
        kinds=("string", "long"),
        must_tell_kind=True,
        spark_merge="approx_top_k_combine",
    )

    def __init__(self, n: int = 0, max_size: int = 4096, kind: Kind = "string") -> None:
        """Raises `SketchError` for another kind, or a size that is no power of two from 8 to 2^26."""
        self.max_size = whole("frequent items", "max_size", max_size, 8, 1 << images.MAX_LG)
        if self.max_size & (self.max_size - 1):
            raise SketchError(
                f"frequent items: max_size must be a power of two from 8 to 2^26, got {max_size}"
            )
        one_of("frequent items", "kind", kind, ("string", "long"))
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
        self._change(groups, values, inputs.get("weight"), deleting=False)

    def delete(self, groups: np.ndarray, values: Any, **inputs: Any) -> None:
        """Take values back that were counted in their groups. Raises as for one."""
        self._change(groups, values, inputs.get("weight"), deleting=True)

    def _change(self, groups: np.ndarray | None, values: Any, weights: Any, deleting: bool) -> None:
        found = self._accepted(values)
        rows = found.length
        numbers = _NONE if groups is None else as_groups(groups, rows, self._n)
        numbers = _NONE if self._n == 1 else found.per_value(numbers)
        heavy = _NONE
        if weights is not None:
            heavy = np.ascontiguousarray(found.per_value(as_weights(weights, rows)))
            if not heavy.all():
                kept = np.flatnonzero(heavy)
                numbers = numbers[kept] if len(numbers) else numbers
                found, heavy = as_values(found.to_arrow().take(pa.array(kept))), heavy[kept]
        if not deleting:
            self._refuse_overflow(total(heavy) if weights is not None else len(found))
        if deleting and len(found):
            self._refuse_too_many(numbers, heavy, len(found))
            self._delete(numbers, found, heavy)
        elif len(found):
            self._add(numbers, found, heavy, deleting)

    def _delete(self, numbers: np.ndarray, found: Values, heavy: np.ndarray) -> None:
        """Delete all of the rows, or none where that shows one that was not there."""
        t = self._tables
        touched = np.unique(numbers) if len(numbers) else np.zeros(1, np.int64)
        saved = cells_of((*t,), touched, self._width)
        counts = [(column, column[touched]) for column in (t.active, t.offset, t.weight)]
        self._add(numbers, found, heavy, deleting=True)
        group = overdrawn((*t,), touched, self._width)
        if group >= 0:
            put_back((*t,), touched, self._width, saved)
            for column, before in counts:
                column[touched] = before
            raise ValueError(
                f"frequent items: more of an item would be deleted from group {group} than was ever added; "
                "nothing was deleted"
            )

    def _refuse_overflow(self, more: int) -> None:
        """Raise `OverflowError` unless the upper bound of any item fits int64 with so much more weight."""
        if len(self._tables.weight):
            t = self._tables
            if more + int(t.weight.max()) + int(t.offset.max()) >= 1 << 63:
                raise OverflowError("frequent items: the weights add up to more than int64 holds")

    def _refuse_too_many(self, groups: np.ndarray, weights: np.ndarray, rows: int) -> None:
        each = weights if len(weights) else np.ones(rows)
        numbers = groups if len(groups) else np.zeros(rows, np.int64)
        less = np.bincount(numbers, each, minlength=self._n)
        short = np.flatnonzero(less > self._tables.weight[: self._n])
        if len(short):
            raise ValueError(
                f"frequent items: can't delete {less[short[0]]:.0f} from group {short[0]}, which counted "
                f"{self._tables.weight[short[0]]}"
            )

    def _accepted(self, values: Any) -> Values:
        found = as_values(values)
        wanted = "string" if self.kind == "string" else "int64"
        if len(found) and found.kind != wanted:
            raise TypeError(f"frequent items: this sketch counts {self.kind}s, got a column of {found.kind}")
        check_signed(found, "frequent items")
        return found

    def _add(self, groups: np.ndarray, found: Values, weights: np.ndarray, deleting: bool) -> None:
        for begin in range(0, len(found), _ROWS_AT_ONCE):
            part = slice(begin, min(begin + _ROWS_AT_ONCE, len(found)))
            some = frozen(groups[part])
            order = None
            if is_scattered(some, self._n):
                _, order = by_group(some, np.arange(len(some)), self._n)
            if self.kind == "long":
                columns: tuple[np.ndarray, ...] = (found.numbers[part],)
            else:
                offsets = found.offsets[begin : part.stop + 1]
                columns = tuple(np.empty(part.stop - begin, np.int64) for _ in range(3))
                needed = strings.identify(frozen(offsets), frozen(found.data), *columns)
                if not deleting:
                    self._make_room(needed)
            rows = some, *columns, weights[part]
            if order is not None:
                rows = tuple(column[order] if len(column) else column for column in rows)
            rows = tuple(frozen(column) for column in rows)
            if deleting:
                some, keys, *others, heavy = rows
                more, begins = others or (_NONE, _NONE)
                delete((*self._tables,), self._arena, found.data, some, keys, more, begins, heavy)
            else:
                self._count_rows(rows, frozen(found.data))

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
        numbers, found = as_images(groups, column, self._n, "frequent items")
        if not len(found):
            return
        data, offsets = frozen(found.data), frozen(found.offsets)
        row, code = images.check_images(data, offsets, self._width)
        if code:
            told = f"row {found.row(row)} is no image of one: {images.FAULTS[code]}"
            raise SketchError(f"frequent items ({self.kind}s): {told}")
        numbers = frozen(numbers)
        if images.beyond_int64((*self._tables,), numbers, data, offsets):
            raise OverflowError("frequent items: the weights add up to more than int64 holds")
        if self.kind == "string":
            self._make_room(int(found.offsets[-1]) - int(found.offsets[0]))
        row = 0
        while row < len(found):
            some = numbers, data, offsets, row, self._width, self._lg_max
            row = images.merge_images((*self._tables,), self._arena, *some)
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

    def answers(self, k: int = 10, **question: Any) -> pa.ListArray:
        """What `FrequentItems.answer` gives, of each group: a list of structs of item and bounds."""
        return top(self._tables, self._arena, self._n, self._width, whole("frequent items", "k", k, 0))

    def __getitem__(self, group: int) -> FrequentItems:
        from .sketch import FrequentItems

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
