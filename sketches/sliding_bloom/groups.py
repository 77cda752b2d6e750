"""Sliding Bloom filters of many groups: cells for groups with enough rows, a shared log for the others."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from ..bloom.sketch import keys_of
from ..core.aggregated import Aggregated
from ..core.columns.column_kinds import hashable
from ..core.columns.times import as_times
from ..core.groups.group_numbers import as_groups, frozen, grown
from ..core.groups.sparse_tables import ROWS_AT_ONCE, LazyTables
from ..core.protocol import Groups, SketchError
from ..core.values.image_columns import as_images, joined_images
from ..core.values.item_kinds import as_items, joint_kind, kind_with
from . import cells as kernels
from .images import NAME, Image, parse, write
from .sketch import SlidingBloom, Span, parameters_of


class SlidingBloomGroups(Groups):
    """`SlidingBloom` for many groups; a group with n values takes 24 · n bytes, and at most its filter's
    size.

    >>> groups = SlidingBloomGroups(2, capacity=100, window=60.0)
    >>> groups.update([0, 1, 1], ["ann", "bob", "cat"], time=[0, 0, 90_000_000])
    >>> "ann" in groups[0], "bob" in groups[1], "cat" in groups[1]
    (True, False, True)
    """

    aggregate: ClassVar = Aggregated(
        {"capacity": 100_000, "fpp": 0.01, "window": 3600.0},
        inputs=("time",),
        of_column=hashable,
        hashes=True,
    )

    def __init__(
        self, n: int = 0, capacity: int = 100_000, fpp: float = 0.01, window: Span = 3600.0, seed: int = 0
    ) -> None:
        """Raises `SketchError` as `SlidingBloom` does."""
        self._parameters = parameters_of(capacity, fpp, window, seed)
        self._how = kernels.width_of(self._parameters.window), self._parameters.window
        size = self._parameters.blocks * kernels.CELLS
        self._heads = np.empty((0, 2), np.int64)
        self._n = 0
        patience = max(size // 96, 8)  # lines with a quarter of the cells' bytes
        self._lazy = LazyTables((size,), np.uint8, 3, patience, self._replay)
        self.resize(n)

    def _replay(self, tables: np.ndarray, slots: np.ndarray, log: np.ndarray, keep: bool) -> int:
        return kernels.replay(tables, slots, self._heads, log, *self._how, keep)

    def __len__(self) -> int:
        return self._n

    def resize(self, n: int) -> None:
        """Grow to `n` groups; the new ones are empty. Never shrinks."""
        self._lazy.resize(n)
        self._heads = grown(self._heads, len(self._lazy.slots), kernels.NEVER)
        self._n = max(n, self._n)

    def update(self, groups: np.ndarray, values: Any, time: Any = None) -> None:
        """Add values at their `time`, one per row, to their groups. Raises what `SlidingBloom.update`
        raises."""
        items = as_items(values, self.item_kind, NAME)
        times = frozen(np.ascontiguousarray(items.per_value(as_times(time, items.length, NAME))))
        numbers = frozen(items.per_value(as_groups(groups, items.length, self._n)))
        keys = frozen(keys_of(items, "blocked", self._parameters.seed))
        lazy = self._lazy
        for first in range(0, len(keys), ROWS_AT_ONCE):
            part = slice(first, first + ROWS_AT_ONCE)
            lazy.make_room(len(keys[part]))
            to = lazy.tables, lazy.slots, self._heads
            rows = numbers[part], keys[part], times[part], *self._how
            lazy.logged_up_to(kernels.add_grouped(*to, *rows, lazy.log, lazy.lines, lazy.logged))
        self.item_kind = kind_with(self.item_kind, items)

    def merge(self, groups: np.ndarray, column: pa.Array) -> None:
        """Merge serialised filters: `column[i]` into group `groups[i]`; nulls are skipped.

        Raises `SketchError`, naming the row, unless all are filters with the groups' parameters: then nothing
        was merged.
        """
        numbers, images = as_images(groups, column, self._n, NAME)
        read, item_kind = [], self.item_kind
        for at in range(len(numbers)):
            try:
                image = parse(images.data[images.offsets[at] : images.offsets[at + 1]])
                if image.parameters != self._parameters:
                    raise SketchError(
                        f"{NAME}: groups of {self._parameters} can't take a filter of {image.parameters}"
                    )
                item_kind = joint_kind(item_kind, image.item_kind, NAME)
            except SketchError as refused:
                raise SketchError(f"row {images.row(at)}: {refused}") from None
            read.append(image)
        some = [one for one in zip(numbers.tolist(), read) if one[1].latest != kernels.NEVER]
        self._lazy.give(np.array([group for group, _ in some], np.int64))
        for group, image in some:
            cells = self._lazy.tables[self._lazy.slots[group]]
            kernels.fold(cells, self._heads[group], image.cells(), image.latest, *self._how)
        self.item_kind = item_kind

    def to_arrow(self) -> pa.Array:
        """Return the filters' bytes, in group order."""
        lazy = self._lazy
        log = lazy.log[: lazy.lines]
        order = np.argsort(log[:, 0], kind="stable")
        ends = np.searchsorted(log[order, 0], np.arange(self._n + 1))
        return joined_images(
            write(self._image(group, log[order[ends[group] : ends[group + 1]]])) for group in range(self._n)
        )

    def _image(self, group: int, lines: np.ndarray) -> Image:
        """Return a group's image, from its cells or from its lines of the log."""
        slot, head = self._lazy.slots[group], self._heads[group]
        if slot < 0:
            places, steps = self._cells_of(lines, int(head[kernels.LATEST]))
        else:
            cells = self._lazy.tables[slot]
            kernels.trim(cells, head, *self._how)
            places = np.flatnonzero(cells)
            steps = cells[places]
        return Image(self._parameters, int(head[kernels.LATEST]), places, steps, self.item_kind)

    def _cells_of(self, lines: np.ndarray, latest: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the cells that a group's lines set, in ascending order, each with its last step."""
        width, window = self._how
        steps = lines[:, 2] // width - (kernels.first_step(latest, window) - 1)
        inside = steps > 0
        places = np.empty((int(inside.sum()), kernels.LANES), np.int64)
        kernels.places(np.ascontiguousarray(lines[inside, 1]), self._parameters.blocks, places)
        cells, marks = places.reshape(-1), np.repeat(steps[inside].astype(np.uint8), kernels.LANES)
        order = np.lexsort((marks, cells))
        cells, marks = cells[order], marks[order]
        last = np.append(cells[1:] != cells[:-1], True)[: len(cells)]
        return cells[last], marks[last]

    def __getitem__(self, group: int) -> SlidingBloom:
        group = range(self._n)[group]
        one = SlidingBloom.__new__(SlidingBloom)
        one._parameters = self._parameters
        one._cells = self._lazy.table(group)[None, :]
        one._heads = self._heads[group : group + 1].copy()
        one.item_kind = self.item_kind
        return one
