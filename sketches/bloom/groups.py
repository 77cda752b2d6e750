"""Bloom filters of many groups: a filter for groups with enough rows, a shared log for the others."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from ..core.aggregated import Aggregated
from ..core.columns.column_kinds import hashable
from ..core.groups.group_numbers import as_groups
from ..core.groups.sparse_tables import ROWS_AT_ONCE, LazyTables
from ..core.protocol import Groups, SketchError
from ..core.values.image_columns import as_images, check_sums, image_column
from ..core.values.item_kinds import code_of, joint_kind, kind_of_code, kind_with
from . import images_many as many
from . import update as kernels
from .images import CHECK_AT, KIND_AT, START, UNKNOWN, Image, header, parse
from .shape import LAYOUTS, Layout, Shape, shape
from .sketch import Bloom, items_of, keys_of, seed_of


class BloomGroups(Groups):
    """`Bloom` for many groups; a group with n values takes 16 · n bytes, and at most the size of its filter.

    As much again may be free for later values. Serialised, every filter has full size (mostly zeros, which
    compress well).

    >>> groups = BloomGroups(2, capacity=100)
    >>> groups.update([0, 1], ["a", "b"])
    >>> "a" in groups[0], "a" in groups[1]
    (True, False)
    """

    aggregate: ClassVar = Aggregated({"capacity": 100_000, "fpp": 0.01}, of_column=hashable, hashes=True)

    def __init__(
        self,
        n: int = 0,
        capacity: int = 100_000,
        fpp: float = 0.01,
        layout: Layout = "blocked",
        seed: int = 0,
    ) -> None:
        """Raises `SketchError` as `Bloom` does."""
        self._shape = shape(capacity, fpp, layout)
        self._layout, self._seed = layout, seed_of(layout, seed)
        self._capacity, self._fpp = int(capacity), float(fpp)
        self._how = LAYOUTS[layout], self._shape.k
        words = np.zeros(self._shape.words, np.uint32)
        empty = Image(layout, words, self._shape.k, self._seed, self._capacity, self._fpp)
        self._header = np.frombuffer(header(empty), np.uint8)
        self._n = 0
        patience = max(self._shape.words // 16, 8)  # lines with a quarter of the filter's bytes
        self._lazy = LazyTables((self._shape.words,), np.uint32, 2, patience, self._replay)
        self.resize(n)

    def _replay(self, tables: np.ndarray, slots: np.ndarray, log: np.ndarray, keep: bool) -> int:
        return kernels.replay(tables, slots, log, *self._how, keep)

    def __len__(self) -> int:
        return self._n

    def resize(self, n: int) -> None:
        """Grow to `n` groups."""
        self._lazy.resize(n)
        self._n = max(n, self._n)

    def _rows(self, groups: np.ndarray, values: Any) -> tuple[np.ndarray, np.ndarray]:
        column = items_of(values, self.item_kind, self._layout)
        numbers = column.per_value(as_groups(groups, column.length, self._n))
        keys = keys_of(column, self._layout, self._seed)
        self.item_kind = kind_with(self.item_kind, column)
        return numbers, keys

    def update(self, groups: np.ndarray, values: Any) -> None:
        """Add values to their groups. Raises what `Bloom.update` raises."""
        numbers, keys = self._rows(groups, values)
        lazy = self._lazy
        for first in range(0, len(keys), ROWS_AT_ONCE):
            part = slice(first, first + ROWS_AT_ONCE)
            lazy.make_room(len(keys[part]))
            rows = numbers[part], keys[part], *self._how
            lazy.logged_up_to(
                kernels.add_grouped(lazy.tables, lazy.slots, *rows, lazy.log, lazy.lines, lazy.logged)
            )

    def admit(self, groups: np.ndarray, values: Any) -> np.ndarray:
        """Add values in turn; return for each whether it certainly was not in its group before."""
        numbers, keys = self._rows(groups, values)
        self._lazy.give(numbers)
        new = np.empty(len(keys), np.bool_)
        kernels.admit_grouped(self._lazy.tables, self._lazy.slots, numbers, keys, *self._how, new)
        return new

    def merge(self, groups: np.ndarray, column: pa.Array) -> None:
        """Add the values of serialised filters of the same shape; nulls are skipped.

        Raises `SketchError`, naming the row, for anything else: then nothing was merged.
        """
        numbers, images_column = as_images(groups, column, self._n, "bloom")
        if not len(images_column):
            return
        lazy = self._lazy
        lazy.give(numbers)
        starts, ends = images_column.offsets[:-1], images_column.offsets[1:]
        sums = np.zeros(len(images_column), np.uint32)
        if self._own:
            sums = self._check_sums(images_column.data, starts, ends)
        kind = np.uint8(code_of(self.item_kind, UNKNOWN)[0])
        how = lazy.tables.view(np.uint64), lazy.slots, self._header, self._own, kind
        at, why, kind = many.merge(*how, images_column.data, images_column.offsets, numbers, sums)
        item_kind = kind_of_code(kind, UNKNOWN, "bloom")
        if why:
            image = parse(memoryview(images_column.data)[starts[at] : ends[at]])  # type: ignore[arg-type]
            if why == many.ANOTHER_KIND:
                joint_kind(item_kind, image.item_kind, f"bloom: row {images_column.row(at)}")
            theirs = (image.layout, Shape(len(image.words), image.k), image.seed)
            mine = (self._layout, self._shape, self._seed)
            raise SketchError(
                f"bloom: row {images_column.row(at)} is of shape {theirs}, these groups are of {mine}"
            )
        self.item_kind = item_kind

    @property
    def _own(self) -> bool:
        return self._layout == "blocked"

    def _check_sums(self, data: np.ndarray, starts: np.ndarray, ends: np.ndarray) -> np.ndarray:
        """Compute the checksums that filters in our own layout should have."""
        of_headers = check_sums(data, starts, np.minimum(starts + CHECK_AT, ends))
        return check_sums(data, np.minimum(starts + START, ends), ends, of_headers)

    def to_arrow(self) -> pa.Array:
        """Return a filter per group as `binary`, in the layout's bytes. Raises `OverflowError` beyond 2
        GiB."""
        if 4 * self._shape.words * self._n >= 1 << 31:
            raise OverflowError(
                f"bloom: {self._n} filters of {4 * self._shape.words} bytes don't fit one Arrow column; "
                "use a smaller capacity"
            )
        lazy = self._lazy
        lazy.give(np.flatnonzero(lazy.logged > 0))
        size = len(self._header) + 4 * self._shape.words
        data = np.empty(self._n * size, np.uint8)
        head = self._header.copy()
        if self._own:
            head[KIND_AT] = code_of(self.item_kind, UNKNOWN)[0]
        many.write(lazy.tables.view(np.uint64), lazy.slots, head, self._own, data)
        offsets = np.arange(self._n + 1) * size
        if self._own:
            sums = self._check_sums(data, offsets[:-1], offsets[1:])
            rows = data.reshape(self._n, size)
            rows[:, CHECK_AT:START] = sums.astype("<u4").view(np.uint8).reshape(-1, START - CHECK_AT)
        return image_column(data, offsets)

    def __getitem__(self, group: int) -> Bloom:
        group = range(self._n)[group]
        bloom = Bloom.__new__(Bloom)
        words = self._lazy.table(group)
        bloom._set(Image(self._layout, words, self._shape.k, self._seed, self._capacity, self._fpp))
        return self._kind_to(bloom)
