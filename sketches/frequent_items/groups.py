"""Frequent items of many groups in one set of tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from ..core.aggregated import Aggregated
from ..core.columns.column_kinds import as_type, frequent
from ..core.columns.columns import Values, as_values
from ..core.columns.utf8_repair import readable
from ..core.columns.weights import as_weights, total
from ..core.groups.arena import packed, with_rows
from ..core.groups.group_numbers import as_groups, frozen
from ..core.groups.group_order import by_group, is_scattered
from ..core.parameters import one_of, whole
from ..core.protocol import Groups, SketchError
from ..core.resume import NO_ROOM, resume
from ..core.values.image_columns import as_images, image_column
from ..core.values.item_kinds import as_items, as_longs, kind_with
from ..core.values.numbers import check_signed
from . import images
from . import update as kernels
from .deletion import delete, overdrawn
from .estimate import counted, top
from .images import Kind
from .item_forms import STORED, bytes_of, doubles_of, stored_bytes, stored_doubles
from .ranking import rank
from .store import GROUP, LONG, STRING, Tables, new_tables, table_sizes
from .string_arena import compact_texts, identify

_ROWS_AT_ONCE = 1 << 16
_DAY_US = 86_400_000_000
_NONE = np.empty(0, np.int64)


def _given(groups: Any) -> Any:
    """Reject None as a caller's group numbers: in `_change`, None stands for the only group."""
    if groups is None:
        raise ValueError("expected whole group numbers, one a row, got None")
    return groups


