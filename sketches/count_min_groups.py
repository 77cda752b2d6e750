"""Count-min sketches of many groups: a table for those that have seen enough, a common log for the others."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from . import count_min_kernels as kernels
from .columns import Values
from .count_min import CountMin, accepted, keys_of, shape
from .count_min_bytes import header, image_size, parse
from .group_numbers import as_groups, grown
from .image_columns import as_images
from .java_random import next_ints
from .lazy_tables import ROWS_AT_ONCE, LazyTables
from .protocol import Groups, SketchError
from .weights import as_weights

_NONE = np.empty(0, np.int64)
_PATIENCE = 512
"""Rows after which a group gets a table of its own."""


class CountMinGroups(Groups):
    """`CountMin` for many groups; one that saw n values takes 24 · n bytes, and at most its table's 112 kB.

    Serialised every sketch has full size, as Spark's format wants it (mostly zeros, which compress).

    >>> groups = CountMinGroups(2, eps=0.01)
    >>> groups.update([0, 1, 0], ["a", "b", "a"])
    >>> groups[0].estimate("a"), groups[1].estimate("a")
    (2, 0)
    """

    def __init__(self, n: int = 0, eps: float = 0.001, confidence: float = 0.99, seed: int = 0) -> None:
        """Raises `SketchError` as `CountMin` does."""
        self._eps, self._confidence, self._seed = eps, confidence, seed
        self._depth, self._width = shape(eps, confidence, seed)
        self._factors = np.array(next_ints(seed, self._depth), np.uint64)
        self._inverse = kernels.inverse(self._width)
        self._n = 0
        self._total = np.zeros(0, np.int64)
        self._lazy = LazyTables((self._depth, self._width), np.int64, 3, _PATIENCE, self._replay)
        self.resize(n)

    def _replay(self, tables: np.ndarray, slots: np.ndarray, log: np.ndarray) -> int:
        return kernels.replay(tables, slots, log, self._factors, *self._inverse)

    def __len__(self) -> int:
        return self._n

    def resize(self, n: int) -> None:
        """Grow to `n` groups."""
        self._lazy.resize(n)
        self._total = grown(self._total, len(self._lazy.slots))
        self._n = max(n, self._n)

    def update(self, groups: np.ndarray, values: Any, **inputs: Any) -> None:
        """Count values in their groups, ``weight=`` giving whole numbers, one a row. Raises as for one."""
        found = accepted(values)
        rows = found.length
        numbers = found.per_value(as_groups(groups, rows, self._n))
        heavy = _NONE
        if inputs.get("weight") is not None:
            heavy = np.ascontiguousarray(found.per_value(as_weights(inputs["weight"], rows)))
        # as doubles, to see an overflow before it happens
        more = np.bincount(numbers, heavy if len(heavy) else None, minlength=self._n).astype(np.float64)
        if ((self._total[: self._n] + more) >= 2.0**62).any():
            raise OverflowError("count-min: the weights of a group add up to more than 2^62")
        keys, factors = keys_of(found, self._factors)
        for first in range(0, len(keys), ROWS_AT_ONCE):
            part = slice(first, first + ROWS_AT_ONCE)
            self._add(numbers[part], keys[part], heavy[part], factors)

    def _add(self, groups: np.ndarray, keys: np.ndarray, weights: np.ndarray, factors: np.ndarray) -> None:
        np.add.at(self._total, groups, weights if len(weights) else 1)
        lazy = self._lazy
        lazy.make_room(len(keys))
        rows = groups, keys, weights, factors, *self._inverse
        lazy.logged_up_to(
            kernels.add_grouped(lazy.tables, lazy.slots, *rows, lazy.log, lazy.lines, lazy.logged)
        )

    def merge(self, groups: np.ndarray, column: pa.Array) -> None:
        """Add serialised sketches of the same shape and seed; nulls are skipped.

        Raises `SketchError`, naming the row, for anything else; rows before it are merged.
        """
        numbers, found = as_images(groups, column, self._n, "count-min")
        if not len(found):
            return
        mine = (self._depth, self._width, self._seed)
        data = memoryview(found.data)  # type: ignore[arg-type]
        images = [data[a:b] for a, b in pairwise(found.offsets.tolist())]
        self._lazy.give(numbers[[int.from_bytes(image[4:12], "big") > 0 for image in images]])
        for row, group in enumerate(numbers.tolist()):
            image = parse(images[row])
            if (*image.table.shape, image.seed) != mine:
                raise SketchError(
                    f"count-min: row {row} has depth, width and seed {(*image.table.shape, image.seed)}, "
                    f"these groups have {mine}"
                )
            if int(self._total[group]) + image.total >= 1 << 62:
                raise OverflowError("count-min: the weights of a group add up to more than 2^62")
            if image.total:
                self._lazy.tables[self._lazy.slots[group]] += image.table
                self._total[group] += image.total

    def to_arrow(self) -> pa.Array:
        """Spark's bytes as `binary`, one sketch a group. Raises `OverflowError` beyond 2 GiB in all."""
        size = image_size(self._depth, self._width)
        if size * self._n >= 1 << 31:
            raise OverflowError(
                f"count-min: {self._n} sketches of {size} bytes don't fit one Arrow column; use a larger eps"
            )
        self._lazy.give(np.flatnonzero(self._lazy.logged > 0))
        out = np.empty((self._n, size), np.uint8)
        factors = next_ints(self._seed, self._depth)
        for group in range(self._n):
            head = header(int(self._total[group]), self._depth, self._width, factors)
            out[group, : len(head)] = np.frombuffer(head, np.uint8)
            slot = self._lazy.slots[group]
            cells = self._lazy.tables[slot].astype(">i8").view(np.uint8).ravel() if slot >= 0 else 0
            out[group, len(head) :] = cells
        ends = np.arange(self._n + 1, dtype=np.int32) * np.int32(size)
        return Values("binary", _NONE, ends, out.ravel(), None).to_arrow()

    def __getitem__(self, group: int) -> CountMin:
        group = range(self._n)[group]
        one = CountMin(self._eps, self._confidence, self._seed)
        one._set(self._seed, int(self._total[group]), self._lazy.table(group))
        return one
