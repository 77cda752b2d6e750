"""Samples with constant priorities: rows enter by jumps, and engines can merge them as plain columns."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
import pyarrow as pa

from ...sketches.core.columns.arrays import as_input
from ...sketches.core.columns.columns import as_values
from ...sketches.core.groups.group_numbers import as_groups
from ...sketches.core.protocol import SketchError
from .bottom_k import BottomK, BottomKGroups, checked_k
from .images import Parts, samples_of
from .items import Rows, as_rows, bits_of
from .pool import Pool
from .priority import Bits


class JumpingGroups(BottomKGroups):
    """Many samples over a `Pool`; a family provides the kernel by which its rows enter (`_enter`)."""

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
            # Bits of items are only read while a sample fills.
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
        """Validate a family's further row-wise inputs, and expand them to one per item."""

    def _rows_to_fill(self, room: int, prepared: Any) -> int:
        """Return the most rows needed until `room` items have entered a sample that isn't full."""
        return room

    @abstractmethod
    def _enter(self, groups: np.ndarray | None, bits: Bits, prepared: Any, entered: np.ndarray) -> int:
        """Run the family's kernel; `entered`, with one place per item, gets the items that enter. Returns how
        many."""

    def to_columns(self) -> pa.Table:
        """Explode all samples: `group` (int64), `priority` (double) and `item`, one row per item.

        An engine can merge them without this package by keeping each group's k rows with the greatest
        priorities (Spark: ``max_by(struct(priority, item), priority, k)``), and summing `n`.
        """
        parts = self._pool.parts(np.arange(len(self)))
        groups = np.repeat(np.arange(len(self)), parts.samples["size"])
        return pa.table({"group": groups, "priority": parts.priority, "item": parts.items})

    def merge_columns(self, groups: Any, priority: Any, item: Any, n: Any) -> None:
        """Merge exploded samples: items with their priorities, and the number of rows for each group.

        `groups`, `priority` and `item` have one entry per item, `n` one per group of this object (0 for
        groups without a sample). Raises `SketchError` for a null item or a priority that is not a number.
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
    """A single such sample."""

    _groups: JumpingGroups

    def to_columns(self) -> pa.Table:
        """The items with their priorities (double), greatest first: columns `priority` and `item`."""
        return self._groups.to_columns().drop_columns("group")