class FrequentItemsGroups(Groups):
    """`FrequentItems` for many groups, with all counters in one arena; a group of few items takes 100 bytes.

    >>> tags = FrequentItemsGroups(2)
    >>> tags.update([0, 1, 0], ["a", "b", "a"])
    >>> tags[0].top(1)
    [Item(item='a', estimate=2, lower=2, upper=2)]
    """

    aggregate: ClassVar = Aggregated(
        {"max_size": 4096},
        answer={"k": 10},
        of_column=frequent,
        kinds=("string", "long", "double", "binary"),
        must_name_kind=True,
        spark_merge="approx_top_k_combine",
    )

    def __init__(self, n: int = 0, max_size: int = 4096, kind: Kind = "string", type: Any = None) -> None:
        """`type` is the type of times, which are counted as microseconds; answers have this type.

        Raises `SketchError` for another kind, or a size that is not a power of two from 8 to 2^26, and
        `ValueError` for another type.
        """
        self.max_size = whole("frequent items", "max_size", max_size, 8, 1 << images.MAX_LG)
        if self.max_size & (self.max_size - 1):
            raise SketchError(
                f"frequent items: max_size must be a power of two from 8 to 2^26, got {max_size}"
            )
        one_of("frequent items", "kind", kind, ("string", "long", "double", "binary"))
        self.kind: Kind = kind
        self._type = None if type is None else as_type("frequent items", type)
        if self._type is not None and not pa.types.is_temporal(self._type):
            raise ValueError(f"frequent items: type must be one of times, got {self._type}")
        self._n = 0
        width = STRING if kind in ("string", "binary") else LONG
        self._tables: Tables = new_tables(width, self.max_size.bit_length() - 1)
        self.resize(n)

    def __len__(self) -> int:
        return self._n

    def resize(self, n: int) -> None:
        """Grow to `n` groups."""
        rows = with_rows(self._tables.groups, n, lambda first, end: np.zeros(end - first, GROUP))
        self._tables = self._tables._replace(groups=rows)
        self._n = max(n, self._n)

    def _widen(self, max_size: int) -> None:
        """Raise the size of each group to that of a sketch with this map size, if larger."""
        self.max_size = max(self.max_size, max_size)
        self._tables = self._tables._replace(lg_max=self.max_size.bit_length() - 1)

    def update(self, groups: np.ndarray, values: Any, weight: Any = None) -> None:
        """Count values in their groups, with an integer `weight` per row. Raises what `FrequentItems`
        raises."""
        self._change(_given(groups), values, weight, deleting=False)

    def delete(self, groups: np.ndarray, values: Any, weight: Any = None) -> None:
        """Remove values that were counted in their groups. Raises what `FrequentItems.delete` raises."""
        self._change(_given(groups), values, weight, deleting=True)

    def _change(self, groups: np.ndarray | None, values: Any, weights: Any, deleting: bool) -> None:
        column = self._accepted(values)
        rows, item_kind = column.length, kind_with(self.item_kind, column)
        if self.kind == "double" and len(column):
            item_kind = "double"
        numbers = _NONE if groups is None else as_groups(groups, rows, self._n)
        numbers = _NONE if self._n == 1 else column.per_value(numbers)
        heavy = _NONE
        if weights is not None:
            heavy = np.ascontiguousarray(column.per_value(as_weights(weights, rows)))
            if not heavy.all():
                kept = np.flatnonzero(heavy)
                numbers = numbers[kept] if len(numbers) else numbers
                column, heavy = as_values(column.to_arrow().take(pa.array(kept))), heavy[kept]
        if not deleting:
            self._refuse_overflow(total(heavy) if weights is not None else len(column))
        if deleting and len(column):
            self._refuse_too_many(numbers, heavy, len(column))
            self._delete(numbers, column, heavy)
        elif len(column):
            self._add(numbers, column, heavy, deleting)
        self.item_kind = item_kind

    def _delete(self, numbers: np.ndarray, column: Values, heavy: np.ndarray) -> None:
        """Delete all rows, or none if one evidently was not there."""
        t = self._tables
        touched = np.unique(numbers) if len(numbers) else np.zeros(1, np.int64)
        before, sizes = t.groups[touched], table_sizes(t)[touched]
        first = np.repeat(before["base"] - (np.cumsum(sizes) - sizes), sizes)
        words = first + np.arange(len(first))  # the words of their tables
        saved = t.cells[words]
        self._add(numbers, column, heavy, deleting=True)
        group = overdrawn(t, touched)
        if group >= 0:
            t.cells[words], t.groups[touched] = saved, before
            raise ValueError(
                f"frequent items: more of an item would be deleted from group {group} than was ever added; "
                "nothing was deleted"
            )

    def _refuse_overflow(self, more: int) -> None:
        """Raise `OverflowError` unless all upper bounds fit int64 with this much more weight."""
        groups = self._tables.groups
        if more + int(groups["weight"].max(initial=0)) + int(groups["offset"].max(initial=0)) >= 1 << 63:
            raise OverflowError("frequent items: the weights add up to more than int64 holds")

    def _refuse_too_many(self, groups: np.ndarray, weights: np.ndarray, rows: int) -> None:
        each = weights if len(weights) else np.ones(rows)
        numbers = groups if len(groups) else np.zeros(rows, np.int64)
        less = np.bincount(numbers, each, minlength=self._n)
        weight = self._tables.groups["weight"]
        short = np.flatnonzero(less > weight[: self._n])
        if len(short):
            raise ValueError(
                f"frequent items: can't delete {less[short[0]]:.0f} from group {short[0]}, which counted "
                f"{weight[short[0]]}"
            )

    def _accepted(self, values: Any) -> Values:
        column = as_values(values)
        if self.kind == "double":
            return stored_doubles(as_items(column, "double", "frequent items"))
        longs = as_longs(column) if column.kind == "float64" else None
        if longs is not None and (self.kind == "long" or not len(longs)):
            column = longs  # a column of only NaN, pandas' way to write only gaps, becomes empty
        if len(column) and column.kind != STORED[self.kind]:
            raise TypeError(f"frequent items: this sketch counts {self.kind}s, got a column of {column.kind}")
        # `top` returns times as integers, so these can be looked up as well.
        if column.temporal and len(column) and self.item_kind not in (None, column.temporal):
            raise TypeError(f"frequent items: this sketch counts {self.item_kind}s, got {column.temporal}s")
        check_signed(column, "frequent items")
        if column.kind == "binary":
            return stored_bytes(column)
        if column.kind != "string":
            return column
        texts = column.to_arrow()
        shown = readable(texts)
        return column if shown is texts else replace(as_values(shown), rows=column.rows, height=column.height)

    def _add(self, groups: np.ndarray, items: Values, weights: np.ndarray, deleting: bool) -> None:
        work = kernels.new_work()
        for begin in range(0, len(items), _ROWS_AT_ONCE):
            part = slice(begin, min(begin + _ROWS_AT_ONCE, len(items)))
            own, columns = groups[part], [*self._words(items, part, deleting), weights[part]]
            if is_scattered(frozen(own), self._n):
                columns = [by_group(own, one, self._n)[1] if len(one) else one for one in columns]
                own = np.repeat(np.arange(self._n), np.bincount(own, minlength=self._n))
            rows = self._rows(own, columns[:-1], columns[-1], items.data)
            if deleting:
                delete(self._tables, rows)
            else:
                self._count_rows(rows, work)

    def _words(self, column: Values, part: slice, deleting: bool) -> tuple[np.ndarray, ...]:
        """Return the words of a part of the values, as `_rows` takes them, and make room for their bytes."""
        if len(self._tables.cell) == LONG:
            return (column.numbers[part],)
        offsets = column.offsets[part.start : part.stop + 1].astype(np.int64)
        keys, mores, begins = np.empty((3, len(offsets) - 1), np.int64)
        needed = identify(frozen(offsets), frozen(column.data), keys, mores, begins)
        if not deleting:
            self._make_room(needed)
        return keys, mores, begins

    def _rows(
        self, groups: np.ndarray, words: Sequence[np.ndarray], weights: np.ndarray, data: np.ndarray
    ) -> kernels.Rows:
        """Return items as a kernel takes them; a string has three words, a long only one."""
        three = words if len(words) == 3 else (*words, *words, *words)
        return kernels.Rows._make(map(frozen, (groups, *three, weights, data)))

    def _count_rows(self, rows: kernels.Rows, work: kernels.Work) -> None:
        resume(lambda at: kernels.add(self._tables, rows, work, at), self._enlarge)

    def _enlarge(self, why: int) -> None:
        """Make more room for tables, or for purging one."""
        t = self._tables
        if why == NO_ROOM:
            (cells,) = packed((t.cells,), t.extent, t.groups["base"], table_sizes(t))
            self._tables = t._replace(cells=cells)
        else:
            self._tables = t._replace(scratch=np.empty(int(t.extent["wanted"][0]), np.int64))
            t.extent["wanted"] = 0

    def _make_room(self, needed: int) -> None:
        """Make room for `needed` bytes of strings, after dropping strings that are no longer counted."""
        t = self._tables
        used = int(t.spent["used"][0])
        if used + needed <= len(t.texts):
            return
        live = np.empty(used, np.uint8)
        size = compact_texts(t, live)
        texts = np.empty(2 * size + 4 * needed, np.uint8)
        texts[:size] = live[:size]
        self._tables = t._replace(texts=texts)

    def merge(self, groups: np.ndarray, column: pa.Array) -> None:
        """Add the counters of serialised sketches; nulls are skipped.

        Raises `SketchError`, naming the row, for bytes that are not such an image: then nothing was merged.
        """
        numbers, images_column = as_images(groups, column, self._n, "frequent items")
        if not len(images_column):
            return
        row, code = images.check_images(
            images_column.data, images_column.offsets, len(self._tables.cell), images.MARKS[self.kind]
        )
        if code:
            message = f"row {images_column.row(row)} is not an image of one: {images.FAULTS[code]}"
            raise SketchError(f"frequent items ({self.kind}s): {message}")
        most = self._tables.groups["weight"] + self._tables.groups["offset"]
        if images.beyond_int64(most, numbers, images_column.data, images_column.offsets):
            raise OverflowError("frequent items: the weights add up to more than int64 holds")
        if len(self._tables.cell) == STRING:
            self._make_room(int(images_column.offsets[-1]) - int(images_column.offsets[0]))
        given = numbers, images_column.data, images_column.offsets
        resume(lambda at: images.merge_images(self._tables, *given, at), self._enlarge)

    def to_arrow(self) -> pa.Array:
        """Return an image per group as `binary`. Raises `OverflowError` beyond 2 GiB in all."""
        ends = np.zeros(self._n + 1, np.int64)
        images.image_ends(self._tables, self._n, ends)
        if ends[-1] >= 1 << 31:
            raise OverflowError(
                f"frequent items: {ends[-1]} bytes of sketches don't fit one Arrow column; use fewer groups "
                "or a smaller max_size"
            )
        out = np.empty(int(ends[-1]), np.uint8)
        heap, places = np.empty((2, int(self._tables.groups["active"].max(initial=0))), np.int64)
        images.write_images(self._tables, images.MARKS[self.kind], heap, places, ends, out)
        return image_column(out, ends)

    def answers(self, k: int = 10, **question: Any) -> pa.ListArray:
        """Return `FrequentItems.answer` for each group: a list of structs of item and bounds."""
        lists = top(self._tables, self._n, whole("frequent items", "k", k, 0))
        if self.kind in ("double", "binary"):
            return _with_items(lists, self._logical(lists.values.field(0)))
        return lists if self._type is None else _typed(lists, self._type)

    def _logical(self, items: pa.Array) -> pa.Array:
        """Convert stored items back to the caller's items."""
        if self.kind == "double":
            return doubles_of(items)
        return bytes_of(items) if self.kind == "binary" else items

    def __getitem__(self, group: int) -> Any:
        one: Any = self._single(self.max_size, self.kind)
        items, counts = self._ranked(range(self._n)[group])
        one.update(self._logical(items), counts)
        one.item_kind = self.item_kind
        for name in ("weight", "offset"):
            one._groups._tables.groups[name][0] = self._tables.groups[name][group]
        return one

    def _ranked(self, group: int) -> tuple[pa.Array, np.ndarray]:
        """Return a group's items and counters, largest first."""
        n = int(self._tables.groups["active"][group])
        heap, places = np.empty((2, n), np.int64)
        rank(self._tables, group, n, heap, places, np.empty(1, np.int64))
        counts, items = counted(self._tables, places)
        return items, counts

    def _count(self, group: int, values: Values) -> int:
        words = self._words(values, slice(0, 1), deleting=True)
        rows = self._rows(_NONE, words, _NONE, values.data)
        return int(kernels.count_of(self._tables, group, rows))


def _typed(lists: pa.ListArray, kind: pa.DataType) -> pa.ListArray:
    """Convert answers' items from microseconds to the type of the times."""
    items = lists.values.field(0)
    if pa.types.is_date(kind):
        items = pa.array(items.to_numpy() // _DAY_US).cast(pa.int32()).view(kind)
    else:
        items = items.view(kind)
    return _with_items(lists, items)


def _with_items(lists: pa.ListArray, items: pa.Array) -> pa.ListArray:
    _, *others = lists.values.flatten()
    names = [field.name for field in lists.type.value_type]
    return pa.ListArray.from_arrays(lists.offsets, pa.StructArray.from_arrays([items, *others], names))
