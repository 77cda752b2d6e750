"""Count-min sketches of many groups: a table for those that have seen enough, a common log for the others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from . import count_min_kernels as kernels
from .columns import Values, as_array, as_values
from .count_min import CountMin, accepted, keys_of, shape
from .count_min_bytes import header, image_size, parse
from .group_numbers import as_groups, grown
from .java_random import next_ints
from .protocol import Groups, SketchError
from .weights import as_weights

_NONE = np.empty(0, np.int64)
_ROWS_AT_ONCE = 1 << 16
_LOGGED = 512
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
        self._slot = np.full(0, -1, np.int64)
        self._logged = np.zeros(0, np.int64)
        self._tables = np.zeros((0, self._depth, self._width), np.int64)
        self._used_tables = 0
        self._log = np.empty((0, 3), np.int64)
        self._used_log = 0
        self._replay_at = _ROWS_AT_ONCE
        self.resize(n)

    def __len__(self) -> int:
        return self._n

    def resize(self, n: int) -> None:
        """Grow to `n` groups."""
        if n > len(self._slot):
            room = max(n, 2 * self._n)
            self._slot = grown(self._slot, room, -1)
            self._logged = grown(self._logged, room)
            self._total = grown(self._total, room)
        self._n = max(n, self._n)

    def update(self, groups: np.ndarray, values: Any, **inputs: Any) -> None:
        """Count values in their groups, ``weight=`` giving whole numbers, one a row. Raises as for one."""
        values = values if isinstance(values, Values) else as_array(values)
        rows = len(groups) if isinstance(values, Values) and values.rows is not None else len(values)
        found = accepted(values)
        numbers = found.per_value(as_groups(groups, rows, self._n))
        heavy = _NONE
        if inputs.get("weight") is not None:
            heavy = np.ascontiguousarray(found.per_value(as_weights(inputs["weight"], rows)))
        # as doubles, to see an overflow before it happens
        more = np.bincount(numbers, heavy if len(heavy) else None, minlength=self._n).astype(np.float64)
        if ((self._total[: self._n] + more) >= 2.0**62).any():
            raise OverflowError("count-min: the weights of a group add up to more than 2^62")
        keys, factors = keys_of(found, self._factors)
        for first in range(0, len(keys), _ROWS_AT_ONCE):
            part = slice(first, first + _ROWS_AT_ONCE)
            self._add(numbers[part], keys[part], heavy[part], factors)

    def _add(self, groups: np.ndarray, keys: np.ndarray, weights: np.ndarray, factors: np.ndarray) -> None:
        np.add.at(self._total, groups, weights if len(weights) else 1)
        self._log = grown(self._log, max(self._used_log + len(keys), min(2 * len(self._log), 1 << 22)))
        self._used_log = kernels.add_grouped(
            self._tables,
            self._slot,
            groups,
            keys,
            weights,
            factors,
            *self._inverse,
            self._log,
            self._used_log,
            self._logged,
        )
        if self._used_log > self._replay_at:
            self._give_tables(np.flatnonzero(self._logged > _LOGGED))
            self._replay_at = max(2 * self._used_log, _ROWS_AT_ONCE)

    def _give_tables(self, groups: np.ndarray) -> None:
        """Tables for these groups, filled from the log."""
        groups = groups[self._slot[groups] < 0]
        if not len(groups):
            return
        needed = self._used_tables + len(groups)
        if needed > len(self._tables):
            self._tables = grown(self._tables, max(needed, 2 * self._used_tables))
        self._slot[groups] = np.arange(self._used_tables, needed)
        self._used_tables = needed
        self._logged[groups] = 0
        log = self._log[: self._used_log]
        self._used_log = kernels.replay(self._tables, self._slot, log, self._factors, *self._inverse)

    def _table(self, group: int) -> np.ndarray:
        """A copy of one group's counters."""
        slot = self._slot[group]
        if slot >= 0:
            return self._tables[slot].copy()
        table = np.zeros((1, self._depth, self._width), np.int64)
        if self._logged[group]:
            log = self._log[: self._used_log]
            lines = log[log[:, 0] == group]
            kernels.replay(table, np.zeros(group + 1, np.int64), lines, self._factors, *self._inverse)
        return table[0]

    def merge(self, groups: np.ndarray, column: pa.Array) -> None:
        """Add serialised sketches of the same shape and seed; nulls are skipped.

        Raises `SketchError`, naming the row, for anything else; rows before it are merged.
        """
        column = as_array(column)
        numbers = as_groups(groups, len(column), self._n)
        found = as_values(column)
        if not len(found):
            return
        if found.kind != "binary":
            raise SketchError(f"count-min: expected a column of binary to merge, got {column.type}")
        numbers = found.per_value(numbers)
        mine = (self._depth, self._width, self._seed)
        data = memoryview(found.data)  # type: ignore[arg-type]
        for row, group in enumerate(numbers.tolist()):
            image = parse(data[int(found.offsets[row]) : int(found.offsets[row + 1])])
            if (*image.table.shape, image.seed) != mine:
                raise SketchError(
                    f"count-min: row {row} has depth, width and seed {(*image.table.shape, image.seed)}, "
                    f"these groups have {mine}"
                )
            if int(self._total[group]) + image.total >= 1 << 62:
                raise OverflowError("count-min: the weights of a group add up to more than 2^62")
            if image.total:
                self._give_tables(np.array([group]))
                self._tables[self._slot[group]] += image.table
                self._total[group] += image.total

    def to_arrow(self) -> pa.Array:
        """Spark's bytes as `binary`, one sketch a group. Raises `OverflowError` beyond 2 GiB in all."""
        size = image_size(self._depth, self._width)
        if size * self._n >= 1 << 31:
            raise OverflowError(
                f"count-min: {self._n} sketches of {size} bytes don't fit one Arrow column; use a larger eps"
            )
        self._give_tables(np.flatnonzero(self._logged > 0))
        out = np.empty((self._n, size), np.uint8)
        factors = next_ints(self._seed, self._depth)
        for group in range(self._n):
            head = header(int(self._total[group]), self._depth, self._width, factors)
            out[group, : len(head)] = np.frombuffer(head, np.uint8)
            slot = self._slot[group]
            cells = self._tables[slot].astype(">i8").view(np.uint8).ravel() if slot >= 0 else 0
            out[group, len(head) :] = cells
        ends = np.arange(self._n + 1, dtype=np.int32) * np.int32(size)
        return Values("binary", _NONE, ends, out.ravel(), None).to_arrow()

    def __getitem__(self, group: int) -> CountMin:
        group = range(self._n)[group]
        one = CountMin(self._eps, self._confidence, self._seed)
        one._set(self._seed, int(self._total[group]), self._table(group))
        return one
