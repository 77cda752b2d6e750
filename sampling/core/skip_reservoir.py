"""Samples whose priorities never change: rows enter by jumps, and engines can merge them as plain columns."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
import pyarrow as pa

from ...sketches.core.arrays import as_input
from ...sketches.core.columns import as_values
from ...sketches.core.group_numbers import as_groups
from ...sketches.core.protocol import SketchError
from .bottom_k import BottomK, BottomKGroups, checked_k
from .images import Parts, samples_of
from .items import Rows, as_rows, bits_of
from .pool import Pool
from .priority import Bits


class JumpingGroups(BottomKGroups):
    """Many samples over a `Pool`; a family gives the kernel by which its rows enter (`_enter`)."""

    _pool: Pool

    def __init__(self, n: int, k: int, seed: int | None) -> None:
        self._pool = Pool(n, checked_k(k, self._format.name), seed)

    def _update(self, groups: np.ndarray | None, rows: Rows, inputs: dict[str, Any]) -> None:
        prepared = self._prepare(rows, **inputs)
        if not len(rows.items):
            return
        pool = self._pool
        items = pool.accept(rows.items, self._format.name)
        if groups is None:
            pool.reserve(np.array([len(items)]))
            # Only while a sample fills are bits of items looked at.
            room = int(pool.heaps["k"][0] - pool.heaps["size"][0])
            bits = bits_of(items.slice(0, self._rows_to_fill(room, prepared)))
        else:
            pool.reserve(np.bincount(groups, minlength=len(self)))
            bits = bits_of(items)
        entered = np.empty(len(items), np.int64)
        count = self._enter(groups, bits, prepared, entered)
        pool.keep(items.take(pa.array(entered[:count])))

    @abstractmethod
    def _prepare(self, rows: Rows, *args: Any, **inputs: Any) -> Any:
        """A family's further row-wise inputs, checked and brought to one an item."""

    def _rows_to_fill(self, room: int, prepared: Any) -> int:
        """How many rows it takes, at most, until `room` items have entered a sample that isn't full."""
        return room

    @abstractmethod
    def _enter(self, groups: np.ndarray | None, bits: Bits, prepared: Any, entered: np.ndarray) -> int:
        """Run the family's kernel; `entered`, as long as there are items, gets those that enter; how many."""

    def to_columns(self) -> pa.Table:
        """All samples exploded: `group` (int64), `priority` (double) and `item`, a row an item.

        An engine merges them without this package by keeping, of each group, the k rows of greatest
        priority (Spark: ``max_by(struct(priority, item), priority, k)``), and adding up `n`.
        """
        parts = self._pool.parts(np.arange(len(self)))
        groups = np.repeat(np.arange(len(self)), parts.samples["size"])
        return pa.table({"group": groups, "priority": parts.priority, "item": parts.items})

    def merge_columns(self, groups: Any, priority: Any, item: Any, n: Any) -> None:
        """Fold exploded samples in: items with their priorities, and the rows each group's had seen.

        `groups`, `priority` and `item` hold one entry an item, `n` one a group of this object (0 where no
        sample is folded in). Raises `SketchError` for a null item or a priority that is not a number.
        """
        items = as_rows(item).items
        numbers = as_groups(groups, len(items), len(self))
        priorities = as_values(priority).numbers.astype(np.float64)
        if len(priorities) != len(numbers):
            raise SketchError(f"{self._format.name}: expected one item and one priority a row, and no nulls")
        rows = as_input(f"{self._format.name}: n", n)
        whole = pa.types.is_integer(rows.type) and not rows.null_count and len(rows) == len(self)
        seen = rows.to_numpy().astype(np.int64) if whole else np.full(len(self), -1)
        if not whole or (seen < np.bincount(numbers, minlength=len(self))).any():
            raise SketchError(f"{self._format.name}: n must hold, for each group, at least its items")
        if not (np.isfinite(priorities) & (priorities < self._format.bound)).all():
            raise SketchError(f"{self._format.name}: priorities must be finite, below {self._format.bound}")
        order = np.argsort(numbers, kind="stable")
        samples = samples_of(len(self))
        samples["k"], samples["seen"] = self._pool.heaps["k"], seen
        samples["size"] = np.bincount(numbers, minlength=len(self))
        self._merge(np.arange(len(self)), Parts(samples, priorities[order], items.take(pa.array(order))))


class Jumping(BottomK):
    """One such sample."""

    _groups: JumpingGroups

    def to_columns(self) -> pa.Table:
        """The items with their priorities (double), greatest first: columns `priority` and `item`."""
        return self._groups.to_columns().drop_columns("group")
