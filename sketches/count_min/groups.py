"""Count-min sketches of many groups: a table for those that have seen enough, a common log for the others."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from ..core.aggregated import Aggregated
from ..core.column_kinds import countable
from ..core.group_numbers import as_groups, grown
from ..core.image_columns import as_images, joined_images
from ..core.java_random import next_ints
from ..core.lazy_tables import ROWS_AT_ONCE, LazyTables
from ..core.protocol import Groups, SketchError
from ..core.weights import as_weights
from . import update as kernels
from .images import header, parse
from .images_sparse import MAGIC, Sparse, parse_sparse, sparse_image
from .sketch import CountMin, accepted, keys_of, shape

_NONE = np.empty(0, np.int64)
_PATIENCE = 8
"""A group gets a table once its lines in the log, of 32 bytes each, are an eighth of its counters' number."""


class CountMinGroups(Groups):
    """`CountMin` for many groups; one that saw n values takes 32 · n bytes, and at most 170 kB.

    Bytes as `CountMin.to_bytes` has them: Spark's, or our own where few counters are in use.

    >>> groups = CountMinGroups(2, eps=0.01)
    >>> groups.update([0, 1, 0], ["a", "b", "a"])
    >>> groups[0].estimate("a"), groups[1].estimate("a")
    (2, 0)
    """

    aggregate: ClassVar = Aggregated({"eps": 0.001, "confidence": 0.99, "seed": 0}, of_column=countable)

    def __init__(self, n: int = 0, eps: float = 0.001, confidence: float = 0.99, seed: int = 0) -> None:
        """Raises `SketchError` as `CountMin` does."""
        self._eps, self._confidence, self._seed = eps, confidence, seed
        self._depth, self._width = shape(eps, confidence, seed)
        self._factors = np.array(next_ints(seed, self._depth), np.uint64)
        self._inverse = kernels.inverse(self._width)
        self._n = 0
        self._total = np.zeros(0, np.int64)
        patience = max(self._depth * self._width // _PATIENCE, 16)
        self._lazy = LazyTables((self._depth, self._width), np.int64, 4, patience, self._replay)
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
        data = memoryview(found.data)  # type: ignore[arg-type]
        read: list[tuple[int, Sparse]] = []
        try:
            for i, (first, end) in enumerate(pairwise(found.offsets.tolist()) if len(found) else ()):
                image, group, row = data[first:end], int(numbers[i]), found.row(i)
                if image[: len(MAGIC)] == MAGIC:
                    sparse = parse_sparse(image)
                    self._check(row, group, (sparse.depth, sparse.width, sparse.seed), sparse.total)
                    self._total[group] += sparse.total
                    read.append((group, sparse))
                    continue
                dense = parse(image)
                self._check(row, group, (*dense.table.shape, dense.seed), dense.total)
                if dense.total:
                    self._lazy.give(np.array([group]))
                    self._lazy.tables[self._lazy.slots[group]] += dense.table
                    self._total[group] += dense.total
        finally:
            self._add_places(read)

    def _check(self, row: int, group: int, shape: tuple[int, ...], total: int) -> None:
        mine = (self._depth, self._width, self._seed)
        if shape != mine:
            raise SketchError(
                f"count-min: row {row} has depth, width and seed {shape}, these groups have {mine}"
            )
        if int(self._total[group]) + total >= 1 << 62:
            raise OverflowError("count-min: the weights of a group add up to more than 2^62")

    def _add_places(self, read: list[tuple[int, Sparse]]) -> None:
        """Add the counters of sketches to their groups' tables, or to the log, many sketches at a time."""
        lazy = self._lazy
        sizes = np.array([len(sparse.places) for _, sparse in read], np.int64)
        shares = np.cumsum(sizes) // ROWS_AT_ONCE
        for share in np.unique(shares):
            part = np.flatnonzero(shares == share)
            groups = np.repeat(np.array([read[at][0] for at in part]), sizes[part])
            places = np.concatenate([read[at][1].places for at in part])
            counts = np.concatenate([read[at][1].counts for at in part])
            slots = lazy.slots[groups]
            kept = slots >= 0
            tables = lazy.tables.reshape(-1, self._depth * self._width)
            np.add.at(tables, (slots[kept], places[kept]), counts[kept])
            rows = np.flatnonzero(~kept)
            lazy.make_room(len(rows))
            lines = lazy.log[lazy.lines : lazy.lines + len(rows)]
            lines[:, 0], lines[:, 1], lines[:, 2] = groups[rows], places[rows], counts[rows]
            lines[:, 3] = kernels.PLACE
            np.add.at(lazy.logged, groups[rows], 1)
            lazy.logged_up_to(lazy.lines + len(rows))

    def to_arrow(self) -> pa.Array:
        """The bytes of `CountMin.to_bytes`, one sketch a group, as `binary` (`large_binary` beyond 2 GiB)."""
        factors = next_ints(self._seed, self._depth)
        empty = np.zeros((self._depth, self._width), np.int64)

        def image(table: np.ndarray, total: int) -> bytes:
            sparse = sparse_image(self._seed, total, table)
            return sparse or header(total, self._depth, self._width, factors) + table.astype(">i8").tobytes()

        return joined_images(map(image, self._tables(empty), self._total.tolist()))

    def _tables(self, scratch: np.ndarray) -> Iterator[np.ndarray]:
        """Each group's table, until the next is asked for; `scratch` is one without a count."""
        lazy = self._lazy
        owners = lazy.log[: lazy.lines, 0]
        order = np.argsort(owners, kind="stable")
        firsts = np.searchsorted(owners[order], np.arange(self._n + 1))
        for group in range(self._n):
            if lazy.slots[group] >= 0:
                yield lazy.tables[lazy.slots[group]]
                continue
            lines = order[firsts[group] : firsts[group + 1]]
            if len(lines):
                kernels.replay_one(scratch, lazy.log, lines, self._factors, *self._inverse)
            yield scratch
            if len(lines):
                scratch[:] = 0

    def answers(self, **question: Any) -> pa.Array:
        """What `CountMin.answer` gives, of each group."""
        total = self._total[: self._n].copy()
        error = np.array([int(2 / self._width * each) for each in total.tolist()], np.int64)
        columns = [total, error, np.full(self._n, 1 - 0.5**self._depth)]
        return pa.StructArray.from_arrays(columns, ["total", "error", "confidence"])

    def __getitem__(self, group: int) -> CountMin:
        group = range(self._n)[group]
        one = CountMin(self._eps, self._confidence, self._seed)
        one._set(self._seed, int(self._total[group]), self._lazy.table(group))
        return one
